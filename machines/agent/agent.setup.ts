import { assign, enqueueActions, sendTo, setup, spawnChild, stopChild } from 'xstate';
import { callbackEffect, promiseEffect } from '../effect.ts';
import type { AccessLogsFailed } from './access-log-protocol.ts';
import { accessLogsMachine } from './access-logs/access-logs.machine.ts';
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
import { type DueOrder, isDueOrder, withOrder } from './replacement/due-orders.ts';
import { predecessorMachine } from './replacement/predecessor.machine.ts';
import { successorMachine } from './replacement/successor.machine.ts';
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
  /** The one that Envoys begin with, then the one to fall back to, where there is one. */
  baseIds: number[];
  /** What runs already when the agent begins. */
  adoption: Adoption | undefined;
  /** Somebody has asked for the end while Envoys were being taken over: they are to be drained first. */
  endIsDue: boolean;
  /** What was ordered while Envoys were being taken over, or were another agent's. */
  ordersDue: DueOrder[];
  /** An Envoy that another agent has started is on its way to live: what is due waits for what becomes of it. */
  awaitsRestart: boolean;
  /** Whether gRPC programs of this pod get a bootstrap file: `awaited` until their certificates are on disk. */
  grpcBootstrap: 'none' | 'awaited' | 'started';
  /** Why the agent ends other than by order; empty while there is no such reason. */
  trouble: string[];
  /** Another agent goes on with what runs here when this one ends: an older one that waits, or a newer one. */
  isAnothers: boolean;
}

export interface AgentOutput {
  /** 0 when the agent ended as it was told to, or that of an agent that has given way (`successionExitCodeOf`). */
  exitCode: number;
  /** What to tell the person; empty after an ordered end. */
  trouble: string[];
}

const stopSignals: ReadonlySet<Signal> = new Set(['SIGTERM', 'SIGINT', 'SIGQUIT']);

/** Whether certificates are written to files, which the bootstrap file of gRPC names. */
function awaitsOutput({ identity }: AgentSettings): boolean {
  return identity.writesOutput && provesIdentity(identity);
}

/** A sweep waits for the Envoys of dead agents. */
export const claimLimitMs = 30_000;
/** A port is opened, or it is not, at once. */
export const openLimitMs = 10_000;
/** The socket is tried six times in 31 s, each for ten at the most. */
export const secretsLimitMs = 95_000;
/** What is left of Envoys is killed, and the kernel given its time. */
export const releaseLimitMs = 12_000;

/** The words that the agent's chart is written in: its types, actors, delays, guards and actions. */
export const agentSetup = setup({
  types: {
    context: {} as AgentContext,
    input: {} as AgentInput,
    output: {} as AgentOutput,
    /** `leaving`: there is no way back. */
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
    /** Passes on what the operating system delivers. */
    signals: callbackEffect<{ type: never }, undefined>('signals'),
    /**
     * Takes over the base ids of an agent of this container that was killed, with what runs under them; else sweeps what dead agents left behind, and
     * takes one or two Envoy base ids that nobody on this host uses. None, where an older agent has them that is to give way.
     */
    claimBaseIds: promiseEffect<ClaimedIds, { succeeds: boolean }>('claimBaseIds'),
    /** Ends what runs under them, unless that is for another agent to go on with. */
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
    /** What is told to end once more ends at once. */
    hasEnvoysToDrain: ({ context }) => context.adoption !== undefined && !context.endIsDue,
    /** An order about Envoys that may run: they are being taken over, or are another agent's at the moment. */
    isDeferrable: ({ context, event }) =>
      context.settings.liveRestore && event.type === 'signal.received' && isDueOrder(event.signal),
    hasAdoptedEpochs: (_, { adoption }: ClaimedIds) => adoption !== undefined,
    hasAdoption: ({ context }) => context.adoption !== undefined,
    mayAdoptEpochs: ({ context }) => context.settings.liveRestore && !context.endIsDue,
    isStopDue: ({ context }) => context.endIsDue || context.trouble.length > 0,
    /** Another agent has what there is, or somebody has asked for the end and nothing has to be drained. */
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
    /** Told once: from then on this agent ends what it has when it ends. */
    reportComplete: enqueueActions(({ context, enqueue }) => {
      if (!context.settings.succeeds || !context.isAnothers) return;
      enqueue.assign({ isAnothers: false });
      enqueue.sendTo('successor', { type: 'succession.complete' });
    }),
    /** Only where there is something to give way with. */
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
    /** What is due is done; not while an adopted Envoy is on its way to live: nobody knows yet whether it is. */
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
    /** Secrets are served for as long as the agent lives: an Envoy that drains still asks. */
    spawnSecrets: spawnChild('secrets', {
      id: 'secrets',
      systemId: 'secrets',
      input: ({ context: { settings } }) => ({ ...settings.identity, obtainsFirst: settings.succeeds }),
    }),
    /** Nothing waits for the access log service: requests are served without it. */
    spawnAccessLogs: enqueueActions(({ context, enqueue }) => {
      const { accessLogSocket: socket } = context.settings;
      if (socket === '') return;
      enqueue.spawnChild('accessLogs', { id: 'access-logs', systemId: 'access-logs', input: { socket } });
    }),
    /** At most once. Certificates are on disk, or this agent does not write them. */
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
    /** The binary is watched where its path is known. */
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
