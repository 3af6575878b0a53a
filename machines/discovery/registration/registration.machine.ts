import { reasonOf } from '../../effect.ts';
import { noLane } from '../timeline.ts';
import { type EntryOrder, type EntryResult, registrationSetup } from './registration.setup.ts';

export type { EntryOrder, EntryResult, RegistrationInput } from './registration.setup.ts';

type WriteDone = { event: { output: EntryResult } };
const result = ({ event }: WriteDone): EntryResult => event.output;

const onFailedWrite = {
  target: 'backing off',
  actions: ['countFailure', { type: 'reportFailed', params: ({ event }: WriteDone) => failureReasonOf(event.output) }],
} as const;
const onInternalError = {
  target: 'backing off',
  actions: [
    'countFailure',
    { type: 'reportFailed', params: ({ event }: { event: { error: unknown } }) => reasonOf(event.error) },
  ],
} as const;

/** One workload that registers itself, while this replica is responsible for it. Each write is awaited, so that writes do not overlap. */
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
    isOverridden: false,
    farewell: 'note',
    health: null,
    writtenHealth: null,
    failures: 0,
    rejection: '',
  }),
  on: {
    // A pending write is completed first.
    'workload.connected': { actions: 'recordConnected' },
    'workload.disconnected': { actions: 'recordDisconnected' },
    'workload.evicted': { actions: 'recordEvicted' },
    'workload-health.reported': { actions: { type: 'recordHealth', params: ({ event }) => event } },
    'entry.lost': { actions: 'recordLost' },
  },
  initial: 'registering',
  states: {
    registering: {
      description: 'Creates the entry from its group, or takes over an existing entry of the workload.',
      meta: { waitsFor: 'the API server, which has a limit' },
      entry: 'startRegistering',
      invoke: {
        id: 'writing',
        src: 'writeEntry',
        input: ({ context }): EntryOrder => ({ entry: context.entry, operation: 'register' }),
        onDone: [
          {
            description: 'The entry was changed during the write, so it is checked again.',
            guard: { type: 'isWriteOverridden', params: result },
            target: 'backing off',
            actions: 'countFailure',
          },
          { guard: { type: 'isWritten', params: result }, target: 'deciding', actions: 'recordRegistered' },
          {
            guard: { type: 'isRejected', params: result },
            target: 'rejected',
            actions: { type: 'recordRejection', params: ({ event }) => failureReasonOf(event.output) },
          },
          onFailedWrite,
        ],
        onError: onInternalError,
      },
    },
    deciding: {
      description: 'Chooses the next write.',
      always: [
        { guard: 'mustRegister', target: 'registering' },
        { guard: 'mustReportHealth', target: 'reporting health' },
        { guard: 'isConnected', target: 'registered' },
        { guard: 'isEvicted', target: 'recording disconnect' },
        { target: 'awaiting reconnect' },
      ],
    },
    registered: {
      description: 'The entry reports the state of the workload and this replica as its connection.',
      meta: { waitsFor: 'the end of its connections, or a health report: normal operation' },
      on: {
        'workload-health.reported': {
          target: 'deciding',
          actions: { type: 'recordHealth', params: ({ event }) => event },
        },
        'workload.disconnected': { target: 'awaiting reconnect', actions: 'recordDisconnected' },
        'workload.evicted': { target: 'recording disconnect', actions: 'recordEvicted' },
        'entry.lost': {
          description: 'Conflicts about an entry are resolved slowly.',
          target: 'backing off',
          actions: ['recordLost', 'countFailure'],
        },
      },
    },
    'reporting health': {
      description: 'Writes the health into the status of the entry.',
      meta: { waitsFor: 'the API server, which has a limit' },
      entry: 'recordHealthSent',
      invoke: {
        id: 'writing',
        src: 'writeEntry',
        input: ({ context }): EntryOrder => ({
          entry: context.entry,
          operation: 'report health',
          health: context.health ?? { healthy: false, message: '' },
        }),
        onDone: [
          { guard: { type: 'isWritten', params: result }, target: 'rate limited', actions: 'resetFailures' },
          {
            description: 'The entry belongs to another replica, or was deleted, which is reported separately.',
            guard: { type: 'isForeign', params: result },
            target: 'rate limited',
          },
          { ...onFailedWrite, actions: ['recordHealthUnwritten', ...onFailedWrite.actions] },
        ],
        onError: { ...onInternalError, actions: ['recordHealthUnwritten', ...onInternalError.actions] },
      },
    },
    'rate limited': {
      description: 'The health was written recently. Writes of a health that flaps are limited.',
      after: { healthInterval: 'deciding' },
      on: {
        'workload.disconnected': { target: 'awaiting reconnect', actions: 'recordDisconnected' },
        'workload.evicted': { target: 'recording disconnect', actions: 'recordEvicted' },
        'entry.lost': { target: 'backing off', actions: ['recordLost', 'countFailure'] },
      },
    },
    'awaiting reconnect': {
      description: 'The last connection has closed. The workload may reconnect, so nothing is written yet.',
      after: { reconnectTime: 'recording disconnect' },
      on: {
        'workload.connected': { target: 'deciding', actions: 'recordConnected' },
        'workload.evicted': { target: 'recording disconnect', actions: 'recordEvicted' },
      },
    },
    'recording disconnect': {
      description: 'Writes the time of the disconnect to the entry, unless it belongs to another replica.',
      meta: { waitsFor: 'the API server, which has a limit' },
      entry: { type: 'startUnregistering', params: 'note' },
      invoke: {
        id: 'writing',
        src: 'writeEntry',
        input: ({ context }): EntryOrder => ({ entry: context.entry, operation: 'note disconnect' }),
        onDone: [
          { guard: { type: 'isWritten', params: result }, target: 'grace period', actions: 'resetFailures' },
          { guard: { type: 'isForeign', params: result }, target: 'finishing', actions: 'resetFailures' },
          onFailedWrite,
        ],
        onError: onInternalError,
      },
    },
    'grace period': {
      description: 'The workload may reconnect to any replica. Its entry is kept.',
      after: { gracePeriod: 'unregistering' },
      always: [
        { guard: 'isConnected', target: 'registering' },
        { guard: 'isEvicted', target: 'unregistering' },
      ],
      on: {
        'workload.connected': { target: 'registering', actions: 'recordConnected' },
        'workload.evicted': { target: 'unregistering', actions: 'recordEvicted' },
      },
    },
    unregistering: {
      description: 'Deletes the entry, unless it belongs to another replica.',
      meta: { waitsFor: 'the API server, which has a limit' },
      entry: { type: 'startUnregistering', params: 'delete' },
      invoke: {
        id: 'writing',
        src: 'writeEntry',
        input: ({ context }): EntryOrder => ({ entry: context.entry, operation: 'delete' }),
        onDone: [
          { guard: { type: 'isWritten', params: result }, target: 'finishing', actions: 'resetFailures' },
          { guard: { type: 'isForeign', params: result }, target: 'finishing', actions: 'resetFailures' },
          onFailedWrite,
        ],
        onError: onInternalError,
      },
    },
    'backing off': {
      description: 'A write failed, or another process changed the entry.',
      after: {
        retryDelay: [
          { guard: 'isConnected', target: 'deciding' },
          { guard: 'mustDelete', target: 'unregistering' },
          { target: 'recording disconnect' },
        ],
      },
    },
    rejected: {
      description: 'The workload cannot be registered. New connections of it are rejected with the reason.',
      entry: 'reportRejected',
      after: { rejectionTime: 'ended' },
      on: { 'workload.connected': { actions: ['recordConnected', 'reportRejected'] } },
    },
    finishing: {
      description: 'The entry was deleted or belongs to another replica. The workload may have reconnected.',
      always: [{ guard: 'isConnected', target: 'registering' }, { target: 'ended' }],
    },
    ended: {
      description: 'Nothing is left to do.',
      type: 'final',
      entry: 'reportEnded',
    },
  },
});

function failureReasonOf(output: EntryResult): string {
  return 'reason' in output ? output.reason : output.outcome;
}
