import { assign, sendParent, setup } from 'xstate';
import { callbackEffect, promiseEffect, reasonOf } from '../../effect.ts';
import { incrementFailures, retryDelayMs } from '../retry-delay.ts';
import { noLane } from '../timeline.ts';
import type { DutyDue, DutyWritten, LeaseName } from './leader-protocol.ts';

export type ElectedWriterInput = { lease: LeaseName };

export type WriteRun = {
  lease: LeaseName;
  /** Whether to include writes that failed before. */
  retry: boolean;
  /** Whether to include all known objects, because another replica may have written since. */
  includesAll: boolean;
};

export type WriteOutcome = { written: number; failed: number; reason: string };

interface ElectedWriterContext extends ElectedWriterInput {
  /** Whether all known objects must be compared once. */
  isNew: boolean;
  failures: number;
  /** Whether a write became due during a run. */
  isDue: boolean;
  /** Whether the retry of failed writes is due. */
  isRested: boolean;
}

const coalescingMs = 20;

/**
 * The writes of one replica during one term: first all known objects, because the previous leader's writes are unknown, then due ones. Failed writes
 * are retried after a delay, without delaying others.
 */
export const electedWriterMachine = setup({
  types: {
    context: {} as ElectedWriterContext,
    input: {} as ElectedWriterInput,
    events: {} as DutyDue,
    children: {} as { due: 'watchDuty'; writing: 'writeDuty' },
  },
  actors: {
    watchDuty: callbackEffect<{ type: never }, ElectedWriterInput>('watchDuty'),
    writeDuty: promiseEffect<WriteOutcome, WriteRun>('writeDuty'),
  },
  delays: {
    coalescing: coalescingMs,
    retryDelay: ({ context }) => retryDelayMs(context.failures),
  },
  guards: {
    isDueAgain: ({ context }) => context.isDue,
    isRetryDue: ({ context }) => context.isRested,
    hasFailed: (_, { failed }: WriteOutcome) => failed > 0,
  },
  actions: {
    startRun: assign({ isDue: false }),
    recordDue: assign({ isDue: true }),
    recordRetryDue: assign({ isRested: true }),
    countFailure: assign({ failures: ({ context }) => incrementFailures(context.failures), isRested: false }),
    resetFailures: assign({ failures: 0 }),
    recordComplete: assign({ isNew: false }),
    reportWritten: sendParent(
      ({ context: { lease } }, writeOutcome: WriteOutcome): DutyWritten => ({
        type: 'duty.written',
        lease,
        ...writeOutcome,
      }),
    ),
    reportFailed: sendParent(
      ({ context: { lease } }, { error }: { error: unknown }): DutyWritten => ({
        ...{ type: 'duty.written', lease, written: 0, failed: 1, reason: reasonOf(error) },
      }),
    ),
  },
}).createMachine({
  id: 'elected-writer',
  description: 'The writes of an elected replica during one term.',
  meta: { timeline: noLane },
  context: ({ input }) => ({ ...input, isNew: true, failures: 0, isDue: false, isRested: false }),
  invoke: {
    id: 'due',
    src: 'watchDuty',
    input: ({ context: { lease } }) => ({ lease }),
    onError: { description: 'An internal error: due writes happen in the next term.' },
  },
  initial: 'writing',
  states: {
    writing: {
      description: 'Writes what is due. A new term begins with all known objects whose value differs.',
      meta: { waitsFor: 'the responses of the API server, each of which has a limit' },
      entry: 'startRun',
      invoke: {
        id: 'writing',
        src: 'writeDuty',
        input: ({ context: { lease, isNew } }) => ({ lease, retry: true, includesAll: isNew }),
        onDone: [
          {
            guard: { type: 'hasFailed', params: ({ event }) => event.output },
            target: 'backing off',
            actions: ['recordComplete', 'countFailure', { type: 'reportWritten', params: ({ event }) => event.output }],
          },
          {
            target: 'up to date',
            actions: [
              'recordComplete',
              'resetFailures',
              { type: 'reportWritten', params: ({ event }) => event.output },
            ],
          },
        ],
        onError: {
          description: 'An internal error.',
          target: 'backing off',
          actions: ['countFailure', { type: 'reportFailed', params: ({ event }) => event }],
        },
      },
      on: { 'duty.due': { actions: 'recordDue' } },
    },
    'up to date': {
      description: 'Nothing is due.',
      meta: { waitsFor: 'something to write: normal operation' },
      always: { guard: 'isDueAgain', target: 'coalescing' },
      on: { 'duty.due': 'coalescing' },
    },
    coalescing: {
      description: 'A write is due; more may follow.',
      on: { 'duty.due': { description: 'The write is part of the next run.' } },
      after: { coalescing: 'writing' },
    },
    'backing off': {
      description: 'A write failed. It is repeated after a delay, which other writes do not wait for.',
      after: { retryDelay: { actions: 'recordRetryDue' } },
      initial: 'waiting',
      states: {
        waiting: {
          always: [
            { guard: 'isRetryDue', target: '#elected-writer.writing' },
            { guard: 'isDueAgain', target: 'coalescing' },
          ],
          on: { 'duty.due': 'coalescing' },
        },
        coalescing: {
          on: { 'duty.due': { description: 'The write is part of the next run.' } },
          after: { coalescing: 'writing' },
        },
        writing: {
          description: 'Writes due objects that have not failed.',
          meta: { waitsFor: 'the responses of the API server, each of which has a limit' },
          entry: 'startRun',
          invoke: {
            id: 'writing',
            src: 'writeDuty',
            input: ({ context: { lease } }) => ({ lease, retry: false, includesAll: false }),
            onDone: { target: 'waiting', actions: { type: 'reportWritten', params: ({ event }) => event.output } },
            onError: { target: 'waiting', actions: { type: 'reportFailed', params: ({ event }) => event } },
          },
          on: { 'duty.due': { actions: 'recordDue' } },
        },
      },
    },
  },
});
