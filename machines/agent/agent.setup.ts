import { assign, enqueueActions, sendTo, setup, spawnChild, stopChild } from 'xstate';
import { callbackEffect, promiseEffect } from '../effect.ts';
import type { AccessLogsFailed } from './access-log-protocol.ts';
import { accessLogsMachine } from './access-logs/access-logs.machine.ts';
import { type DueOrder, isDueOrder, withOrder } from './agent-upgrade/due-orders.ts';
import { predecessorMachine } from './agent-upgrade/predecessor.machine.ts';
import { successorMachine } from './agent-upgrade/successor.machine.ts';
import { bootstrapPatchesMachine } from './bootstrap/bootstrap-patches.machine.ts';
import { grpcBootstrapMachine } from './bootstrap/grpc-bootstrap.machine.ts';
import { dnsMachine } from './dns/dns.machine.ts';
import type { DnsFailed, DnsListening } from './dns-protocol.ts';
import { type Adoption, type ClaimedIds, ongoingRestartOf } from './envoy/adoption.ts';
import { type SupervisorOutput, supervisorMachine } from './envoy/supervisor.machine.ts';
import { binaryWatcherMachine } from './files/binary-watcher.machine.ts';
import { certWatcherMachine } from './files/cert-watcher.machine.ts';
import type { GrpcBootstrapFailed, OutputWritten } from './grpc-bootstrap-protocol.ts';
import type {
  AgentSignalReceived,
  BinaryProven,
  BinaryWithdrawn,
  EpochsAdopted,
  FilesMissing,
  QuitRequested,
  RestartDecided,
  RestartEnded,
  Signal,
  StatusFailed,
  StatusListening,
  UpgradeRequested,
} from './protocol.ts';
import { secretsMachine } from './secrets/secrets.machine.ts';
import type { SecretsFailed, SecretsReady } from './secrets-protocol.ts';
import { type AgentSettings, provesIdentity } from './settings.ts';
import { statusMachine } from './status/status.machine.ts';
import type {
  SuccessionDone,
  SuccessionDue,
  SuccessionFailed,
  SuccessionRefused,
  SuccessionTaken,
} from './succession-protocol.ts';
import { xdsProxyMachine } from './xds/xds-proxy.machine.ts';
import type { XdsFailed, XdsListening } from './xds-protocol.ts';

export interface AgentInput {
  settings: AgentSettings;
}

export interface AgentContext extends AgentInput {
  baseIds: number[];
  adoption: Adoption | undefined;
  /** Whether an exit was requested during the adoption of Envoys, which are drained first. */
  endIsDue: boolean;
  /** Orders that were received while Envoys were being adopted or belonged to another agent. */
  ordersDue: DueOrder[];
  /** Whether an adopted Envoy is starting; deferred orders wait for the outcome. */
  awaitsRestart: boolean;
  /** `awaited` until the certificates of gRPC programs are on disk. */
  grpcBootstrap: 'none' | 'awaited' | 'started';
  /** Reasons for which the agent exits without an order; empty otherwise. */
  trouble: string[];
  /** Whether another agent keeps the Envoys when this agent exits: an older agent that still waits, or a newer one. */
  isAnothers: boolean;
}

export interface AgentOutput {
  /** 0 after an ordered exit, 1 after a failure; after a hand-over see `successionExitCodeOf`. */
  exitCode: number;
  trouble: string[];
}

const stopSignals: ReadonlySet<Signal> = new Set(['SIGTERM', 'SIGINT', 'SIGQUIT']);

function awaitsOutput({ identity }: AgentSettings): boolean {
  return identity.writesOutput && provesIdentity(identity);
}

/** Includes the wait for Envoys of exited agents. */
export const claimLimitMs = 30_000;
export const openLimitMs = 10_000;
/** Six attempts within 31 s to open the socket, at most 10 s each. */
export const secretsLimitMs = 95_000;
/** Includes the time until the kernel has reaped killed processes. */
export const releaseLimitMs = 12_000;

export const agentSetup = setup({
  types: {
    context: {} as AgentContext,
    input: {} as AgentInput,
    output: {} as AgentOutput,
    /** `leaving`: the exit can no longer be cancelled. */
    tags: {} as 'leaving',
    events: {} as
      | AgentSignalReceived
      | StatusListening
      | StatusFailed
      | QuitRequested
      | UpgradeRequested
      | BinaryProven
      | BinaryWithdrawn
      | EpochsAdopted
      | RestartDecided
      | RestartEnded
      | FilesMissing
      | DnsListening
      | DnsFailed
      | SecretsReady
      | SecretsFailed
      | OutputWritten
      | GrpcBootstrapFailed
      | AccessLogsFailed
      | XdsListening
      | XdsFailed
      | SuccessionTaken
      | SuccessionRefused
      | SuccessionDue
      | SuccessionDone
      | SuccessionFailed,
    children: {} as {
      signals: 'signals';
      claim: 'claimBaseIds';
      release: 'releaseBaseIds';
      'bootstrap-patches': 'bootstrapPatches';
      status: 'status';
      dns: 'dns';
      secrets: 'secrets';
      'grpc-bootstrap': 'grpcBootstrap';
      'access-logs': 'accessLogs';
      'xds-proxy': 'xdsProxy';
      supervisor: 'supervisor';
      'cert-watcher': 'certWatcher';
      'binary-watcher': 'binaryWatcher';
      predecessor: 'predecessor';
      successor: 'successor';
    },
  },
  actors: {
    signals: callbackEffect<{ type: never }, undefined>('signals'),
    /**
     * Takes the base IDs and Envoys of a killed agent of this container. If there are no such Envoys, claims one or two free base IDs, or none if an
     * older agent will hand them over.
     */
    claimBaseIds: promiseEffect<ClaimedIds, { succeeds: boolean }>('claimBaseIds'),
    /** Terminates the Envoys under the base IDs, unless another agent keeps them. */
    releaseBaseIds: promiseEffect<void, { baseIds: number[]; keeps: boolean }>('releaseBaseIds'),
    bootstrapPatches: bootstrapPatchesMachine,
    status: statusMachine,
    dns: dnsMachine,
    secrets: secretsMachine,
    grpcBootstrap: grpcBootstrapMachine,
    accessLogs: accessLogsMachine,
    xdsProxy: xdsProxyMachine,
    supervisor: supervisorMachine,
    certWatcher: certWatcherMachine,
    binaryWatcher: binaryWatcherMachine,
    predecessor: predecessorMachine,
    successor: successorMachine,
  },
  delays: {
    claimLimit: claimLimitMs,
    openLimit: openLimitMs,
    secretsLimit: secretsLimitMs,
    releaseLimit: releaseLimitMs,
  },
  guards: {
    isStopSignal: ({ event }) => event.type === 'signal.received' && stopSignals.has(event.signal),
    /** A second exit request skips the drain. */
    hasEnvoysToDrain: ({ context }) => context.adoption !== undefined && !context.endIsDue,
    /** Whether the signal is handled later, because Envoys are being adopted or belong to another agent. */
    isDeferrable: ({ context, event }) =>
      context.settings.liveRestore && event.type === 'signal.received' && isDueOrder(event.signal),
    hasAdoptedEpochs: (_, { adoption }: ClaimedIds) => adoption !== undefined,
    hasAdoption: ({ context }) => context.adoption !== undefined,
    mayAdoptEpochs: ({ context }) => context.settings.liveRestore && !context.endIsDue,
    isStopDue: ({ context }) => context.endIsDue || context.trouble.length > 0,
    /** True if another agent has the Envoys, or if an exit was requested and no Envoy must be drained. */
    exitsImmediately: ({ context }, { adoption, isAnothers }: ClaimedIds) =>
      isAnothers === true || (context.endIsDue && adoption === undefined),
    isRestartSignal: ({ event }) => event.type === 'signal.received' && event.signal === 'SIGHUP',
    isReopenSignal: ({ event }) => event.type === 'signal.received' && event.signal === 'SIGUSR1',
    servesDns: ({ context }) => context.settings.dns,
    runsEnvoy: ({ context }) => context.settings.runsEnvoy,
    requestsPatches: ({ context }) => context.settings.runsEnvoy && context.settings.patchedBootstrap,
    arePatchesUnusable: (_, { unusable }: { unusable: string }) => unusable !== '',
    servesSecrets: ({ context }) => context.settings.identity.source !== 'nowhere',
    replacesAgent: ({ context }) => context.settings.succeeds,
    isOrderedStop: (_, params: { output: SupervisorOutput }) => params.output.ordered,
  },
  actions: {
    spawnSuccessor: spawnChild('successor', { id: 'successor', systemId: 'successor' }),
    /** After this report, the exit of this agent terminates its Envoys. */
    reportComplete: enqueueActions(({ context, enqueue }) => {
      if (!context.settings.succeeds || !context.isAnothers) return;
      enqueue.assign({ isAnothers: false });
      enqueue.sendTo('successor', { type: 'succession.complete' });
    }),
    spawnPredecessor: enqueueActions(({ context, enqueue }) => {
      if (!context.settings.givesWay) return;
      enqueue.spawnChild('predecessor', { id: 'predecessor', systemId: 'predecessor' });
    }),
    stopPredecessor: stopChild('predecessor'),
    beginSuccession: sendTo('predecessor', { type: 'succession.begin' }),
    rejectSuccession: sendTo('predecessor', {
      type: 'succession.refuse',
      reason: 'previous agent is itself taking over, or stopping',
    }),
    recordSuccession: assign({ isAnothers: true }),
    recordClaim: assign((_, { baseIds, adoption, isAnothers }: ClaimedIds) => ({
      ...{ baseIds, adoption },
      ...(isAnothers && { isAnothers }),
      awaitsRestart: adoption !== undefined && ongoingRestartOf(adoption) !== undefined,
    })),
    deferOrder: assign({
      ordersDue: ({ context: { ordersDue }, event }) =>
        event.type === 'signal.received' && isDueOrder(event.signal) ? withOrder(ordersDue, event.signal) : ordersDue,
    }),
    /** If an adopted restart is in progress, waits for its outcome. */
    runDeferredOrders: enqueueActions(({ context: { ordersDue, awaitsRestart }, event, enqueue }) => {
      if (awaitsRestart && event.type !== 'restart.ended') return;
      if (ordersDue.includes('SIGUSR1')) enqueue.sendTo('supervisor', { type: 'logs.reopen' });
      if (ordersDue.includes('SIGHUP')) enqueue.sendTo('supervisor', { type: 'supervisor.restart', reason: 'SIGHUP' });
      enqueue.assign({ ordersDue: [], awaitsRestart: false });
    }),
    recordStop: assign({ endIsDue: true }),
    recordFailure: assign({ trouble: (_, params: { trouble: string[] }) => params.trouble }),
    addFailure: assign({ trouble: ({ context }, params: { trouble: string }) => [...context.trouble, params.trouble] }),
    startStatus: sendTo('status', { type: 'status.start' }),
    spawnDns: spawnChild('dns', { id: 'dns', systemId: 'dns' }),
    startDns: sendTo('dns', { type: 'dns.start' }),
    /** Secrets are served until the agent exits, because draining Envoys still request them. */
    spawnSecrets: spawnChild('secrets', {
      id: 'secrets',
      systemId: 'secrets',
      input: ({ context: { settings } }) => ({ ...settings.identity, obtainsFirst: settings.succeeds }),
    }),
    /** Envoy serves requests without the access log service. */
    spawnAccessLogs: enqueueActions(({ context, enqueue }) => {
      const { accessLogSocket: socket } = context.settings;
      if (socket === '') return;
      enqueue.spawnChild('accessLogs', { id: 'access-logs', systemId: 'access-logs', input: { socket } });
    }),
    /** Called when the certificates are on disk, or at once if this agent does not write them. */
    spawnGrpcBootstrap: enqueueActions(({ context, event, enqueue }) => {
      if (context.grpcBootstrap !== 'awaited') return;
      const isServedByAnother = event.type === 'secrets.ready' && event.by === 'another';
      if (event.type !== 'output.written' && !isServedByAnother && awaitsOutput(context.settings)) return;
      enqueue.assign({ grpcBootstrap: 'started' });
      enqueue.spawnChild('grpcBootstrap', { id: 'grpc-bootstrap', systemId: 'grpc-bootstrap' });
    }),
    startSecrets: sendTo('secrets', { type: 'secrets.start' }),
    startXds: sendTo('xds-proxy', { type: 'xds.start' }),
    startSupervisor: sendTo('supervisor', { type: 'supervisor.start' }),
    watchBinary: enqueueActions(({ context, enqueue }) => {
      const { binary } = context.settings;
      if (binary.path === '') return;
      const directory = binary.path.slice(0, Math.max(1, binary.path.lastIndexOf('/')));
      enqueue.spawnChild('binaryWatcher', {
        id: 'binary-watcher',
        systemId: 'binary-watcher',
        input: { ...binary, directory },
      });
    }),
    unwatchBinary: stopChild('binary-watcher'),
    checkBinary: enqueueActions(({ context, enqueue }) => {
      if (context.settings.binary.path !== '') enqueue.sendTo('binary-watcher', { type: 'binary.check' });
    }),
    startWatcher: sendTo('cert-watcher', { type: 'watch.start' }),
    restart: sendTo('supervisor', { type: 'supervisor.restart', reason: 'SIGHUP' }),
    reopenLogs: sendTo('supervisor', { type: 'logs.reopen' }),
    drainStatus: sendTo('status', { type: 'status.drain' }),
    stopSupervisor: sendTo('supervisor', ({ event }) => ({
      type: 'supervisor.stop',
      reason: event.type === 'signal.received' ? event.signal : event.type,
    })),
    stopSupervisorNow: sendTo('supervisor', { type: 'supervisor.stop-now' }),
  },
});
