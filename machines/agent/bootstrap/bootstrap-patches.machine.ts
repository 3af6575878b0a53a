import { assign, sendTo, setup } from 'xstate';
import { callbackEffect } from '../../effect.ts';
import type { PatchesCancel, PatchesCompleted, PatchesRequested } from '../protocol.ts';
import { noLane } from '../timeline.ts';
import { noFailures, type UpstreamCredential } from '../xds/xds-pause.ts';
import { type PatchesWait, waitAfter } from './bootstrap-patches.ts';

/** Includes reading the credentials and connecting (at most 5 s). */
const sendLimitMs = 20_000;
/** A control plane without support for BOOTSTRAP accepts the request and does not respond. */
const responseLimitMs = 10_000;

interface PatchesContext extends PatchesWait {
  /** Why the patches are invalid; empty if they are valid. */
  unusable: string;
}

/** Requests patches of Envoy's bootstrap from the control plane. */
export const bootstrapPatchesMachine = setup({
  types: {
    context: {} as PatchesContext,
    output: {} as Pick<PatchesContext, 'unusable'>,
    events: {} as PatchesRequested | PatchesCompleted,
    children: {} as { request: 'requestPatches' },
  },
  actors: {
    requestPatches: callbackEffect<PatchesCancel, { credential: UpstreamCredential }>('requestPatches'),
  },
  delays: {
    requestLimit: sendLimitMs,
    responseLimit: responseLimitMs,
    retryPause: ({ context }) => context.pauseMs,
  },
  guards: {
    isKnown: (_, { result: { is } }: PatchesCompleted) => is === 'patched' || is === 'unpatched',
    isUnusable: (_, { result: { is } }: PatchesCompleted) => is === 'unusable',
  },
  actions: {
    recordReason: assign({
      unusable: (_, { result }: PatchesCompleted) => (result.is === 'unusable' ? result.reason : ''),
    }),
    countFailure: assign(({ context }, { result }: Partial<PatchesCompleted>) => waitAfter(context, result)),
    cancelRequest: sendTo('request', (): PatchesCancel => ({ type: 'patches.cancel', waitedMs: responseLimitMs })),
  },
}).createMachine({
  id: 'bootstrap-patches',
  description:
    'Requests the bootstrap patches of the control plane until it responds: without it Envoy has no configuration.',
  meta: { timeline: noLane },
  context: { failures: noFailures, pauseMs: 0, unusable: '' },
  initial: 'requesting',
  states: {
    requesting: {
      invoke: {
        id: 'request',
        src: 'requestPatches',
        input: ({ context }) => ({ credential: context.failures.credential }),
        onError: { target: 'backing off', actions: { type: 'countFailure', params: {} } },
      },
      on: {
        'patches.completed': [
          { guard: { type: 'isKnown', params: ({ event }) => event }, target: 'completed' },
          {
            guard: { type: 'isUnusable', params: ({ event }) => event },
            target: 'completed',
            actions: { type: 'recordReason', params: ({ event }) => event },
          },
          { target: 'backing off', actions: { type: 'countFailure', params: ({ event }) => event } },
        ],
      },
      onDone: 'completed',
      initial: 'sending',
      states: {
        sending: {
          description: 'The request has not been sent yet.',
          on: { 'patches.requested': 'sent' },
          after: {
            requestLimit: { target: '#bootstrap-patches.backing off', actions: { type: 'countFailure', params: {} } },
          },
        },
        sent: {
          description: 'The control plane has the request.',
          after: { responseLimit: 'no response' },
        },
        'no response': {
          type: 'final',
          description: 'A control plane that does not patch bootstraps does not respond.',
          entry: 'cancelRequest',
        },
      },
    },
    'backing off': {
      description: 'The request failed; the log has the reason.',
      after: { retryPause: 'requesting' },
    },
    completed: { type: 'final', description: 'The patches are known or unusable.' },
  },
  output: ({ context: { unusable } }) => ({ unusable }),
});
