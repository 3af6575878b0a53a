import { assign, setup } from 'xstate';
import type { CatalogueRow } from '../../catalogue-row.ts';
import { promiseEffect, reasonOf } from '../../effect.ts';
import { noLane } from '../timeline.ts';

export interface SigningRequestInput {
  /** It is approved here; else by somebody else. */
  approves: boolean;
  /** From the making of the object to the certificate. */
  limitMs: number;
}

/** What one question came to. */
export type RequestStep = { outcome: 'done' } | { outcome: 'failed'; reason: string };
/** What has become of the object. `issued`: a certificate, which is the one that was asked for; the effects have it. */
export type RequestReading =
  | { outcome: 'issued' }
  | { outcome: 'pending' }
  /** Denied, failed, or signed otherwise than asked for: it will come to nothing. */
  | { outcome: 'refused'; reason: string }
  /** The API server did not say. */
  | { outcome: 'unknown'; reason: string };

/** `issued`: it is given out. */
export type SigningRequestOutput = { outcome: 'issued' } | { outcome: 'refused' | 'failed'; reason: string };

interface SigningRequestContext extends SigningRequestInput {
  result: SigningRequestOutput;
  /** Why it is not known what became of it; empty: it is known. */
  unknown: string;
  readings: number;
}

const shortestPollMs = 200;
const longestPollMs = 1_000;
const removalMs = 5_000;

/**
 * One certificate that the signer of a cluster is asked for (certificates.k8s.io): the request is an object, which somebody approves and a
 * controller of somebody else's signs, or never does. The object goes in the end, whatever came of it.
 */
export const signingRequestMachine = setup({
  types: {
    context: {} as SigningRequestContext,
    input: {} as SigningRequestInput,
    output: {} as SigningRequestOutput,
    children: {} as {
      creation: 'createRequest';
      approval: 'approveRequest';
      reading: 'readRequest';
      removal: 'removeRequest';
    },
  },
  actors: {
    createRequest: promiseEffect<RequestStep, undefined>('createRequest'),
    approveRequest: promiseEffect<RequestStep, undefined>('approveRequest'),
    /** Reads the object, and judges its certificate when there is one. */
    readRequest: promiseEffect<RequestReading, undefined>('readRequest'),
    removeRequest: promiseEffect<void, undefined>('removeRequest'),
  },
  delays: {
    answerLimit: ({ context }) => context.limitMs,
    pollInterval: ({ context }) => Math.min(shortestPollMs * context.readings, longestPollMs),
    removalLimit: removalMs,
  },
  guards: {
    approves: ({ context }) => context.approves,
    isFailed: (_, params: RequestStep) => params.outcome === 'failed',
    isIssued: (_, params: RequestReading) => params.outcome === 'issued',
    isRefused: (_, params: RequestReading) => params.outcome === 'refused',
  },
  actions: {
    rememberFailure: assign({
      result: (_, params: { reason: string }) => ({ outcome: 'failed' as const, reason: params.reason }),
    }),
    rememberRefusal: assign({
      result: (_, params: { reason: string }) => ({ outcome: 'refused' as const, reason: params.reason }),
    }),
    rememberSuccess: assign({ result: { outcome: 'issued' as const } }),
    rememberReading: assign({
      readings: ({ context }) => context.readings + 1,
      unknown: (_, params: RequestReading) => (params.outcome === 'unknown' ? params.reason : ''),
    }),
    rememberSilence: assign({
      result: ({ context: { limitMs, unknown } }) => ({
        outcome: 'failed' as const,
        reason: `there is no certificate after ${limitMs / 1_000} s${unknown === '' ? '' : `: ${unknown}`}`,
      }),
    }),
    /** Effect: whoever waits is told; what is left concerns nobody. */
    settle: (_, _params: SigningRequestOutput) => {},
  },
}).createMachine({
  id: 'signing-request',
  description: 'A certificate that the signer of a cluster is asked for.',
  meta: { timeline: noLane },
  context: ({ input }) => ({
    ...input,
    result: { outcome: 'failed', reason: 'nothing came of it' },
    unknown: '',
    readings: 0,
  }),
  output: ({ context }) => context.result,
  initial: 'asking',
  states: {
    asking: {
      description: 'Until there is a certificate, or there will be none.',
      after: { answerLimit: { target: 'told', actions: 'rememberSilence' } },
      initial: 'making',
      states: {
        making: {
          description: 'The request becomes an object.',
          meta: { waitsFor: 'the answer of the API server; the whole of it has a limit' },
          invoke: {
            id: 'creation',
            src: 'createRequest',
            onDone: [
              failedTo('#signing-request.told'),
              { guard: 'approves', target: 'approving' },
              { target: 'reading' },
            ],
            onError: brokenTo('#signing-request.told'),
          },
        },
        approving: {
          meta: { waitsFor: 'the answer of the API server; the whole of it has a limit' },
          invoke: {
            id: 'approval',
            src: 'approveRequest',
            onDone: [failedTo('#signing-request.told'), { target: 'reading' }],
            onError: brokenTo('#signing-request.told'),
          },
        },
        reading: {
          meta: { waitsFor: 'the answer of the API server; the whole of it has a limit' },
          invoke: {
            id: 'reading',
            src: 'readRequest',
            onDone: [
              {
                guard: { type: 'isIssued', params: ({ event }) => event.output },
                target: '#signing-request.told',
                actions: 'rememberSuccess',
              },
              {
                guard: { type: 'isRefused', params: ({ event }) => event.output },
                target: '#signing-request.told',
                actions: { type: 'rememberRefusal', params: ({ event }) => ({ reason: reasonIn(event.output) }) },
              },
              { target: 'resting', actions: { type: 'rememberReading', params: ({ event }) => event.output } },
            ],
            onError: brokenTo('#signing-request.told'),
          },
        },
        resting: {
          description: 'The signer has not signed yet.',
          after: { pollInterval: 'reading' },
        },
      },
    },
    told: {
      description: 'Whoever waits knows. The object goes; where it cannot be removed, Kubernetes does it in an hour.',
      entry: { type: 'settle', params: ({ context }) => context.result },
      after: { removalLimit: 'over' },
      invoke: { id: 'removal', src: 'removeRequest', onDone: 'over', onError: 'over' },
    },
    over: { type: 'final' },
  },
});

const diagram = 'signing-request';
const ownRow = (type: string, to: string): CatalogueRow<typeof diagram> => ({
  ...{ type, from: 'signing-request-N', to, diagram, seeds: [] },
});
export const signingRequestCatalogue: readonly CatalogueRow<typeof diagram>[] = [
  ...['creation', 'approval', 'reading', 'removal'].map((step) => ownRow('spawn', `signing-request-N/${step}`)),
  ...['answerLimit', 'pollInterval', 'removalLimit'].map((timer) => ownRow(`timer ${timer}`, 'signing-request-N')),
];

function reasonIn(reading: RequestReading): string {
  return 'reason' in reading ? reading.reason : '';
}

function failedTo<const Target extends string>(target: Target) {
  type Done = { event: { output: RequestStep } };
  return {
    guard: { type: 'isFailed' as const, params: ({ event }: Done) => event.output },
    target,
    actions: {
      type: 'rememberFailure' as const,
      params: ({ event: { output } }: Done) => ({ reason: output.outcome === 'failed' ? output.reason : '' }),
    },
  };
}

/** The effect has a bug. */
function brokenTo<const Target extends string>(target: Target) {
  const params = ({ event }: { event: { error: unknown } }) => ({ reason: reasonOf(event.error) });
  return { target, actions: { type: 'rememberFailure' as const, params } };
}
