import { assign, sendParent, setup } from 'xstate';
import { callbackEffect, reasonOf } from '../effect.ts';
import type { Timeline } from '../timeline.ts';
import type { PortFailed, PortListening } from './port-protocol.ts';

export interface OptionalPort<Listening extends string, Failed extends string> {
  readonly id: string;
  readonly description: string;
  readonly timeline: Timeline;
  readonly listening: Listening;
  readonly failed: Failed;
}

interface OptionalPortContext {
  /** Time until the port is opened again; 0 without a recent failure. */
  pauseMs: number;
}

/** The operating system opens or rejects a port immediately. */
const openLimitMs = 5_000;
const minPauseMs = 500;
const maxPauseMs = 30_000;
/** The backoff is reset after the port was open for this time. */
const trialMs = 60_000;

/** Opens a port when proxies are served, and again after each failure. Proxies do not depend on it. */
export function optionalPortMachine<Listening extends string, Failed extends string>(
  port: OptionalPort<Listening, Failed>,
) {
  const backingOffState = `#${port.id}.backing off`;
  return setup({
    types: {
      context: {} as OptionalPortContext,
      events: {} as PortListening | PortFailed,
      children: {} as { port: 'port' },
    },
    actors: {
      port: callbackEffect<{ type: never }, undefined>('port'),
    },
    delays: { openLimit: openLimitMs, pause: ({ context }) => context.pauseMs, trial: trialMs },
    actions: {
      lengthenPause: assign({
        pauseMs: ({ context }) => Math.min(maxPauseMs, Math.max(minPauseMs, context.pauseMs * 2)),
      }),
      resetPause: assign({ pauseMs: 0 }),
      reportListening: sendParent((_, { address }: { address: string }) => ({ type: port.listening, address })),
      reportFailed: sendParent((_, { reason }: { reason: string }) => ({ type: port.failed, reason })),
    },
  }).createMachine({
    id: port.id,
    description: port.description,
    meta: { timeline: port.timeline },
    context: { pauseMs: 0 },
    initial: 'open',
    states: {
      open: {
        description: 'The port is open, or is being opened.',
        invoke: {
          id: 'port',
          src: 'port',
          onError: {
            target: 'backing off',
            actions: [
              'lengthenPause',
              { type: 'reportFailed', params: ({ event }) => ({ reason: reasonOf(event.error) }) },
            ],
          },
        },
        on: {
          'port.closed': {
            target: 'backing off',
            actions: ['lengthenPause', { type: 'reportFailed', params: ({ event }) => event }],
          },
        },
        initial: 'opening',
        states: {
          opening: {
            description: 'The port is not open yet.',
            after: {
              openLimit: {
                target: backingOffState,
                actions: [
                  'lengthenPause',
                  { type: 'reportFailed', params: { reason: `port not open after ${openLimitMs} ms` } },
                ],
              },
            },
            on: {
              'port.listening': {
                target: 'serving',
                actions: { type: 'reportListening', params: ({ event }) => event },
              },
            },
          },
          serving: {
            description: 'The port is open.',
            meta: { waitsFor: 'clients: normal operation' },
            after: { trial: { actions: 'resetPause' } },
            on: { 'port.listening': { description: 'The port is reported as open already.' } },
          },
        },
      },
      'backing off': {
        description: 'The port is closed. It is opened again after a delay that doubles up to 30 s.',
        after: { pause: 'open' },
      },
    },
  });
}
