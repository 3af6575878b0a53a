import { assign, enqueueActions, setup } from 'xstate';
import { promiseEffect } from '../../effect.ts';
import { peer } from '../peers.ts';
import type { ConfigKeyText, PushRequest } from '../protocol.ts';
import { noLane } from '../timeline.ts';

export interface CredentialDates {
  /** Secrets of which a certificate or revocation list became valid or expired since the last comparison. */
  due: ConfigKeyText[];
  nextInMs: number | null;
}

interface CredentialDatesContext {
  restMs: number;
}

/** Maximum interval of comparisons: the clock may be set, and Secrets may be added. */
const maxRestMs = 60_000;
/** Minimum interval, because a Secret stays due until the requested context is built. */
const minRestMs = 1_000;

/**
 * Requests a push of Secrets when one of their dates passes, so that a revocation list is used from its start and its expiry is reported, although
 * the Secret is unchanged.
 */
export const credentialDatesMachine = setup({
  types: { context: {} as CredentialDatesContext, children: {} as { comparing: 'compareDates' } },
  actors: {
    compareDates: promiseEffect<CredentialDates, undefined>('compareDates'),
  },
  delays: { checkDelay: ({ context }) => context.restMs },
  actions: {
    setCheckDelay: assign({
      restMs: (_, { nextInMs }: CredentialDates) => Math.min(Math.max(nextInMs ?? maxRestMs, minRestMs), maxRestMs),
    }),
    requestPush: enqueueActions(({ enqueue }, { due }: CredentialDates) => {
      if (due.length === 0) return;
      enqueue.sendTo(peer('push'), {
        type: 'push.request',
        configs: due,
        forced: false,
        reasons: { config: due.length },
      } satisfies PushRequest);
    }),
  },
}).createMachine({
  id: 'credential-dates',
  description: 'Dates of Secrets in use.',
  meta: { timeline: noLane },
  context: { restMs: maxRestMs },
  initial: 'waiting',
  states: {
    waiting: {
      description: 'No date has passed since the last comparison.',
      after: { checkDelay: 'comparing' },
    },
    comparing: {
      description: 'Compares the dates in Secrets with the clock.',
      meta: { waitsFor: 'a computation' },
      invoke: {
        id: 'comparing',
        src: 'compareDates',
        onDone: {
          target: 'waiting',
          actions: [
            { type: 'setCheckDelay', params: ({ event }) => event.output },
            { type: 'requestPush', params: ({ event }) => event.output },
          ],
        },
        onError: { target: 'waiting', description: 'An internal error: the dates are compared again later.' },
      },
    },
  },
});
