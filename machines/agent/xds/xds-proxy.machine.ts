import { assign, enqueueActions, sendParent, sendTo, setup } from 'xstate';
import { callbackEffect } from '../../effect.ts';
import { peer } from '../peers.ts';
import type { CertificateServed, TrustBundleReceived, TrustBundleServed } from '../secrets-protocol.ts';
import { noLane } from '../timeline.ts';
import { type FetchLimits, wasmModuleMachine } from '../wasm/wasm-module.machine.ts';
import type { ModuleFailed, ModuleFetched, ModuleRequired } from '../wasm-protocol.ts';
import type {
  CertificateReport,
  DownstreamOpened,
  HealthChanged,
  HealthReport,
  SocketFailed,
  SocketListening,
  StreamSupersede,
  TrustBundleRefused,
  XdsFailed,
  XdsListening,
  XdsStart,
  XdsStreamReport,
} from '../xds-protocol.ts';
import { type ProbeTimes, workloadHealthMachine } from './workload-health.machine.ts';
import { clearFailures, noFailures, type UpstreamFailures, withFailure } from './xds-pause.ts';
import { xdsStreamMachine } from './xds-stream.machine.ts';
import type { ProbedHealth } from './xds-stream.setup.ts';

export interface XdsProxyInput {
  /** Path of the socket; empty without proxy. */
  socket: string;
  /** Whether this workload has secrets, with roots that Envoy trusts. */
  hasSecrets: boolean;
  probe: ProbeTimes | null;
  /** Whether streams are those of proxyless gRPC: one per target of a client, and one per server. */
  proxyless: boolean;
  moduleLimits?: FetchLimits;
}

interface KnownStream {
  readonly stream: number;
  readonly name: string;
  readonly envoy: string;
}

interface XdsProxyContext extends XdsProxyInput {
  streams: readonly KnownStream[];
  failures: UpstreamFailures;
  certificate: string;
  health: ProbedHealth | null;
  /** Number of streams that may open without a delay. */
  tokens: number;
  /** Wasm modules that are not fetched yet. */
  modules: readonly { readonly id: number; readonly stream: number }[];
}

/** Hot restarts and replacements need several streams. */
const maxEnvoyStreams = 8;
const maxProxylessStreams = 64;
/** After these streams, one opens per period, because each uses a connection to the control plane. */
const burstSize = 16;
const refillMs = 500;

const nameOf = (stream: number): string => `xds-stream-${stream}`;
const moduleName = (id: number): `wasm-module-${number}` => `wasm-module-${id}`;

const proxySetup = setup({
  types: {
    context: {} as XdsProxyContext,
    input: {} as XdsProxyInput,
    events: {} as
      | XdsStart
      | TrustBundleServed
      | CertificateServed
      | SocketListening
      | SocketFailed
      | DownstreamOpened
      | HealthChanged
      | ModuleFetched
      | ModuleFailed
      | XdsStreamReport,
    children: {} as {
      server: 'server';
      'workload-health': 'workloadHealth';
      [stream: `xds-stream-${number}`]: 'stream';
      [module: `wasm-module-${number}`]: 'wasmModule';
    },
  },
  actors: {
    server: callbackEffect<{ type: never }, { socket: string }>('server'),
    stream: xdsStreamMachine,
    wasmModule: wasmModuleMachine,
    workloadHealth: workloadHealthMachine,
  },
  delays: { refill: refillMs },
  guards: {
    hasSecrets: ({ context }) => context.hasSecrets,
    isDisabled: ({ context }) => context.socket === '',
    hasToken: ({ context }) => context.tokens > 0,
    isOneTokenMissing: ({ context }) => context.tokens + 1 >= burstSize,
  },
  actions: {
    reportDisabled: sendParent({ type: 'xds.listening', socket: '' } satisfies XdsListening),
    reportListening: sendParent(
      (_, { socket }: { socket: string }): XdsListening => ({ type: 'xds.listening', socket }),
    ),
    reportFailed: sendParent((_, { reason }: { reason: string }): XdsFailed => ({ type: 'xds.failed', reason })),
    /** Only the newest stream of an Envoy counts: Envoy has closed the others, even if the agent has not received this yet. */
    supersedeStreams: enqueueActions(({ context, enqueue }, { envoy }: { envoy: string }) => {
      const { proxyless } = context;
      const previousStreams = proxyless ? [] : context.streams.filter((streamEntry) => streamEntry.envoy === envoy);
      const otherStreams = proxyless
        ? context.streams
        : context.streams.filter((streamEntry) => streamEntry.envoy !== envoy);
      const maxStreams = proxyless ? maxProxylessStreams : maxEnvoyStreams;
      const surplusStreams = otherStreams.slice(
        0,
        Math.max(0, context.streams.length + 1 - maxStreams - previousStreams.length),
      );
      for (const { name } of previousStreams) {
        const reason = 'replaced by a newer stream of the same Envoy';
        enqueue.sendTo(name as 'xds-stream-0', { type: 'stream.supersede', reason } satisfies StreamSupersede);
      }
      for (const { name } of surplusStreams) {
        const reason = `limit of ${maxStreams} streams reached`;
        enqueue.sendTo(name as 'xds-stream-0', { type: 'stream.supersede', reason } satisfies StreamSupersede);
      }
    }),
    openStream: enqueueActions(
      ({ context, enqueue }, { stream, envoy, protocol, chance }: Omit<DownstreamOpened, 'type'>) => {
        const { streams, failures, tokens, certificate, health } = context;
        const name = nameOf(stream) as `xds-stream-${number}`;
        const isRateLimited = tokens === 0 && failures.count < rateLimitedFailures.count;
        enqueue.spawnChild('stream', {
          id: name,
          input: {
            ...{ stream, protocol, chance, certificate, health },
            failures: isRateLimited ? { ...failures, ...rateLimitedFailures } : failures,
          },
        });
        enqueue.assign({
          streams: [...streams, { stream, name, envoy }],
          tokens: Math.max(0, tokens - 1),
        });
      },
    ),
    removeStream: enqueueActions(({ context, enqueue }, { stream }: { stream: number }) => {
      enqueue.stopChild(nameOf(stream));
      for (const module of context.modules) if (module.stream === stream) enqueue.stopChild(moduleName(module.id));
      enqueue.assign({
        streams: context.streams.filter((streamEntry) => streamEntry.stream !== stream),
        modules: context.modules.filter((module) => module.stream !== stream),
      });
    }),
    fetchModule: enqueueActions(({ context, enqueue }, { type: _, ...module }: ModuleRequired) => {
      const { id, stream } = module;
      const { moduleLimits: limits } = context;
      enqueue.spawnChild('wasmModule', { id: moduleName(id), input: { ...module, ...(limits && { limits }) } });
      enqueue.assign({ modules: [...context.modules, { id, stream }] });
    }),
    removeModule: enqueueActions(({ context, enqueue }, { id }: { id: number }) => {
      enqueue.stopChild(moduleName(id));
      enqueue.assign({ modules: context.modules.filter((module) => module.id !== id) });
    }),
    reportModule: enqueueActions(({ context, enqueue }, report: ModuleFetched | ModuleFailed) => {
      if (context.streams.every(({ stream }) => stream !== report.stream)) return;
      enqueue.sendTo(nameOf(report.stream) as 'xds-stream-0', report);
    }),
    recordFailure: assign({
      failures: ({ context }, params: { isRefusal: boolean; retryAfterMs: number }) =>
        withFailure(context.failures, params),
    }),
    resetFailures: assign({ failures: ({ context }) => clearFailures(context.failures) }),
    addToken: assign({ tokens: ({ context }) => context.tokens + 1 }),
    forwardBundle: sendTo(peer('secrets'), (_, params: TrustBundleReceived) => params),
    rejectBundle: enqueueActions(({ context, enqueue }, { hash }: { hash: string }) => {
      const reason = 'this agent serves no secrets: Envoy trusts the roots in its bootstrap';
      for (const { name } of context.streams) {
        enqueue.sendTo(name as 'xds-stream-0', {
          type: 'trust-bundle.refused',
          hash,
          reason,
        } satisfies TrustBundleRefused);
      }
    }),
    recordCertificate: assign({ certificate: (_, { serialNumber }: CertificateServed) => serialNumber }),
    reportCertificate: enqueueActions(({ context, enqueue }, { serialNumber }: CertificateServed) => {
      for (const { name } of context.streams) {
        enqueue.sendTo(name as 'xds-stream-0', {
          type: 'certificate.report',
          serialNumber,
        } satisfies CertificateReport);
      }
    }),
    probeWorkload: enqueueActions(({ context: { probe }, enqueue }) => {
      if (probe !== null) enqueue.spawnChild('workloadHealth', { id: 'workload-health', input: probe });
    }),
    recordHealth: assign({ health: (_, { healthy, message }: HealthChanged) => ({ healthy, message }) }),
    reportHealth: enqueueActions(({ context, enqueue }, { healthy, message }: HealthChanged) => {
      for (const { name } of context.streams) {
        enqueue.sendTo(name as 'xds-stream-0', { type: 'health.report', healthy, message } satisfies HealthReport);
      }
    }),
    forwardToStreams: enqueueActions(({ context, enqueue }, params: TrustBundleServed) => {
      for (const { name } of context.streams) enqueue.sendTo(name as 'xds-stream-0', params);
    }),
  },
});

/** A stream that exceeds the rate limit has this backoff. */
const rateLimitedFailures = { count: 3, isRefusal: false, retryAfterMs: 0 };

/**
 * Only the newest stream of an Envoy is kept. Parent and child of a hot restart are two Envoys; otherwise each would end the other's stream
 * during the drain. All streams of proxyless gRPC are kept, because gRPC for Go opens one per target.
 */
export const xdsProxyMachine = proxySetup.createMachine({
  id: 'xds-proxy',
  description: 'Proxies the xDS streams of Envoy to the control plane.',
  meta: { timeline: noLane },
  context: ({ input }) => ({
    ...input,
    streams: [],
    failures: noFailures,
    certificate: '',
    health: null,
    tokens: burstSize,
    modules: [],
  }),
  initial: 'idle',
  on: {
    'xds.start': {},
    'trust-bundle.served': {},
    'certificate.served': { actions: { type: 'recordCertificate', params: ({ event }) => event } },
  },
  states: {
    idle: {
      meta: { waitsFor: 'xds.start, which the agent sends when the status port is open' },
      on: { 'xds.start': [{ guard: 'isDisabled', target: 'disabled', actions: 'reportDisabled' }, { target: 'open' }] },
    },
    disabled: { meta: { waitsFor: 'nothing' }, description: 'No proxy is needed with a custom bootstrap.' },
    open: {
      meta: { waitsFor: 'streams of Envoys: normal operation' },
      description: 'The socket is open or being opened.',
      entry: 'probeWorkload',
      invoke: { id: 'server', src: 'server', input: ({ context: { socket } }) => ({ socket }) },
      on: {
        'socket.listening': { actions: { type: 'reportListening', params: ({ event }) => event } },
        'socket.failed': { actions: { type: 'reportFailed', params: ({ event }) => event } },
        'stream.ended': { actions: { type: 'removeStream', params: ({ event }) => event } },
        'upstream.failed': { actions: { type: 'recordFailure', params: ({ event }) => event } },
        'upstream.served': { actions: 'resetFailures' },
        'module.required': { actions: { type: 'fetchModule', params: ({ event }) => event } },
        'module.released': { actions: { type: 'removeModule', params: ({ event }) => event } },
        'module.fetched': {
          actions: [
            { type: 'reportModule', params: ({ event }) => event },
            { type: 'removeModule', params: ({ event }) => event },
          ],
        },
        'module.failed': { actions: { type: 'reportModule', params: ({ event }) => event } },
        'trust-bundle.received': [
          { guard: 'hasSecrets', actions: { type: 'forwardBundle', params: ({ event }) => event } },
          { actions: { type: 'rejectBundle', params: ({ event }) => event } },
        ],
        'trust-bundle.served': { actions: { type: 'forwardToStreams', params: ({ event }) => event } },
        'certificate.served': {
          actions: [
            { type: 'recordCertificate', params: ({ event }) => event },
            { type: 'reportCertificate', params: ({ event }) => event },
          ],
        },
        'health.changed': {
          actions: [
            { type: 'recordHealth', params: ({ event }) => event },
            { type: 'reportHealth', params: ({ event }) => event },
          ],
        },
        'downstream.opened': {
          target: '.refilling',
          reenter: false,
          actions: [
            { type: 'supersedeStreams', params: ({ event }) => event },
            { type: 'openStream', params: ({ event }) => event },
          ],
        },
      },
      initial: 'full',
      states: {
        full: { description: 'All tokens are available.' },
        refilling: {
          description: 'Adds one token per 500 ms: a stream without a token starts after a pause.',
          after: {
            refill: [
              { guard: 'isOneTokenMissing', target: 'full', actions: 'addToken' },
              { target: 'refilling', reenter: true, actions: 'addToken' },
            ],
          },
        },
      },
    },
  },
});
