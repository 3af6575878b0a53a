import { assign, setup } from 'xstate';
import type { CatalogueRow } from '../../catalogue-row.ts';
import { promiseEffect, reasonOf } from '../../effect.ts';
import { noLane } from '../timeline.ts';

export interface SigningRequestInput {
  /** Whether this program approves the request. Otherwise another one must. */
  approves: boolean;
  /** Maximum time from the creation of the object to the certificate. */
  limitMs: number;
}

export type RequestStep = { outcome: 'done' } | { outcome: 'failed'; reason: string };
/** `issued`: the effects have the requested certificate. */
export type RequestReading =
  | { outcome: 'issued' }
  | { outcome: 'pending' }
  /** Denied, failed, or signed with other contents than requested. */
  | { outcome: 'refused'; reason: string }
  | { outcome: 'unknown'; reason: string };

export type SigningRequestOutput = { outcome: 'issued' } | { outcome: 'refused' | 'failed'; reason: string };

interface SigningRequestContext extends SigningRequestInput {
  result: SigningRequestOutput;
  /** Why the state is unknown; empty if it is known. */
  unknown: string;
  readings: number;
}

const minPollMs = 200;
const maxPollMs = 1_000;
const removalMs = 5_000;

/**
 * One certificate from a signer of the cluster (certificates.k8s.io): a CertificateSigningRequest, which is approved here or elsewhere, and signed by
 * another controller or never.
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
    readRequest: promiseEffect<RequestReading, undefined>('readRequest'),
    removeRequest: promiseEffect<void, undefined>('removeRequest'),
  },
  delays: {
    responseLimit: ({ context }) => context.limitMs,
    pollInterval: ({ context }) => Math.min(minPollMs * context.readings, maxPollMs),
    removalLimit: removalMs,
  },
  guards: {
    approves: ({ context }) => context.approves,
    hasFailed: (_, params: RequestStep) => params.outcome === 'failed',
    isIssued: (_, params: RequestReading) => params.outcome === 'issued',
    isRejected: (_, params: RequestReading) => params.outcome === 'refused',
  },
  actions: {
    recordFailure: assign({
      result: (_, params: { reason: string }) => ({ outcome: 'failed' as const, reason: params.reason }),
    }),
    recordRejection: assign({
      result: (_, params: { reason: string }) => ({ outcome: 'refused' as const, reason: params.reason }),
    }),
    recordSuccess: assign({ result: { outcome: 'issued' as const } }),
    recordReading: assign({
      readings: ({ context }) => context.readings + 1,
      unknown: (_, params: RequestReading) => (params.outcome === 'unknown' ? params.reason : ''),
    }),
    recordTimeout: assign({
      result: ({ context: { limitMs, unknown } }) => ({
        outcome: 'failed' as const,
        reason: `there is no certificate after ${limitMs / 1_000} s${unknown === '' ? '' : `: ${unknown}`}`,
      }),
    }),
    reportResult: (_, _params: SigningRequestOutput) => {},
  },
}).createMachine({
  id: 'signing-request',
  description: 'A certificate that is requested from a signer of the cluster.',
  meta: { timeline: noLane },
  context: ({ input }) => ({
    ...input,
    result: { outcome: 'failed', reason: 'nothing came of it' },
    unknown: '',
    readings: 0,
  }),
  output: ({ context }) => context.result,
  initial: 'requesting',
  states: {
    requesting: {
      description: 'The request is pending until the certificate is issued or the request fails.',
      after: { responseLimit: { target: 'removing', actions: 'recordTimeout' } },
      initial: 'creating',
      states: {
        creating: {
          description: 'Creates the CertificateSigningRequest.',
          meta: { waitsFor: 'the response of the API server; the whole request has a limit' },
          invoke: {
            id: 'creation',
            src: 'createRequest',
            onDone: [
              failedStepTransition('#signing-request.removing'),
              { guard: 'approves', target: 'approving' },
              { target: 'reading' },
            ],
            onError: onInternalErrorTo('#signing-request.removing'),
          },
        },
        approving: {
          meta: { waitsFor: 'the response of the API server; the whole request has a limit' },
          invoke: {
            id: 'approval',
            src: 'approveRequest',
            onDone: [failedStepTransition('#signing-request.removing'), { target: 'reading' }],
            onError: onInternalErrorTo('#signing-request.removing'),
          },
        },
        reading: {
          meta: { waitsFor: 'the response of the API server; the whole request has a limit' },
          invoke: {
            id: 'reading',
            src: 'readRequest',
            onDone: [
              {
                guard: { type: 'isIssued', params: ({ event }) => event.output },
                target: '#signing-request.removing',
                actions: 'recordSuccess',
              },
              {
                guard: { type: 'isRejected', params: ({ event }) => event.output },
                target: '#signing-request.removing',
                actions: {
                  type: 'recordRejection',
                  params: ({ event }) => ({ reason: failureReasonOf(event.output) }),
                },
              },
              { target: 'waiting', actions: { type: 'recordReading', params: ({ event }) => event.output } },
            ],
            onError: onInternalErrorTo('#signing-request.removing'),
          },
        },
        waiting: {
          description: 'The signer has not signed yet.',
          after: { pollInterval: 'reading' },
        },
      },
    },
    removing: {
      description: 'The result is reported. If the object cannot be removed, Kubernetes removes it after an hour.',
      entry: { type: 'reportResult', params: ({ context }) => context.result },
      after: { removalLimit: 'finished' },
      invoke: { id: 'removal', src: 'removeRequest', onDone: 'finished', onError: 'finished' },
    },
    finished: { type: 'final' },
  },
});

const diagram = 'signing-request';
const ownRow = (type: string, to: string): CatalogueRow<typeof diagram> => ({
  ...{ type, from: 'signing-request-N', to, diagram, seeds: [] },
});
export const signingRequestCatalogue: readonly CatalogueRow<typeof diagram>[] = [
  ...['creation', 'approval', 'reading', 'removal'].map((step) => ownRow('spawn', `signing-request-N/${step}`)),
  ...['responseLimit', 'pollInterval', 'removalLimit'].map((timer) => ownRow(`timer ${timer}`, 'signing-request-N')),
];

function failureReasonOf(requestReading: RequestReading): string {
  return 'reason' in requestReading ? requestReading.reason : '';
}

function failedStepTransition<const Target extends string>(target: Target) {
  type StepDone = { event: { output: RequestStep } };
  return {
    guard: { type: 'hasFailed' as const, params: ({ event }: StepDone) => event.output },
    target,
    actions: {
      type: 'recordFailure' as const,
      params: ({ event: { output } }: StepDone) => ({ reason: output.outcome === 'failed' ? output.reason : '' }),
    },
  };
}

function onInternalErrorTo<const Target extends string>(target: Target) {
  const params = ({ event }: { event: { error: unknown } }) => ({ reason: reasonOf(event.error) });
  return { target, actions: { type: 'recordFailure' as const, params } };
}
