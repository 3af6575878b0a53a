import { assign, sendParent, setup } from 'xstate';
import { promiseEffect } from '../../effect.ts';
import { incrementFailures, retryDelayMs } from '../retry-delay.ts';
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
  graceMs: number;
}

interface RegistrationContext extends RegistrationInput {
  isConnected: boolean;
  /** Whether the slot of the workload was given to another namespace: the entry is deleted without a grace period. */
  isDisplaced: boolean;
  /** Whether the entry is written and names this replica. */
  isRegistered: boolean;
  wasRegistered: boolean;
  /** Whether another process changed the entry since the write started. */
  isOverridden: boolean;
  farewell: 'note' | 'delete';
  health: WorkloadHealth | null;
  /** Health in the entry's status, or being written to it. */
  writtenHealth: WorkloadHealth | null;
  failures: number;
  rejection: string;
}

/** One write. The effect reads the entry before, and writes on the condition that its version is unchanged. */
export type EntryOrder = { entry: EntryKey } & (
  | { operation: 'register' }
  | { operation: 'report health'; health: WorkloadHealth }
  /** Sets the time of the disconnect. */
  | { operation: 'note disconnect' }
  | { operation: 'delete' }
);

export type EntryResult =
  | { outcome: 'written' }
  /** The entry does not exist, or belongs to another process: nothing was written. */
  | { outcome: 'foreign' }
  | { outcome: 'rejected'; reason: string }
  /** The write was rejected, for example because of a conflict, or its result is unknown. */
  | { outcome: 'failed'; reason: string };

/** A workload that reconnects within this time causes no write. */
const settleMs = 1_000;
const paceMs = 1_000;
/** How long the rejection is repeated without a request to the API server. */
const rejectionMs = 5_000;

export const registrationSetup = setup({
  types: {
    context: {} as RegistrationContext,
    input: {} as RegistrationInput,
    events: {} as WorkloadReport,
    children: {} as { writing: 'writeEntry' },
  },
  actors: {
    writeEntry: promiseEffect<EntryResult, EntryOrder>('writeEntry'),
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
      isConnected && health !== null && !isHealthEqual(health, writtenHealth),
    mustDelete: ({ context }) => context.farewell === 'delete',
    isWriteOverridden: ({ context }, params: EntryResult) => params.outcome === 'written' && context.isOverridden,
    isWritten: (_, params: EntryResult) => params.outcome === 'written',
    isForeign: (_, params: EntryResult) => params.outcome === 'foreign',
    /** A workload that had an entry keeps its connections, even if its WorkloadGroup no longer permits registration. */
    isRejected: ({ context }, params: EntryResult) => params.outcome === 'rejected' && !context.wasRegistered,
  },
  actions: {
    recordConnected: assign({ isConnected: true, isDisplaced: false }),
    recordDisconnected: assign({ isConnected: false }),
    recordEvicted: assign({ isConnected: false, isDisplaced: true }),
    recordHealth: assign({
      health: (_, { healthy, message }: WorkloadHealth) => ({ healthy, message }),
    }),
    recordRegistered: assign({ isRegistered: true, wasRegistered: true, failures: 0, writtenHealth: null }),
    /** The state of the entry and of its status is unknown. */
    recordLost: assign({ isRegistered: false, writtenHealth: null, isOverridden: true }),
    startRegistering: assign({ isOverridden: false }),
    recordHealthSent: assign({ writtenHealth: ({ context }) => context.health }),
    recordHealthUnwritten: assign({ writtenHealth: null }),
    startUnregistering: assign({
      isRegistered: false,
      writtenHealth: null,
      farewell: (_, farewell: RegistrationContext['farewell']) => farewell,
    }),
    countFailure: assign({ failures: ({ context }) => incrementFailures(context.failures) }),
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

function isHealthEqual(one: WorkloadHealth, other: WorkloadHealth | null): boolean {
  return other !== null && one.healthy === other.healthy && one.message === other.message;
}
