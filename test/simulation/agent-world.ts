/**
 * The agent's statecharts with scripted effects, under a virtual clock. The test acts as the operating system: it decides when a file changes, when
 * an Envoy is live, and how it exits.
 */

import { type Actor, type AnyEventObject, type AnyStateMachine, fromCallback, fromPromise } from 'xstate';
import { type AgentOutput, agentMachine } from '../../machines/agent/agent.machine.ts';
import { bootstrapPatchesMachine } from '../../machines/agent/bootstrap/bootstrap-patches.machine.ts';
import {
  type BootstrapWriteOutcome,
  grpcBootstrapMachine,
} from '../../machines/agent/bootstrap/grpc-bootstrap.machine.ts';
import { dnsMachine } from '../../machines/agent/dns/dns.machine.ts';
import {
  type DrainListenersOrder,
  epochMachine,
  type PreparedEpoch,
  type PrepareOrder,
  type ProbeOrder,
  type StartOrder,
} from '../../machines/agent/envoy/epoch.machine.ts';
import { shutdownMachine } from '../../machines/agent/envoy/shutdown.machine.ts';
import { supervisorMachine } from '../../machines/agent/envoy/supervisor.machine.ts';
import {
  type BinaryCheckOrder,
  type BinaryCheckResult,
  binaryWatcherMachine,
} from '../../machines/agent/files/binary-watcher.machine.ts';
import { certWatcherMachine } from '../../machines/agent/files/cert-watcher.machine.ts';
import { directoryWatchMachine } from '../../machines/agent/files/directory-watch.machine.ts';
import type {
  DirectoryFound,
  DirectoryMissing,
  PatchesCancel,
  PatchesResult,
  ProbeExplain,
  ProbeRun,
  ProcessSignal,
  Signal,
  WatchBegan,
  WatchFailed,
} from '../../machines/agent/protocol.ts';
import { secretMachine } from '../../machines/agent/secrets/secret.machine.ts';
import { type ServerFound, secretsMachine } from '../../machines/agent/secrets/secrets.machine.ts';
import { type AgentSettings, defaultSettings } from '../../machines/agent/settings.ts';
import { statusMachine } from '../../machines/agent/status/status.machine.ts';
import type { EnvoyProbe, EnvoyResponded, RefusedListener } from '../../machines/agent/status-protocol.ts';
import type { UpstreamCredential } from '../../machines/agent/xds/xds-pause.ts';
import { xdsProxyMachine } from '../../machines/agent/xds/xds-proxy.machine.ts';
import { startRoot } from '../../src/runtime/actors/actor-system.ts';
import { createRecorder } from '../../src/runtime/trace/recorder.ts';
import type { TraceRecord } from '../../src/runtime/trace/trace.ts';
import { VirtualClock } from './virtual-clock.ts';

/** One scripted Envoy process: alive from its start until `exit` is called. */
export interface ScriptedProcess {
  /** System ID of its epoch's actor. */
  name: string;
  epoch: number;
  baseId: number;
  configFile: string;
  signals: string[];
  /** Lets the admin interface respond with 200 for this epoch. */
  becomeLive(): void;
  /** Sets why this epoch is not live yet, as reported to a probe. */
  reportWait(reason: string): void;
  /** Lets the admin interface respond with 200 although a listener is missing. */
  reportMissingListener(reason: string): void;
  exit(end?: Partial<ProcessEnd>): void;
}

interface ProcessEnd {
  code: number | null;
  signal: string | null;
  lastOutput: string;
  refusedByParent: boolean;
  outOfMemory: boolean;
  tookOverWithinMs: number;
}

/** Most proxies have one certificate directory. */
export const oneDirectory = { ...defaultSettings.watch, directories: ['/certs'] };

/** Base IDs of a scripted agent: primary and spare. */
export const scriptedBaseIds = [7, 8];

interface EpochRun {
  epoch: number;
  baseId: number;
}

type Send = (event: AnyEventObject) => void;

export class AgentWorld {
  /** All worlds of this process, for checks after tests. */
  static readonly instances: AgentWorld[] = [];
  readonly clock = new VirtualClock();
  readonly records: TraceRecord[] = [];
  /** All started processes, in order. */
  readonly startedProcesses: ScriptedProcess[] = [];
  /** Running processes, whatever the supervisor assumes. */
  readonly runningProcesses = new Set<ScriptedProcess>();
  /** Calls of `prepare`. */
  readonly preparedEpochs: { epoch: number; baseId: number; validate: boolean }[] = [];
  /** The binary of each call. */
  readonly binaries: string[] = [];
  /** The file at the path of the binary; `undefined`: its check never completes. */
  binary: BinaryCheckResult | undefined = { binary: 'first', description: '' };
  /** Paths that were checked. */
  readonly binaryChecks: string[] = [];
  /** Calls of `drainListeners`. */
  readonly drainCalls: { epoch: number; baseId: number; replaced: boolean }[] = [];
  /** Admin ports of these calls. */
  readonly drainedAt: number[] = [];
  /** Port for the admin interface of the next Envoy without a configured port. */
  nextFreePort = 16_000;
  /** The next process effect throws an unexpected error. */
  breakNextProcess = false;
  /** A child is started only with the files that its start was ordered for. */
  checksCertificates = false;
  /** Result of opening the DNS port; undefined: no response. */
  dnsResult: 'listening' | 'failed' | undefined = 'listening';
  /** Number of orders to open the DNS port. */
  dnsOpenCount = 0;
  /** Sends an event of the DNS server. */
  sendFromDns: Send = () => {};
  /** Why the bootstrap file of gRPC cannot be written, or `hangs`; `undefined`: it is written. */
  grpcBootstrapResult: string | 'hangs' | undefined;
  grpcBootstrapWrites = 0;
  /** The result of a probe of the socket for secrets. */
  secretServer: ServerFound = 'nobody';
  /** Reports the result of writing the files of OUTPUT_CERTS. */
  reportOutput: Send = () => {};
  /** The first event of a watch of the directory; undefined: none. */
  watchResult: 'watch.began' | 'watch.failed' | 'directory.missing' | undefined = 'watch.began';
  /** Each watch of the directory, with its input. */
  readonly watches: { directory: string; knownHash: string | null }[] = [];
  /** Preparations of epochs never return. */
  preparationHangs = false;
  /** The control plane's result for the bootstrap; undefined: no response. */
  patchesResult: PatchesResult | undefined = { is: 'unpatched' };
  /** Whether the control plane accepts the request for patches. */
  acceptsPatchesRequest = true;
  /** Credential of each patch request. */
  readonly patchesCredentials: UpstreamCredential[] = [];
  /** Times without a response after which a patch request was cancelled. */
  readonly cancelledAfterMs: number[] = [];
  /** Why an Envoy is not live. */
  waitsFor = '503 INITIALIZING';
  /** Reads of the certificates never return. */
  readingHangs = false;
  /** Files that the first start needs never appear. */
  filesMissing = false;
  /** Epochs whose bootstrap files were removed, in order. */
  readonly cleanedUp: string[] = [];
  onCleanup = (): void => {};
  // Results of effects: undefined for success, a text for a failure.
  claimError: string | undefined;
  releaseError: string | undefined;
  httpError: string | undefined;
  digestError: string | undefined;
  spawnError: string | undefined;
  rejectBootstrap: string | undefined;
  /** Why the control plane's address accepts no connections. */
  unreachableReason: string | undefined;
  /** Problems of the current certificates. */
  certificateProblem: string | undefined;
  /** Why the bootstrap cannot be written. */
  writeProblem: string | undefined;
  drainError: string | undefined;
  /** Result of an immediate probe. */
  probeResult: 'live' | 'not live' | 'no answer' = 'not live';
  /** Time for which an epoch found live was not probed. */
  unseenMs = 0;
  /** Epochs that were probed immediately, such as `0@7`. */
  readonly probes: string[] = [];
  /** The repair never completes. */
  repairHangs = false;
  /** The release never completes. */
  releaseHangs = false;
  /** Why shared memory cannot be repaired; undefined if it can. */
  repairError: string | undefined;
  /** Base IDs whose shared memory was repaired. */
  readonly repairedBaseIds: number[] = [];
  /** Requests in flight, as reported by Envoy; undefined if it does not respond. */
  requestsInFlight: number | undefined = 0;
  /** Admin ports of the Envoys whose requests in flight were counted. */
  readonly countedAdminPorts: number[] = [];
  /** Base IDs that were released. */
  releasedBaseIds: number[] | undefined;
  /** The epoch whose admin interface the status server uses. */
  adminOf: number | undefined;
  /** Number of Envoys that have started to serve: probes of earlier ones get no response. */
  #serverStarts = 0;
  /** Called during each read of the files. */
  onReading = (): void => {};
  digest = 'digest-0';
  files = ['tls.crt'];
  /** Why Envoy cannot use the files. */
  fileProblems: string[] = [];
  /** Why Envoy could not check the files; undefined if it did. */
  notValidated: string | undefined;
  /** Whether Envoy had to check the files, for each read. */
  readonly judgeFlags: boolean[] = [];
  readonly readiness: { ready: boolean; reason: string }[] = [];
  envoyLive = true;
  /** Listeners that the serving Envoy rejected at its start. */
  refusedListeners: readonly RefusedListener[] = [];
  /** Why no application port is served, according to Envoy's admin interface. */
  unservedReason = '';
  /** No process owns the admin port. */
  isAdminClosed = false;
  /** A port of the serving Envoy responds. */
  portResponds = true;
  /** Envoy's admin interface responds only when the test orders it. */
  respondsLate = false;
  respond = (): void => {};
  failure: unknown;
  readonly agent: Actor<typeof agentMachine>;
  #requests = 0;
  readonly #hungReadings: (() => void)[] = [];
  #sendSignal: Send = () => {};
  #sendFiles: Send = () => {};
  #sendBinary: Send = () => {};
  #sendAwaited: Send = () => {};
  #sendHttp: Send = () => {};
  readonly #probes = new Map<string, Send>();
  readonly #baseIds: number[];

  constructor(settings: Partial<AgentSettings> = {}, baseIds = scriptedBaseIds) {
    AgentWorld.instances.push(this);
    this.#baseIds = baseIds;
    if (settings.binary !== undefined) this.binary = { binary: settings.binary.first, description: '' };
    const recorder = createRecorder({ program: 'pilot-agent', now: () => this.clock.now() });
    recorder.observe((record) => this.records.push(record));
    this.agent = startRoot(this.#machine(), {
      id: 'agent',
      input: { settings: { ...defaultSettings, watch: oneDirectory, ...settings } },
      recorder,
      clock: this.clock as never,
      onError: (error) => {
        this.failure = error;
      },
    });
  }

  /** A world in which epoch 0 serves. */
  static async startServing(settings: Partial<AgentSettings> = {}, baseIds = scriptedBaseIds): Promise<AgentWorld> {
    const world = new AgentWorld(settings, baseIds);
    await world.settle();
    world.newestProcess().becomeLive();
    await world.settle();
    return world;
  }

  /** Resolves promises of effects without advancing time. */
  async settle(): Promise<void> {
    for (let tick = 0; tick < 20; tick++) await Promise.resolve();
  }

  /** Advances time in small steps, so that effects respond in between. */
  async passTime(ms: number): Promise<void> {
    const untilMs = this.clock.now() + ms;
    await this.settle();
    for (let next = this.clock.pendingDelays()[0]; next !== undefined && this.clock.now() + next <= untilMs; ) {
      this.clock.fireNext();
      await this.settle();
      next = this.clock.pendingDelays()[0];
    }
    this.clock.advance(untilMs - this.clock.now());
    await this.settle();
  }

  /** Advances time until another Envoy is started. */
  async nextStart(): Promise<void> {
    const startedBefore = this.startedProcesses.length;
    await this.settle();
    for (let step = 0; this.startedProcesses.length === startedBefore; step++) {
      if (step > 100 || !this.clock.fireNext()) throw new Error('no other Envoy is started');
      await this.settle();
    }
  }

  newestProcess(): ScriptedProcess {
    const newest = this.startedProcesses.at(-1);
    if (newest === undefined) throw new Error('no Envoy was started');
    return newest;
  }

  /** The last started process of that name. */
  process(name: string): ScriptedProcess {
    const matchingProcess = this.startedProcesses.findLast((process) => process.name === name);
    if (matchingProcess === undefined) throw new Error(`no ${name} was started`);
    return matchingProcess;
  }

  /** Acts like POST /drain. */
  orderDrain(): void {
    this.#sendHttp({ type: 'drain.requested' });
  }

  /** Acts like POST /quitquitquit. */
  requestQuit(): void {
    this.#sendHttp({ type: 'quit.requested' });
  }

  /** The status port's server fails. */
  breakStatus(reason: string): void {
    this.#sendHttp({ type: 'http.failed', reason });
  }

  signal(signal: Signal): void {
    this.#sendSignal({ type: 'signal.received', signal });
  }

  /** A watched directory changed; its hash is now `digest`. */
  changeFiles(digest: string): void {
    this.digest = digest;
    this.#sendFiles({ type: 'files.changed', path: 'tls.crt' });
  }

  /** Changes the files and waits until the watcher's debounce has passed. */
  async certificate(digest: string): Promise<void> {
    this.changeFiles(digest);
    await this.passTime(10_000);
  }

  /** Replaces the binary, and waits until it is considered stable. */
  async replaceBinary(newBinary: AgentWorld['binary']): Promise<void> {
    this.binary = newBinary;
    this.touchBinary();
    await this.passTime(defaultSettings.binary.settleMs);
  }

  /** Reports a write of the file at the path. */
  touchBinary(): void {
    this.#sendBinary({ type: 'files.changed', path: '/usr/bin/envoy' });
  }

  /** Acts like POST /upgrade. */
  async orderUpgrade(): Promise<void> {
    this.#sendHttp({ type: 'upgrade.requested' });
    await this.settle();
  }

  /** Reports the state of the files that the first start needs. */
  filesAre(missing: string[], unreachable: string[] = []): void {
    this.#sendAwaited({ type: 'files.pending', missing, unreachable });
  }

  /** Sends an event of the watch of the directory. */
  watch(event: WatchBegan | WatchFailed | DirectoryMissing | DirectoryFound): void {
    this.#sendFiles(event);
  }

  async requestReadiness(): Promise<{ ready: boolean; reason: string }> {
    this.#sendHttp({ type: 'readiness.requested', request: this.#requests++ });
    await this.settle();
    return this.readiness.at(-1)!;
  }

  /** The file system responds to the hung reads. */
  async completeHungReadings(): Promise<void> {
    for (const complete of this.#hungReadings.splice(0)) complete();
    await this.settle();
  }

  /** Tags of the supervisor's states; `gone` if it has ended. */
  supervisorTags(): string[] {
    const supervisor = this.#snapshot('supervisor');
    if (supervisor === undefined) return ['gone'];
    const { restart, shutdown } = supervisor.children as Record<string, Actor<AnyStateMachine> | undefined>;
    const charts = [supervisor, ...[restart, shutdown].flatMap((child) => child?.getSnapshot() ?? [])];
    return charts.flatMap(({ tags }) => [...tags] as string[]).sort();
  }

  /** Names of the epochs that have an actor, including ended ones until they are removed. */
  epochActors(): string[] {
    return Object.keys(this.#snapshot('supervisor')?.children ?? {}).filter((name) => name.startsWith('epoch-'));
  }

  output(): AgentOutput | undefined {
    return this.agent.getSnapshot().output;
  }

  /** The events that passed between actors, as `from → to: type`. */
  messages(): string[] {
    return this.records.flatMap((r) => (r.kind === 'event' ? [`${r.from} → ${r.to}: ${r.event.type}`] : []));
  }

  /** The events of one type, to any actor. */
  events(type: string): AnyEventObject[] {
    return this.records.flatMap((r) => (r.kind === 'event' && r.event.type === type ? [r.event] : []));
  }

  /** The response of the serving Envoy to a probe. */
  #probeDetail(at: EnvoyProbe['at']): Pick<EnvoyResponded, 'by' | 'live' | 'detail' | 'unserved'> {
    if (at === 'port' || (at === 'admin or port' && this.isAdminClosed)) {
      return {
        by: 'port',
        live: this.portResponds,
        detail: this.portResponds ? 'port 15021 answers' : 'no answer',
        unserved: '',
      };
    }
    if (this.isAdminClosed) return { by: 'admin', live: false, detail: 'connection refused', unserved: '' };
    if (!this.envoyLive) return { by: 'admin', live: false, detail: '503', unserved: '' };
    return { by: 'admin', live: true, detail: 'LIVE', unserved: this.unservedReason };
  }

  #snapshot(systemId: 'supervisor') {
    return (this.agent.system.get(systemId) as Actor<typeof supervisorMachine> | undefined)?.getSnapshot();
  }

  #machine() {
    const keyOf = ({ epoch, baseId }: EpochRun): string => `${epoch}@${baseId}`;
    const process = fromCallback<ProcessSignal, StartOrder>(({ input, sendBack, receive }) => {
      if (this.breakNextProcess) throw new Error('an internal error');
      if (this.spawnError !== undefined) {
        sendBack({ type: 'process.failed', reason: this.spawnError });
        return;
      }
      const scripted: ScriptedProcess = {
        name: `epoch-${input.epoch}${input.baseId === this.#baseIds[0] ? '' : 'b'}`,
        epoch: input.epoch,
        baseId: input.baseId,
        configFile: input.configFile,
        signals: [],
        becomeLive: () =>
          this.#probes.get(keyOf(input))?.({ type: 'probe.passed', timeToLiveMs: 300, unseenMs: this.unseenMs }),
        reportWait: (reason) => {
          this.waitsFor = reason;
        },
        reportMissingListener: (reason) => this.#probes.get(keyOf(input))?.({ type: 'probe.incomplete', reason }),
        exit: (end = {}) => {
          this.runningProcesses.delete(scripted);
          const defaults = { code: 0, signal: null, lastOutput: '', refusedByParent: false, outOfMemory: false };
          sendBack({ type: 'process.exited', ...defaults, ...end });
        },
      };
      receive((order) => scripted.signals.push(order.signal));
      this.startedProcesses.push(scripted);
      this.runningProcesses.add(scripted);
      sendBack({ type: 'process.spawned', pid: 1000 + this.startedProcesses.length, startedAtMs: 0 });
    });
    const probe = fromCallback<ProbeRun | ProbeExplain, ProbeOrder>(({ input, sendBack, receive }) => {
      this.#probes.set(keyOf(input), sendBack);
      receive(async (order) => {
        if (order.type === 'probe.run')
          this.probes.push(`${keyOf(input)}${order.acceptsMissingListeners ? ' as it is' : ''}`);
        // A probe never responds within the same microtask.
        await Promise.resolve();
        if (order.type === 'probe.explain') {
          sendBack({ type: 'probe.waiting', reason: this.waitsFor });
          return;
        }
        if (this.probeResult === 'live') sendBack({ type: 'probe.passed', timeToLiveMs: 300, unseenMs: this.unseenMs });
        if (this.probeResult === 'not live') sendBack({ type: 'probe.failed', reason: '503 INITIALIZING' });
      });
      return () => this.#probes.delete(keyOf(input));
    });
    const epoch = epochMachine.provide({
      actions: {
        removeConfigFile: ({ context }) => {
          this.cleanedUp.push(context.name);
          this.onCleanup();
        },
      },
      actors: {
        process,
        probe,
        prepare: fromPromise<PreparedEpoch, PrepareOrder>(async ({ input }) => {
          const { certificates, controlPlaneLimitMs, binary, adminPort, ...preparation } = input;
          this.binaries.push(binary);
          this.preparedEpochs.push(preparation);
          if (this.preparationHangs) await new Promise(() => {});
          if (this.checksCertificates && certificates !== null && certificates !== this.digest) {
            return { outdated: 'the certificate files changed after they were checked' };
          }
          if (this.rejectBootstrap !== undefined) throw new Error(this.rejectBootstrap);
          if (this.certificateProblem !== undefined) return { outdated: this.certificateProblem };
          if (this.writeProblem !== undefined) return { unwritable: this.writeProblem };
          if (this.unreachableReason !== undefined && controlPlaneLimitMs !== null)
            return { unreachable: this.unreachableReason };
          return { configFile: `envoy-rev${input.epoch}.json`, adminPort: adminPort || this.nextFreePort++ };
        }),
        drainListeners: fromPromise<void, DrainListenersOrder>(async ({ input: { adminPort, ...order } }) => {
          this.drainCalls.push(order);
          this.drainedAt.push(adminPort);
          if (this.drainError !== undefined) throw new Error(this.drainError);
        }),
      },
    });
    const certWatcher = certWatcherMachine.provide({
      actors: {
        waitForFiles: fromCallback(({ sendBack }) => {
          this.#sendAwaited = sendBack;
          this.filesAre(this.filesMissing ? ['/certs/tls.crt'] : []);
        }),
        directory: directoryWatchMachine.provide({
          actors: {
            watchDirectory: fromCallback<{ type: never }, { directory: string; knownHash: string | null }>(
              ({ input, sendBack }) => {
                this.watches.push(input);
                this.#sendFiles = sendBack;
                if (this.watchResult !== undefined)
                  sendBack({ type: this.watchResult, reason: 'ENOSPC', knownHash: null });
                if (input.knownHash !== null && input.knownHash !== this.digest) {
                  sendBack({ type: 'files.changed', path: 'tls.crt' });
                }
                return () => {
                  this.#sendFiles = () => {};
                };
              },
            ),
          },
        }),
        digestFiles: fromPromise<
          { digest: string; files: string[]; problems: string[]; notValidated?: string },
          { directories: string[]; judge: boolean }
        >(async ({ input }) => {
          this.judgeFlags.push(input.judge);
          if (this.digestError !== undefined) throw new Error(this.digestError);
          if (this.readingHangs) await new Promise<void>((result) => void this.#hungReadings.push(result));
          const reading = { digest: this.digest, files: this.files, problems: this.fileProblems };
          const validation = input.judge && this.notValidated !== undefined ? { notValidated: this.notValidated } : {};
          this.onReading();
          return { ...reading, ...validation };
        }),
      },
    });
    const status = statusMachine.provide({
      actors: {
        http: fromCallback(({ sendBack, receive, input }) => {
          this.#sendHttp = sendBack;
          if (this.httpError === undefined) sendBack({ type: 'http.listening', port: input.port });
          else sendBack({ type: 'http.failed', reason: this.httpError });
          const reportListeners = (): void => sendBack({ type: 'listeners.checked', listeners: this.refusedListeners });
          receive((order) => {
            if (order.type === 'admin.use') {
              this.#serverStarts++;
              this.adminOf = order.baseId;
              reportListeners();
            } else if (order.type === 'readiness.respond') {
              this.readiness.push({ ready: order.ready, reason: order.reason });
            } else if (order.type === 'envoy.probe') {
              const servings = this.#serverStarts;
              this.respond = () => {
                if (this.#serverStarts !== servings) return;
                if (order.at === 'admin') reportListeners();
                sendBack({ type: 'envoy.responded', request: order.request, ...this.#probeDetail(order.at) });
              };
              if (!this.respondsLate) this.respond();
            }
          });
        }),
      },
    });
    return agentMachine.provide({
      actors: {
        dns: dnsMachine.provide({
          actors: {
            server: fromCallback<{ type: never }, undefined>(({ sendBack }) => {
              this.dnsOpenCount++;
              this.sendFromDns = sendBack;
              const { dnsResult } = this;
              if (dnsResult === 'listening')
                sendBack({ type: 'dns-port.listening', addresses: ['127.0.0.1'], port: 15053 });
              if (dnsResult === 'failed') sendBack({ type: 'dns-port.failed', reason: 'EADDRINUSE' });
            }),
          },
        }),
        grpcBootstrap: grpcBootstrapMachine.provide({
          actors: {
            writeGrpcBootstrap: fromPromise<BootstrapWriteOutcome, undefined>(async () => {
              this.grpcBootstrapWrites++;
              if (this.grpcBootstrapResult === 'hangs') await new Promise(() => {});
              if (this.grpcBootstrapResult !== undefined) return { reason: this.grpcBootstrapResult };
              return { file: '/etc/istio/proxy/grpc-bootstrap.json' };
            }),
          },
        }),
        // Certificates are never requested: tests report the files themselves.
        secrets: secretsMachine.provide({
          actors: {
            probeServer: fromPromise(async () => this.secretServer),
            serveSecrets: fromCallback(({ receive, sendBack }) =>
              receive(({ type }) => {
                if (type === 'sds.open') sendBack({ type: 'sds.listening' });
              }),
            ),
            writeOutput: fromCallback(({ sendBack }) => {
              this.reportOutput = sendBack;
            }),
            secret: secretMachine.provide({
              actors: {
                obtain: fromPromise(() => new Promise(() => {})),
                awaitClockStep: fromPromise(() => new Promise(() => {})),
                readClock: fromPromise(async () => ({ atMs: this.clock.now() })),
              },
            }),
          },
        }),
        xdsProxy: xdsProxyMachine.provide({
          actors: {
            server: fromCallback(({ sendBack }) => sendBack({ type: 'socket.listening', socket: './XDS' })),
          },
        }),
        signals: fromCallback(({ sendBack }) => {
          this.#sendSignal = sendBack;
        }),
        bootstrapPatches: bootstrapPatchesMachine.provide({
          actors: {
            requestPatches: fromCallback<PatchesCancel, { credential: UpstreamCredential }>(
              ({ input, receive, sendBack }) => {
                receive(({ waitedMs }) => void this.cancelledAfterMs.push(waitedMs));
                this.patchesCredentials.push(input.credential);
                const result = this.patchesResult;
                if (this.acceptsPatchesRequest && result?.is !== 'unreachable') sendBack({ type: 'patches.requested' });
                if (result !== undefined) sendBack({ type: 'patches.completed', result });
              },
            ),
          },
        }),
        claimBaseIds: fromPromise(async () => {
          // A test sets the result after building the world.
          await Promise.resolve();
          if (this.claimError !== undefined) throw new Error(this.claimError);
          return { baseIds: this.#baseIds, sweptFiles: [] as string[] };
        }),
        releaseBaseIds: fromPromise<void, { baseIds: number[]; keeps: boolean }>(async ({ input }) => {
          this.releasedBaseIds = input.baseIds;
          if (this.releaseHangs) await new Promise(() => {});
          if (this.releaseError !== undefined) throw new Error(this.releaseError);
        }),
        status,
        binaryWatcher: binaryWatcherMachine.provide({
          actors: {
            directory: directoryWatchMachine.provide({
              actors: {
                watchDirectory: fromCallback<{ type: never }, { directory: string; knownHash: string | null }>(
                  ({ sendBack }) => {
                    this.#sendBinary = sendBack;
                    sendBack({ type: 'watch.began' });
                  },
                ),
              },
            }),
            checkBinary: fromPromise<BinaryCheckResult, BinaryCheckOrder>(async ({ input }) => {
              this.binaryChecks.push(input.path);
              return this.binary ?? (await new Promise(() => {}));
            }),
          },
        }),
        certWatcher,
        supervisor: supervisorMachine.provide({
          actors: {
            epoch,
            repair: fromPromise<void, { baseId: number }>(async ({ input }) => {
              if (this.repairHangs) await new Promise(() => {});
              if (this.repairError !== undefined) throw new Error(this.repairError);
              this.repairedBaseIds.push(input.baseId);
            }),
            shutdown: shutdownMachine.provide({
              actors: {
                countRequests: fromPromise<number, { adminPort: number }>(async ({ input }) => {
                  this.countedAdminPorts.push(input.adminPort);
                  if (this.requestsInFlight === undefined) throw new Error('connection refused');
                  return this.requestsInFlight;
                }),
              },
            }),
          },
        }),
      },
    });
  }
}
