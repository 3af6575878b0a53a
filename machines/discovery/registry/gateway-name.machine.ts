import { assign, sendParent, setup } from 'xstate';
import { promiseEffect } from '../../effect.ts';
import { onEffectError, onFailedResponse, onTimeout } from '../failed-requests.ts';
import type { GatewayNameFailed, GatewayNameResolved } from '../protocol.ts';
import { noLane } from '../timeline.ts';

export interface GatewayNameInput {
  hostname: string;
}

interface GatewayNameContext extends GatewayNameInput {
  addresses: string[];
  timeToLiveMs: number;
  failures: number;
}

/** Addresses of both families, sorted. */
export type NameResolution =
  | { outcome: 'resolved'; addresses: string[]; timeToLiveMs: number }
  | { outcome: 'failed'; reason: string };

/** A server is tried twice, for two seconds each; the limit matters for configurations with many servers. */
const resolveLimitMs = 15_000;
/** At least 30 s, so that the time to live does not cause a full push every second (MinGatewayTTL), and at most one hour (MaxGatewayTTL). */
const minRefreshMs = 30_000;
const maxRefreshMs = 3_600_000;
const minRetryMs = 1_000;
/** Maximum delay until a network is reachable again after a DNS outage. */
const maxRetryMs = 60_000;
const maxFailures = 7;

/** The last addresses apply however long DNS fails, so that an outage of DNS does not separate networks. */
export const gatewayNameMachine = setup({
  types: {
    context: {} as GatewayNameContext,
    input: {} as GatewayNameInput,
    children: {} as { resolving: 'resolveName' },
  },
  actors: {
    resolveName: promiseEffect<NameResolution, GatewayNameInput>('resolveName'),
  },
  delays: {
    resolveLimit: resolveLimitMs,
    refreshInterval: ({ context: { timeToLiveMs } }) => Math.min(Math.max(timeToLiveMs, minRefreshMs), maxRefreshMs),
    retryDelay: ({ context: { failures } }) => Math.min(minRetryMs * 2 ** (failures - 1), maxRetryMs),
  },
  guards: {
    isChanged: ({ context }, params: NameResolution) =>
      params.outcome === 'resolved' && params.addresses.join() !== context.addresses.join(),
    isResolved: (_, params: NameResolution) => params.outcome === 'resolved',
  },
  actions: {
    recordAddresses: assign((_, params: NameResolution) => {
      if (params.outcome === 'failed') return {};
      const { addresses, timeToLiveMs } = params;
      return { addresses, timeToLiveMs, failures: 0 };
    }),
    countFailure: assign({ failures: ({ context }) => Math.min(context.failures + 1, maxFailures) }),
    applyAddresses: (_, _params: NameResolution) => {},
    reportResolved: sendParent(
      ({ context: { hostname, addresses } }): GatewayNameResolved => ({
        type: 'gateway-name.resolved',
        hostname,
        addresses,
      }),
    ),
    reportFailed: sendParent(
      ({ context: { hostname, addresses } }, { reason }: { reason: string }): GatewayNameFailed => ({
        type: 'gateway-name.failed',
        hostname,
        addresses,
        reason,
      }),
    ),
  },
}).createMachine({
  id: 'gateway-name',
  description: 'A host name of network gateways.',
  meta: { timeline: noLane },
  context: ({ input }) => ({ ...input, addresses: [], timeToLiveMs: 0, failures: 0 }),
  initial: 'resolving',
  states: {
    resolving: {
      description: 'Resolves the name. The last addresses apply.',
      invoke: {
        id: 'resolving',
        src: 'resolveName',
        input: ({ context: { hostname } }) => ({ hostname }),
        onDone: [
          {
            guard: { type: 'isChanged', params: ({ event }) => event.output },
            target: 'resolved',
            actions: [
              { type: 'recordAddresses', params: ({ event }) => event.output },
              { type: 'applyAddresses', params: ({ event }) => event.output },
              'reportResolved',
            ],
          },
          {
            description: 'The addresses are unchanged.',
            guard: { type: 'isResolved', params: ({ event }) => event.output },
            target: 'resolved',
            actions: { type: 'recordAddresses', params: ({ event }) => event.output },
          },
          onFailedResponse,
        ],
        onError: onEffectError,
      },
      after: {
        resolveLimit: onTimeout(`no answer of DNS in ${resolveLimitMs} ms`),
      },
    },
    resolved: {
      description: 'The name was resolved recently.',
      after: { refreshInterval: 'resolving' },
    },
    'backing off': {
      description: 'The name did not resolve. It is resolved again at increasing intervals.',
      after: { retryDelay: 'resolving' },
    },
  },
});
