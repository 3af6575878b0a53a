import { assign, sendParent, setup } from 'xstate';
import { promiseEffect } from '../../effect.ts';
import { failedOnceMore, retryDelayMs } from '../retry-delay.ts';
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
  /** Its slot was given to another namespace: its entry is deleted without a grace period. */
  isDisplaced: boolean;
  /** Its entry was written, and says that it is connected here. */
  isRegistered: boolean;
  /** It was, once. */
  wasRegistered: boolean;
  /** Somebody else has taken the entry away, since it was begun to be written. */
  isLostMeanwhile: boolean;
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
  | { outcome: 'foreign' }
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

/** The words that the chart of one registration is written in: its types, actors, delays, guards and actions. */
export const registrationSetup = setup({
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
    reconnectTime: settleMs,
    gracePeriod: ({ context }) => Math.max(0, context.graceMs - settleMs),
    healthInterval: paceMs,
    rejectionTime: rejectionMs,
    retryDelay: ({ context }) => retryDelayMs(context.failures),
  },
  guards: {
    isConnected: ({ context }) => context.isConnected,
    isEvicted: ({ context }) => context.isDisplaced,
    mustRegister: ({ context }) => context.isConnected && !context.isRegistered,
    mustReportHealth: ({ context: { isConnected, health, writtenHealth } }) =>
      isConnected && health !== null && !isSameHealth(health, writtenHealth),
    mustDelete: ({ context }) => context.farewell === 'delete',
    isWriteOverridden: ({ context }, params: EntryAnswer) => params.outcome === 'written' && context.isLostMeanwhile,
    isWritten: (_, params: EntryAnswer) => params.outcome === 'written',
    isForeign: (_, params: EntryAnswer) => params.outcome === 'foreign',
    /** Who has had an entry keeps its connections, whatever became of its group since. */
    isRejected: ({ context }, params: EntryAnswer) => params.outcome === 'rejected' && !context.wasRegistered,
  },
  actions: {
    recordConnected: assign({ isConnected: true, isDisplaced: false }),
    recordDisconnected: assign({ isConnected: false }),
    recordEvicted: assign({ isConnected: false, isDisplaced: true }),
    recordHealth: assign({
      health: (_, { healthy, message }: WorkloadHealth) => ({ healthy, message }),
    }),
    recordRegistered: assign({ isRegistered: true, wasRegistered: true, failures: 0, writtenHealth: null }),
    /** What is there of its entry now, and of its status, is not known. */
    recordLost: assign({ isRegistered: false, writtenHealth: null, isLostMeanwhile: true }),
    startRegistering: assign({ isLostMeanwhile: false }),
    recordHealthSent: assign({ writtenHealth: ({ context }) => context.health }),
    recordHealthUnwritten: assign({ writtenHealth: null }),
    startUnregistering: assign({
      isRegistered: false,
      writtenHealth: null,
      farewell: (_, farewell: RegistrationContext['farewell']) => farewell,
    }),
    countFailure: assign({ failures: ({ context }) => failedOnceMore(context.failures) }),
    resetFailures: assign({ failures: 0 }),
    recordRejection: assign({ rejection: (_, reason: string) => reason }),
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
});

function isSameHealth(one: WorkloadHealth, other: WorkloadHealth | null): boolean {
  return other !== null && one.healthy === other.healthy && one.message === other.message;
}
