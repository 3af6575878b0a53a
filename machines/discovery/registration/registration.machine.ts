import { reasonOf } from '../../effect.ts';
import { noLane } from '../timeline.ts';
import { type EntryAnswer, type EntryOrder, registrationSetup } from './registration.setup.ts';

export type { EntryAnswer, EntryOrder, RegistrationInput } from './registration.setup.ts';

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
export const registrationMachine = registrationSetup.createMachine({
  id: 'registration',
  description: 'One workload that registers itself.',
  meta: { timeline: noLane },
  context: ({ input }) => ({
    ...input,
    isConnected: true,
    isDisplaced: false,
    isRegistered: false,
    wasRegistered: false,
    isLostMeanwhile: false,
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
    'workload.displaced': { actions: 'noteDisplaced' },
    'workload.health': { actions: { type: 'noteHealth', params: ({ event }) => event } },
    'entry.lost': { actions: 'noteLost' },
  },
  initial: 'registering',
  states: {
    registering: {
      description: 'The entry is being made of its group, or taken over from where the workload was before.',
      meta: { waitsFor: 'the API server, which has a limit' },
      entry: 'beginRegistering',
      invoke: {
        id: 'writing',
        src: 'writeEntry',
        input: ({ context }): EntryOrder => ({ entry: context.entry, deed: 'register' }),
        onDone: [
          {
            description: 'What was taken away may be what was written: that is looked at.',
            guard: { type: 'isWrittenInVain', params: answer },
            target: 'resting',
            actions: 'countFailure',
          },
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
        { guard: 'isDisplaced', target: 'noting the disconnect' },
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
        'workload.displaced': { target: 'noting the disconnect', actions: 'noteDisplaced' },
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
        'workload.displaced': { target: 'noting the disconnect', actions: 'noteDisplaced' },
        'entry.lost': { target: 'resting', actions: ['noteLost', 'countFailure'] },
      },
    },
    settling: {
      description: 'Its last connection is gone. Another one may be on its way, and nothing is written meanwhile.',
      after: { settleTime: 'noting the disconnect' },
      on: {
        'workload.connected': { target: 'looking', actions: 'noteConnected' },
        'workload.displaced': { target: 'noting the disconnect', actions: 'noteDisplaced' },
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
      always: [
        { guard: 'isConnected', target: 'registering' },
        { guard: 'isDisplaced', target: 'unregistering' },
      ],
      on: {
        'workload.connected': { target: 'registering', actions: 'noteConnected' },
        'workload.displaced': { target: 'unregistering', actions: 'noteDisplaced' },
      },
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

function reasonIn(output: EntryAnswer): string {
  return 'reason' in output ? output.reason : output.outcome;
}
