import { assign, sendParent, sendTo, setup } from 'xstate';
import { callbackEffect, reasonOf } from '../../effect.ts';
import type {
  DnsFailed,
  DnsListening,
  DnsPortFailed,
  DnsPortListening,
  DnsStart,
  NameTableReceived,
} from '../dns-protocol.ts';
import { peer } from '../peers.ts';
import { dnsTimeline } from '../timeline.ts';

interface DnsContext {
  /** Whether the port was ever open: later failures are retried. */
  hasListened: boolean;
  pauseMs: number;
}

const openLimitMs = 5_000;
const firstPauseMs = 500;
const maxPauseMs = 30_000;
/** The backoff is reset after the port was open for this time. */
const trialMs = 60_000;

/** If the port cannot be opened at the start, the agent fails before it starts Envoy. A later failure is retried. */
export const dnsMachine = setup({
  types: {
    context: {} as DnsContext,
    events: {} as DnsStart | DnsPortListening | DnsPortFailed | NameTableReceived,
    children: {} as { server: 'server' },
  },
  actors: {
    server: callbackEffect<{ type: never }, undefined>('server'),
  },
  delays: { openLimit: openLimitMs, pause: ({ context }) => context.pauseMs, trial: trialMs },
  guards: { hasListened: ({ context }) => context.hasListened },
  actions: {
    recordListening: assign({ hasListened: true }),
    lengthenPause: assign({
      pauseMs: ({ context }) => Math.min(maxPauseMs, Math.max(firstPauseMs, context.pauseMs * 2)),
    }),
    resetPause: assign({ pauseMs: 0 }),
    reportListening: sendParent(
      (_, { addresses, port }: Omit<DnsPortListening, 'type'>): DnsListening => ({
        type: 'dns.listening',
        addresses,
        port,
      }),
    ),
    /** The proxy is not ready before the first name table. */
    reportNames: sendTo(peer('status'), { type: 'names.available' }),
    reportFailed: sendParent((_, { reason }: { reason: string }): DnsFailed => ({ type: 'dns.failed', reason })),
  },
}).createMachine({
  id: 'dns',
  description: "The workload's name server.",
  meta: { timeline: dnsTimeline },
  context: { hasListened: false, pauseMs: 0 },
  initial: 'idle',
  states: {
    idle: {
      meta: { waitsFor: 'dns.start, which the agent sends at once' },
      on: { 'dns.start': 'open' },
    },
    open: {
      description: 'The port is open or being opened.',
      invoke: {
        id: 'server',
        src: 'server',
        onError: [
          { guard: 'hasListened', target: 'backing off', actions: 'lengthenPause' },
          {
            target: 'failed',
            actions: { type: 'reportFailed', params: ({ event }) => ({ reason: reasonOf(event.error) }) },
          },
        ],
      },
      on: {
        'dns-port.failed': [
          { guard: 'hasListened', target: 'backing off', actions: 'lengthenPause' },
          { target: 'failed', actions: { type: 'reportFailed', params: ({ event }) => ({ reason: event.reason }) } },
        ],
      },
      initial: 'opening',
      states: {
        opening: {
          description: 'Queries wait until the port is open.',
          after: {
            openLimit: [
              { guard: 'hasListened', target: '#dns.backing off', actions: 'lengthenPause' },
              {
                target: '#dns.failed',
                actions: { type: 'reportFailed', params: { reason: `DNS port not open after ${openLimitMs} ms` } },
              },
            ],
          },
          on: {
            'dns-port.listening': {
              target: 'serving',
              actions: ['recordListening', { type: 'reportListening', params: ({ event }) => event }],
            },
            'name-table.received': { actions: 'reportNames' },
          },
        },
        serving: {
          description: 'The server responds to queries.',
          after: { trial: { actions: 'resetPause' } },
          initial: 'without names',
          states: {
            'without names': {
              meta: { waitsFor: 'the name table of the control plane, which may be late' },
              description: 'No name table has been received.',
              on: { 'name-table.received': { target: 'with names', actions: 'reportNames' } },
            },
            'with names': {
              meta: { waitsFor: 'queries: normal operation' },
              description: 'The name table of the control plane is served.',
              on: { 'name-table.received': { description: 'Another name table replaces the current one.' } },
            },
          },
        },
      },
    },
    'backing off': {
      description: 'The port failed. Retries at increasing intervals.',
      after: { pause: 'open' },
    },
    failed: {
      meta: { waitsFor: 'the end of the agent, which has been notified' },
      description: 'The port could not be opened.',
    },
  },
});
