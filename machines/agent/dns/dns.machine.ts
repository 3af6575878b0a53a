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
  /** The port was open: what fails from then on is tried again. */
  hasListened: boolean;
  /** The last pause; 0 while the port has not failed lately. */
  pauseMs: number;
}

/** A port is opened, or it is not, at once. */
const openLimitMs = 5_000;
const firstPauseMs = 500;
const longestPauseMs = 30_000;
/** How long the port must be open for the next pause to be the first one again. */
const trialMs = 60_000;

/**
 * The workload's name server: listening, failing to, and listening again. A port that cannot be had at the start ends the
 * agent, before an Envoy is there; one that is lost later does not, for the Envoy that serves needs no names.
 */
export const dnsMachine = setup({
  types: {
    context: {} as DnsContext,
    events: {} as DnsStart | DnsPortListening | DnsPortFailed | NameTableReceived,
    children: {} as { server: 'server' },
  },
  actors: {
    /** The sockets; answers questions, and tells of tables. */
    server: callbackEffect<{ type: never }, undefined>('server'),
  },
  delays: { openLimit: openLimitMs, pause: ({ context }) => context.pauseMs, trial: trialMs },
  guards: { hasListened: ({ context }) => context.hasListened },
  actions: {
    rememberListening: assign({ hasListened: true }),
    lengthenPause: assign({
      pauseMs: ({ context }) => Math.min(longestPauseMs, Math.max(firstPauseMs, context.pauseMs * 2)),
    }),
    forgetPauses: assign({ pauseMs: 0 }),
    reportListening: sendParent(
      (_, { addresses, port }: Omit<DnsPortListening, 'type'>): DnsListening => ({
        type: 'dns.listening',
        addresses,
        port,
      }),
    ),
    /** The status actor does not say that this proxy is ready before the first table is there. */
    tellNames: sendTo(peer('status'), { type: 'names.known' }),
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
      description: 'The port is open, or about to be.',
      invoke: {
        id: 'server',
        src: 'server',
        onError: [
          { guard: 'hasListened', target: 'pausing', actions: 'lengthenPause' },
          {
            target: 'failed',
            actions: { type: 'reportFailed', params: ({ event }) => ({ reason: reasonOf(event.error) }) },
          },
        ],
      },
      on: {
        'dns-port.failed': [
          { guard: 'hasListened', target: 'pausing', actions: 'lengthenPause' },
          { target: 'failed', actions: { type: 'reportFailed', params: ({ event }) => ({ reason: event.reason }) } },
        ],
      },
      initial: 'opening',
      states: {
        opening: {
          description: 'Nobody is answered yet.',
          after: {
            openLimit: [
              { guard: 'hasListened', target: '#dns.pausing', actions: 'lengthenPause' },
              {
                target: '#dns.failed',
                actions: { type: 'reportFailed', params: { reason: `DNS port not open after ${openLimitMs} ms` } },
              },
            ],
          },
          on: {
            'dns-port.listening': {
              target: 'answering',
              actions: ['rememberListening', { type: 'reportListening', params: ({ event }) => event }],
            },
            'name-table.received': { actions: 'tellNames' },
          },
        },
        answering: {
          description: 'Questions are answered.',
          after: { trial: { actions: 'forgetPauses' } },
          initial: 'without names',
          states: {
            'without names': {
              meta: { waitsFor: 'the control plane, which may have nothing to say for long' },
              description: 'No table has come yet: no name is known here.',
              on: { 'name-table.received': { target: 'with names', actions: 'tellNames' } },
            },
            'with names': {
              meta: { waitsFor: 'questions: this is the work' },
              description: "The control plane's names are known.",
              on: { 'name-table.received': { description: 'Another table, whole, in the place of the last one.' } },
            },
          },
        },
      },
    },
    pausing: {
      description: 'The port was lost: it is tried again, after longer each time.',
      after: { pause: 'open' },
    },
    failed: {
      meta: { waitsFor: 'the end of the agent, which has been told' },
      description: 'The port could not be had.',
    },
  },
});
