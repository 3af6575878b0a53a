import { assign, sendParent, setup } from 'xstate';
import { promiseEffect, reasonOf } from '../../effect.ts';
import { failedOnceMore, retryDelayMs } from '../retry-delay.ts';
import { noLane } from '../timeline.ts';
import type {
  EntryKey,
  RegistrationEnded,
  RegistrationFailed,
  RegistrationRejected,
  WorkloadHealth,
  WorkloadReport,
} from './registration-protocol.ts';

export interface RegistrationInput {
  entry: EntryKey;
  /** Since the last connection is gone, until the entry is deleted. */
  graceMs: number;
}

interface RegistrationContext extends RegistrationInput {
  /** There is a connection here. */
  isConnected: boolean;
  /** Its entry was written, and says that it is connected here. */
  isRegistered: boolean;
  /** It was, once. */
  wasRegistered: boolean;
  /** What is to be done of a workload that is gone. */
  farewell: 'note' | 'delete';
  /** What it said last; null: nothing. */
  health: WorkloadHealth | null;
  /** What of that is in the entry's status, or on its way there. */
  writtenHealth: WorkloadHealth | null;
  /** In a row. */
  failures: number;
  /** Why it cannot be registered. */
  rejection: string;
}

/** One write. Whoever does it reads the entry first, and names the version that was read. */
export type EntryOrder = { entry: EntryKey } & (
  | { deed: 'register' }
  | { deed: 'report health'; health: WorkloadHealth }
  /** The entry says since when it is not connected. */
  | { deed: 'note disconnect' }
  | { deed: 'delete' }
);

export type EntryAnswer =
  | { outcome: 'written' }
  /** There is none, or it is of another replica or somebody else: it was let be. */
  | { outcome: 'not ours' }
  /** The workload cannot have an entry: trying again leads nowhere. */
  | { outcome: 'rejected'; reason: string }
  /** Not taken, also because somebody else wrote in between; or nobody knows. */
  | { outcome: 'failed'; reason: string };

/** A workload that flaps costs no write: who is back within it was never away. */
const settleMs = 1_000;
/** Between two writes of its health. */
const paceMs = 1_000;
/** Who was rejected is told the same for that long, without a question to the API server. */
const rejectionMs = 5_000;

type Done = { event: { output: EntryAnswer } };
const answer = ({ event }: Done): EntryAnswer => event.output;

/** Not taken: told, and tried again after a rest. */
const failed = {
  target: 'resting',
  actions: ['countFailure', { type: 'reportFailed', params: ({ event }: Done) => reasonIn(event.output) }],
} as const;
/** The effect that writes is broken. */
const broken = {
  target: 'resting',
  actions: [
    'countFailure',
    { type: 'reportFailed', params: ({ event }: { event: { error: unknown } }) => reasonOf(event.error) },
  ],
} as const;

/**
 * One workload that registers itself, as long as this replica has to do with it. A write that was begun is awaited, whatever comes
 * meanwhile: two of them never run at a time, and none is left to take effect behind the next one's back.
 */
export const registrationMachine = setup({
  types: {
    context: {} as RegistrationContext,
    input: {} as RegistrationInput,
    events: {} as WorkloadReport,
    children: {} as { writing: 'writeEntry' },
  },
  actors: {
    /** Writes an entry, within a limit of time. */
    writeEntry: promiseEffect<EntryAnswer, EntryOrder>('writeEntry'),
  },
  delays: {
    settleTime: settleMs,
    gracePeriod: ({ context }) => Math.max(0, context.graceMs - settleMs),
    pace: paceMs,
    rejectionTime: rejectionMs,
    rest: ({ context }) => retryDelayMs(context.failures),
  },
  guards: {
    isConnected: ({ context }) => context.isConnected,
    mustRegister: ({ context }) => context.isConnected && !context.isRegistered,
    mustReportHealth: ({ context: { isConnected, health, writtenHealth } }) =>
      isConnected && health !== null && !isSameHealth(health, writtenHealth),
    mustDelete: ({ context }) => context.farewell === 'delete',
    isWritten: (_, params: EntryAnswer) => params.outcome === 'written',
    isNotOurs: (_, params: EntryAnswer) => params.outcome === 'not ours',
    /** Who has had an entry keeps its connections, whatever became of its group since. */
    isRejected: ({ context }, params: EntryAnswer) => params.outcome === 'rejected' && !context.wasRegistered,
  },
  actions: {
    noteConnected: assign({ isConnected: true }),
    noteDisconnected: assign({ isConnected: false }),
    noteHealth: assign({
      health: (_, { healthy, message }: WorkloadHealth) => ({ healthy, message }),
    }),
    noteRegistered: assign({ isRegistered: true, wasRegistered: true, failures: 0, writtenHealth: null }),
    /** What is there of its entry now, and of its status, is not known. */
    noteLost: assign({ isRegistered: false, writtenHealth: null }),
    noteHealthOnItsWay: assign({ writtenHealth: ({ context }) => context.health }),
    noteHealthNotWritten: assign({ writtenHealth: null }),
    beginFarewell: assign({
      isRegistered: false,
      writtenHealth: null,
      farewell: (_, farewell: RegistrationContext['farewell']) => farewell,
    }),
    countFailure: assign({ failures: ({ context }) => failedOnceMore(context.failures) }),
    forgetFailures: assign({ failures: 0 }),
    rememberRejection: assign({ rejection: (_, reason: string) => reason }),
    reportRejected: sendParent(
      ({ context }): RegistrationRejected => ({
        type: 'registration.rejected',
        entry: context.entry,
        reason: context.rejection,
      }),
    ),
    reportFailed: sendParent(
      ({ context }, reason: string): RegistrationFailed => ({
        type: 'registration.failed',
        entry: context.entry,
        reason,
      }),
    ),
    reportEnded: sendParent(({ context }): RegistrationEnded => ({ type: 'registration.ended', entry: context.entry })),
  },
}).createMachine({
  id: 'registration',
  description: 'One workload that registers itself.',
  meta: { timeline: noLane },
  context: ({ input }) => ({
    ...input,
    isConnected: true,
    isRegistered: false,
    wasRegistered: false,
    farewell: 'note',
    health: null,
    writtenHealth: null,
    failures: 0,
    rejection: '',
  }),
  on: {
    // What is under way is ended first.
    'workload.connected': { actions: 'noteConnected' },
    'workload.disconnected': { actions: 'noteDisconnected' },
    'workload.health': { actions: { type: 'noteHealth', params: ({ event }) => event } },
    'entry.lost': { description: 'It is being written, or the workload is gone.' },
  },
  initial: 'registering',
  states: {
    registering: {
      description: 'The entry is being made of its group, or taken over from where the workload was before.',
      meta: { waitsFor: 'the API server, which has a limit' },
      invoke: {
        id: 'writing',
        src: 'writeEntry',
        input: ({ context }): EntryOrder => ({ entry: context.entry, deed: 'register' }),
        onDone: [
          { guard: { type: 'isWritten', params: answer }, target: 'looking', actions: 'noteRegistered' },
          {
            guard: { type: 'isRejected', params: answer },
            target: 'rejected',
            actions: { type: 'rememberRejection', params: ({ event }) => reasonIn(event.output) },
          },
          failed,
        ],
        onError: broken,
      },
    },
    looking: {
      description: 'What is to be done next, of all that came while something was written.',
      always: [
        { guard: 'mustRegister', target: 'registering' },
        { guard: 'mustReportHealth', target: 'reporting health' },
        { guard: 'isConnected', target: 'registered' },
        { target: 'settling' },
      ],
    },
    registered: {
      description: 'The entry says all that is known of the workload, and who has its connection.',
      meta: { waitsFor: 'the end of its connections, or its word of its health: this is the work' },
      on: {
        'workload.health': {
          target: 'looking',
          actions: { type: 'noteHealth', params: ({ event }) => event },
        },
        'workload.disconnected': { target: 'settling', actions: 'noteDisconnected' },
        'entry.lost': {
          description: 'Who fights with somebody over an entry does so slowly.',
          target: 'resting',
          actions: ['noteLost', 'countFailure'],
        },
      },
    },
    'reporting health': {
      description: "Its health is being written into the entry's status.",
      meta: { waitsFor: 'the API server, which has a limit' },
      entry: 'noteHealthOnItsWay',
      invoke: {
        id: 'writing',
        src: 'writeEntry',
        input: ({ context }): EntryOrder => ({
          entry: context.entry,
          deed: 'report health',
          health: context.health ?? { healthy: false, message: '' },
        }),
        onDone: [
          { guard: { type: 'isWritten', params: answer }, target: 'pausing', actions: 'forgetFailures' },
          {
            description:
              'The workload has gone to another replica, and tells that one; or its entry was deleted, which is told.',
            guard: { type: 'isNotOurs', params: answer },
            target: 'pausing',
          },
          { ...failed, actions: ['noteHealthNotWritten', ...failed.actions] },
        ],
        onError: { ...broken, actions: ['noteHealthNotWritten', ...broken.actions] },
      },
    },
    pausing: {
      description: 'Its health was written a moment ago. One that changes all the time is written now and then.',
      after: { pace: 'looking' },
      on: {
        'workload.disconnected': { target: 'settling', actions: 'noteDisconnected' },
        'entry.lost': { target: 'resting', actions: ['noteLost', 'countFailure'] },
      },
    },
    settling: {
      description: 'Its last connection is gone. Another one may be on its way, and nothing is written meanwhile.',
      after: { settleTime: 'noting the disconnect' },
      on: {
        'workload.connected': { target: 'looking', actions: 'noteConnected' },
        'entry.lost': { actions: 'noteLost' },
      },
    },
    'noting the disconnect': {
      description: 'The entry is told since when the workload is gone, unless it is with another replica.',
      meta: { waitsFor: 'the API server, which has a limit' },
      entry: { type: 'beginFarewell', params: 'note' },
      invoke: {
        id: 'writing',
        src: 'writeEntry',
        input: ({ context }): EntryOrder => ({ entry: context.entry, deed: 'note disconnect' }),
        onDone: [
          { guard: { type: 'isWritten', params: answer }, target: 'in grace', actions: 'forgetFailures' },
          { guard: { type: 'isNotOurs', params: answer }, target: 'leaving', actions: 'forgetFailures' },
          failed,
        ],
        onError: broken,
      },
    },
    'in grace': {
      description: 'The workload may come back, here or to another replica. Its entry is there.',
      after: { gracePeriod: 'unregistering' },
      always: { guard: 'isConnected', target: 'registering' },
      on: { 'workload.connected': { target: 'registering', actions: 'noteConnected' } },
    },
    unregistering: {
      description: 'The entry is being deleted, unless it is with another replica.',
      meta: { waitsFor: 'the API server, which has a limit' },
      entry: { type: 'beginFarewell', params: 'delete' },
      invoke: {
        id: 'writing',
        src: 'writeEntry',
        input: ({ context }): EntryOrder => ({ entry: context.entry, deed: 'delete' }),
        onDone: [
          { guard: { type: 'isWritten', params: answer }, target: 'leaving', actions: 'forgetFailures' },
          { guard: { type: 'isNotOurs', params: answer }, target: 'leaving', actions: 'forgetFailures' },
          failed,
        ],
        onError: broken,
      },
    },
    resting: {
      description: 'What was to be written was not, or somebody else writes the entry too.',
      after: {
        rest: [
          { guard: 'isConnected', target: 'looking' },
          { guard: 'mustDelete', target: 'unregistering' },
          { target: 'noting the disconnect' },
        ],
      },
      on: { 'entry.lost': { actions: 'noteLost' } },
    },
    rejected: {
      description: 'The workload cannot have an entry as it is, and whoever connects as it is told so.',
      entry: 'reportRejected',
      after: { rejectionTime: 'ended' },
      on: { 'workload.connected': { actions: ['noteConnected', 'reportRejected'] } },
    },
    leaving: {
      description: 'The entry is gone, or another replica has it. The workload may be back.',
      always: [{ guard: 'isConnected', target: 'registering' }, { target: 'ended' }],
    },
    ended: {
      description: 'Nothing is left to do.',
      type: 'final',
      entry: 'reportEnded',
    },
  },
});

function isSameHealth(one: WorkloadHealth, other: WorkloadHealth | null): boolean {
  return other !== null && one.healthy === other.healthy && one.message === other.message;
}

function reasonIn(output: EntryAnswer): string {
  return 'reason' in output ? output.reason : output.outcome;
}
