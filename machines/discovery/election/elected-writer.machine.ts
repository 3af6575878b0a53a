import { assign, sendParent, setup } from 'xstate';
import { callbackEffect, promiseEffect, reasonOf } from '../../effect.ts';
import { failedOnceMore, retryDelayMs } from '../retry-delay.ts';
import { noLane } from '../timeline.ts';
import type { DutyDue, DutyWritten, LeaseName } from './leader-protocol.ts';

export type ElectedWriterInput = { lease: LeaseName };

export type WriteRun = {
  lease: LeaseName;
  /** What could not be written before as well. */
  retry: boolean;
  /** All that is known: another may have written since. */
  anew: boolean;
};

export type WriteOutcome = { written: number; failed: number; reason: string };

interface ElectedWriterContext extends ElectedWriterInput {
  /** All that is known is still to be gone through once. */
  isNew: boolean;
  /** Runs with a failure, one after the other. */
  failures: number;
  /** Something became due during a run. */
  isDue: boolean;
  /** What failed has rested. */
  isRested: boolean;
}

/** What belongs together comes together: a write of an object and of the next one, made of one change. */
const coalescingMs = 20;

/**
 * What one replica of many writes in one term: all that it knows once, as nothing tells it what the one before has left, then what becomes
 * due. What failed is tried again after a rest, and holds up nothing else. It is stopped at the end of the term.
 */
export const electedWriterMachine = setup({
  types: {
    context: {} as ElectedWriterContext,
    input: {} as ElectedWriterInput,
    events: {} as DutyDue,
    children: {} as { due: 'watchDuty'; writing: 'writeDuty' },
  },
  actors: {
    /** Tells whenever something becomes due. */
    watchDuty: callbackEffect<{ type: never }, ElectedWriterInput>('watchDuty'),
    /** Writes what is due, each object once. Each write has a limit. */
    writeDuty: promiseEffect<WriteOutcome, WriteRun>('writeDuty'),
  },
  delays: {
    coalescing: coalescingMs,
    retryDelay: ({ context }) => retryDelayMs(context.failures),
  },
  guards: {
    isDueAgain: ({ context }) => context.isDue,
    isRested: ({ context }) => context.isRested,
    hasFailed: (_, { failed }: WriteOutcome) => failed > 0,
  },
  actions: {
    beginRun: assign({ isDue: false }),
    noteDue: assign({ isDue: true }),
    noteRested: assign({ isRested: true }),
    countFailure: assign({ failures: ({ context }) => failedOnceMore(context.failures), isRested: false }),
    forgetFailures: assign({ failures: 0 }),
    noteWhole: assign({ isNew: false }),
    report: sendParent(
      ({ context: { lease } }, outcome: WriteOutcome): DutyWritten => ({ type: 'duty.written', lease, ...outcome }),
    ),
    reportBroken: sendParent(
      ({ context: { lease } }, { error }: { error: unknown }): DutyWritten => ({
        ...{ type: 'duty.written', lease, written: 0, failed: 1, reason: reasonOf(error) },
      }),
    ),
  },
}).createMachine({
  id: 'elected-writer',
  description: 'What one replica of many writes, in one term.',
  meta: { timeline: noLane },
  context: ({ input }) => ({ ...input, isNew: true, failures: 0, isDue: false, isRested: false }),
  invoke: {
    id: 'due',
    src: 'watchDuty',
    input: ({ context: { lease } }) => ({ lease }),
    onError: { description: 'A fault of ours: what becomes due is written in the next term.' },
  },
  initial: 'writing',
  states: {
    writing: {
      description:
        'What is due is written; at the beginning of a term all that is known, where it is not there already.',
      meta: { waitsFor: 'the answers of the API server, each of which has a limit' },
      entry: 'beginRun',
      invoke: {
        id: 'writing',
        src: 'writeDuty',
        input: ({ context: { lease, isNew } }) => ({ lease, retry: true, anew: isNew }),
        onDone: [
          {
            guard: { type: 'hasFailed', params: ({ event }) => event.output },
            target: 'resting',
            actions: ['noteWhole', 'countFailure', { type: 'report', params: ({ event }) => event.output }],
          },
          {
            target: 'up to date',
            actions: ['noteWhole', 'forgetFailures', { type: 'report', params: ({ event }) => event.output }],
          },
        ],
        onError: {
          description: 'A fault of ours.',
          target: 'resting',
          actions: ['countFailure', { type: 'reportBroken', params: ({ event }) => event }],
        },
      },
      on: { 'duty.due': { actions: 'noteDue' } },
    },
    'up to date': {
      description: 'Nothing is due.',
      meta: { waitsFor: 'something that is to be written: this is the work' },
      always: { guard: 'isDueAgain', target: 'coalescing' },
      on: { 'duty.due': 'coalescing' },
    },
    coalescing: {
      description: 'Something is due, and more of it may come.',
      on: { 'duty.due': { description: 'It comes along.' } },
      after: { coalescing: 'writing' },
    },
    resting: {
      description:
        'Something could not be written. It is tried again after a rest; what becomes due meanwhile is not held up.',
      after: { retryDelay: { actions: 'noteRested' } },
      initial: 'waiting',
      states: {
        waiting: {
          always: [
            { guard: 'isRested', target: '#elected-writer.writing' },
            { guard: 'isDueAgain', target: 'coalescing' },
          ],
          on: { 'duty.due': 'coalescing' },
        },
        coalescing: {
          on: { 'duty.due': { description: 'It comes along.' } },
          after: { coalescing: 'writing' },
        },
        writing: {
          description: 'What has not failed yet is written.',
          meta: { waitsFor: 'the answers of the API server, each of which has a limit' },
          entry: 'beginRun',
          invoke: {
            id: 'writing',
            src: 'writeDuty',
            input: ({ context: { lease } }) => ({ lease, retry: false, anew: false }),
            onDone: { target: 'waiting', actions: { type: 'report', params: ({ event }) => event.output } },
            onError: { target: 'waiting', actions: { type: 'reportBroken', params: ({ event }) => event } },
          },
          on: { 'duty.due': { actions: 'noteDue' } },
        },
      },
    },
  },
});
