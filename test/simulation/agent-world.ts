/**
 * The agent's real statecharts with scripted effects, under a virtual clock. A test plays the operating system: it says
 * when a file changes, when an Envoy is live, and how it ends.
 */

import { type Actor, type AnyEventObject, type AnyStateMachine, fromCallback, fromPromise } from 'xstate';
import { type AgentOutput, agentMachine } from '../../machines/agent/agent.machine.ts';
import { bootstrapPatchesMachine } from '../../machines/agent/bootstrap/bootstrap-patches.machine.ts';
import { grpcBootstrapMachine, type WriteOutcome } from '../../machines/agent/bootstrap/grpc-bootstrap.machine.ts';
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
  /** Of its epoch's actor. */
  name: string;
  epoch: number;
  baseId: number;
  configFile: string;
  signals: string[];
  /** The admin interface answers 200 for this epoch. */
  live(): void;
  /** Why it is not live yet, for whoever asks. */
  waits(reason: string): void;
  /** The admin interface answers 200, and a listener is not there. */
  lacks(reason: string): void;
  exit(end?: Partial<ProcessEnd>): void;
}

interface ProcessEnd {
  code: number | null;
  signal: string | null;
  lastWords: string;
  refusedByParent: boolean;
  outOfMemory: boolean;
  tookOverWithinMs: number;
}

/** One certificate directory, as most proxies have. */
export const oneDirectory = { ...defaultSettings.watch, directories: ['/certs'] };

/** Base ids of a scripted agent: the first one, and the one to fall back to. */
export const scriptedBaseIds = [7, 8];

interface EpochRun {
  epoch: number;
  baseId: number;
}

type Send = (event: AnyEventObject) => void;

export class AgentWorld {
  /** Every world of this process, for checks that hold whatever a test did. */
  static readonly made: AgentWorld[] = [];
  readonly clock = new VirtualClock();
  readonly records: TraceRecord[] = [];
  /** Every process ever started, in order. */
  readonly started: ScriptedProcess[] = [];
  /** What is alive, whatever the supervisor believes. */
  readonly alive = new Set<ScriptedProcess>();
  /** Calls of `prepare`, with what the next ones answer: undefined for success, a text for a rejected bootstrap. */
  readonly prepared: { epoch: number; baseId: number; validate: boolean }[] = [];
  /** Which Envoy each of them was for. */
  readonly binaries: string[] = [];
  /** What lies at the path of the binary; `undefined`: a check of it is never answered. */
  binary: BinaryCheckResult | undefined = { binary: 'first', description: '' };
  /** What was asked about the binary. */
  readonly binaryChecks: string[] = [];
  /** Calls of `drainListeners`. */
  readonly drained: { epoch: number; baseId: number; replaced: boolean }[] = [];
  /** And at which admin port. */
  readonly drainedAt: number[] = [];
  /** For the admin interface of the next Envoy that has none named for it. */
  nextFreePort = 16_000;
  /** The next process effect fails as none may: a bug. */
  breakNextProcess = false;
  /** A child is not started with other files than those that it was ordered for. */
  looksAtCertificates = false;
  /** What a watch of the directory says at its start; undefined: nothing. */
  /** How opening the DNS port ends; undefined: it does not. */
  dnsAnswer: 'listening' | 'failed' | undefined = 'listening';
  /** How often the DNS port was opened, or was to be. */
  dnsOpened = 0;
  /** What the DNS server tells. */
  tellDns: Send = () => {};
  /** Why the bootstrap file of gRPC cannot be written, or that no result comes; `undefined`: it is written. */
  grpcBootstrapAnswer: string | 'hangs' | undefined;
  grpcBootstrapWrites = 0;
  /** What is found at the socket for secrets. */
  secretServer: ServerFound = 'nobody';
  /** Reports what became of the files of OUTPUT_CERTS. */
  reportOutput: Send = () => {};
  watchAnswer: 'watch.began' | 'watch.failed' | 'directory.missing' | undefined = 'watch.began';
  /** Each watch of the directory, with what it was told. */
  readonly watches: { directory: string; seen: string | null }[] = [];
  /** No preparation of an epoch is ever answered. */
  preparationHangs = false;
  /** What the control plane says of the bootstrap; undefined: nothing. */
  patchesAnswer: PatchesResult | undefined = { is: 'unpatched' };
  /** Whether it has taken the question. */
  takesQuestion = true;
  /** What it was shown at each question. */
  readonly patchesAsked: UpstreamCredential[] = [];
  /** After how long of silence. */
  readonly questionsWithdrawn: number[] = [];
  /** What an Envoy that is not live waits for. */
  waitsFor = '503 INITIALIZING';
  /** The file system answers no reading of the certificates. */
  readingHangs = false;
  /** Files that the first start needs never come. */
  filesMissing = false;
  /** Whose bootstrap files were removed, in order. */
  readonly cleanedUp: string[] = [];
  onCleanup = (): void => {};
  // What effects answer: undefined for success, a text for a failure.
  claimAnswer: string | undefined;
  releaseAnswer: string | undefined;
  httpAnswer: string | undefined;
  digestAnswer: string | undefined;
  spawnAnswer: string | undefined;
  rejectBootstrap: string | undefined;
  /** Why nobody accepts connections at the control plane's address. */
  unreachable: string | undefined;
  /** What is wrong with the certificates that lie there now. */
  outdated: string | undefined;
  /** Why the bootstrap cannot be written. */
  unwritable: string | undefined;
  drainAnswer: string | undefined;
  /** What a probe finds that is told to look. */
  onLook: 'live' | 'not live' | 'no answer' = 'not live';
  /** Since when nobody has asked one that is seen to be live. */
  unseenMs = 0;
  /** Who was looked at once more: `0@7`. */
  readonly looks: string[] = [];
  /** The repair never comes to an end. */
  repairHangs = false;
  /** The release never comes to an end. */
  releaseHangs = false;
  /** Why shared memory cannot be repaired; undefined when it can. */
  repairAnswer: string | undefined;
  /** Base ids whose shared memory was repaired. */
  readonly repaired: number[] = [];
  /** What Envoy says of its requests in flight; undefined when it does not answer. */
  requestsInFlight: number | undefined = 0;
  /** Admin ports of the Envoys whose requests in flight were counted. */
  readonly counted: number[] = [];
  /** Base ids that were given back. */
  released: number[] | undefined;
  /** Whose admin interface the status server uses. */
  adminOf: number | undefined;
  /** How many Envoys have begun to serve: a question to an earlier one is answered no more. */
  #servings = 0;
  /** Called while the files are read. */
  onReading = (): void => {};
  digest = 'digest-0';
  files = ['tls.crt'];
  /** Why Envoy could not use the files. */
  fileProblems: string[] = [];
  /** Why Envoy could not be asked about them; undefined when it was. */
  notJudged: string | undefined;
  /** For each reading, whether Envoy was to be asked. */
  readonly judgements: boolean[] = [];
  readonly readiness: { ready: boolean; reason: string }[] = [];
  envoyLive = true;
  /** Listeners that the Envoy that serves refused at its start. */
  refused: readonly RefusedListener[] = [];
  /** Why Envoy's admin interface says that none of the application's ports is served. */
  unserved = '';
  /** The admin port is nobody's. */
  adminGone = false;
  /** A port of the Envoy that serves answers. */
  portAnswers = true;
  /** Envoy's admin interface answers when the test says so. */
  answersLate = false;
  answer = (): void => {};
  failed: unknown;
  readonly agent: Actor<typeof agentMachine>;
  #asked = 0;
  readonly #hungReadings: (() => void)[] = [];
  #sendSignal: Send = () => {};
  #sendFiles: Send = () => {};
  #sendBinary: Send = () => {};
  #sendAwaited: Send = () => {};
  #sendHttp: Send = () => {};
  readonly #probes = new Map<string, Send>();
  readonly #baseIds: number[];

  constructor(settings: Partial<AgentSettings> = {}, baseIds = scriptedBaseIds) {
    AgentWorld.made.push(this);
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
        this.failed = error;
      },
    });
  }

  /** A world in which epoch 0 serves. */
  static async serving(settings: Partial<AgentSettings> = {}, baseIds = scriptedBaseIds): Promise<AgentWorld> {
    const world = new AgentWorld(settings, baseIds);
    await world.settle();
    world.newest().live();
    await world.settle();
    return world;
  }

  /** Lets promises of effects resolve; no time passes. */
  async settle(): Promise<void> {
    for (let turn = 0; turn < 20; turn++) await Promise.resolve();
  }

  /** Lets time pass in small steps, with effects answering in between. */
  async pass(ms: number): Promise<void> {
    const until = this.clock.now() + ms;
    await this.settle();
    for (let next = this.clock.pending()[0]; next !== undefined && this.clock.now() + next <= until; ) {
      this.clock.fireNext();
      await this.settle();
      next = this.clock.pending()[0];
    }
    this.clock.advance(until - this.clock.now());
    await this.settle();
  }

  /** Lets time pass until another Envoy is started. */
  async nextStart(): Promise<void> {
    const before = this.started.length;
    await this.settle();
    for (let step = 0; this.started.length === before; step++) {
      if (step > 100 || !this.clock.fireNext()) throw new Error('no other Envoy is started');
      await this.settle();
    }
  }

  newest(): ScriptedProcess {
    const newest = this.started.at(-1);
    if (newest === undefined) throw new Error('no Envoy was started');
    return newest;
  }

  /** The process of that name that was started last. */
  process(name: string): ScriptedProcess {
    const found = this.started.findLast((process) => process.name === name);
    if (found === undefined) throw new Error(`no ${name} was started`);
    return found;
  }

  /** Somebody orders POST /drain. */
  orderDrain(): void {
    this.#sendHttp({ type: 'drain.requested' });
  }

  /** Somebody orders the end by POST /quitquitquit. */
  quit(): void {
    this.#sendHttp({ type: 'quit.requested' });
  }

  /** The status port's server breaks. */
  breakStatus(reason: string): void {
    this.#sendHttp({ type: 'http.failed', reason });
  }

  signal(signal: Signal): void {
    this.#sendSignal({ type: 'signal.received', signal });
  }

  /** A watched directory changed; from now on it hashes to `digest`. */
  changeFiles(digest: string): void {
    this.digest = digest;
    this.#sendFiles({ type: 'files.changed', path: 'tls.crt' });
  }

  /** Changes the files and lets the watcher's delay pass. */
  async certificate(digest: string): Promise<void> {
    this.changeFiles(digest);
    await this.pass(10_000);
  }

  /** Another file is at the path of the binary, and has rested. */
  async replaceBinary(found: AgentWorld['binary']): Promise<void> {
    this.binary = found;
    this.touchBinary();
    await this.pass(defaultSettings.binary.settleMs);
  }

  /** The file at the path is written. */
  touchBinary(): void {
    this.#sendBinary({ type: 'files.changed', path: '/usr/bin/envoy' });
  }

  /** POST /upgrade. */
  async orderUpgrade(): Promise<void> {
    this.#sendHttp({ type: 'upgrade.requested' });
    await this.settle();
  }

  /** What is seen of the files that the first start needs. */
  filesAre(missing: string[], unreachable: string[] = []): void {
    this.#sendAwaited({ type: 'files.pending', missing, unreachable });
  }

  /** The watch of the directory says so. */
  watch(event: WatchBegan | WatchFailed | DirectoryMissing | DirectoryFound): void {
    this.#sendFiles(event);
  }

  async ask(): Promise<{ ready: boolean; reason: string }> {
    this.#sendHttp({ type: 'readiness.requested', request: this.#asked++ });
    await this.settle();
    return this.readiness.at(-1)!;
  }

  /** The file system answers what it was asked while it hung. */
  async answerHungReadings(): Promise<void> {
    for (const answer of this.#hungReadings.splice(0)) answer();
    await this.settle();
  }

  /** What the supervisor is at, by the tags of its states; `gone` when it has ended. */
  supervisorIs(): string[] {
    const supervisor = this.#snapshot('supervisor');
    if (supervisor === undefined) return ['gone'];
    const { restart, shutdown } = supervisor.children as Record<string, Actor<AnyStateMachine> | undefined>;
    const charts = [supervisor, ...[restart, shutdown].flatMap((child) => child?.getSnapshot() ?? [])];
    return charts.flatMap(({ tags }) => [...tags] as string[]).sort();
  }

  /** Names of the epochs that are actors: also of those that are over, until they are forgotten. */
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

  /** The events of one type, whoever they were for. */
  events(type: string): AnyEventObject[] {
    return this.records.flatMap((r) => (r.kind === 'event' && r.event.type === type ? [r.event] : []));
  }

  /** What the Envoy that serves says when it is asked. */
  #word(at: EnvoyProbe['at']): Pick<EnvoyResponded, 'by' | 'live' | 'detail' | 'unserved'> {
    if (at === 'port' || (at === 'admin or port' && this.adminGone)) {
      return {
        by: 'port',
        live: this.portAnswers,
        detail: this.portAnswers ? 'port 15021 answers' : 'no answer',
        unserved: '',
      };
    }
    if (this.adminGone) return { by: 'admin', live: false, detail: 'connection refused', unserved: '' };
    if (!this.envoyLive) return { by: 'admin', live: false, detail: '503', unserved: '' };
    return { by: 'admin', live: true, detail: 'LIVE', unserved: this.unserved };
  }

  #snapshot(systemId: 'supervisor') {
    return (this.agent.system.get(systemId) as Actor<typeof supervisorMachine> | undefined)?.getSnapshot();
  }

  #machine() {
    const keyOf = ({ epoch, baseId }: EpochRun): string => `${epoch}@${baseId}`;
    const process = fromCallback<ProcessSignal, StartOrder>(({ input, sendBack, receive }) => {
      if (this.breakNextProcess) throw new Error('a bug of ours');
      if (this.spawnAnswer !== undefined) {
        sendBack({ type: 'process.failed', reason: this.spawnAnswer });
        return;
      }
      const scripted: ScriptedProcess = {
        name: `epoch-${input.epoch}${input.baseId === this.#baseIds[0] ? '' : 'b'}`,
        epoch: input.epoch,
        baseId: input.baseId,
        configFile: input.configFile,
        signals: [],
        live: () =>
          this.#probes.get(keyOf(input))?.({ type: 'probe.passed', timeToLiveMs: 300, unseenMs: this.unseenMs }),
        waits: (reason) => {
          this.waitsFor = reason;
        },
        lacks: (reason) => this.#probes.get(keyOf(input))?.({ type: 'probe.incomplete', reason }),
        exit: (end = {}) => {
          this.alive.delete(scripted);
          const defaults = { code: 0, signal: null, lastWords: '', refusedByParent: false, outOfMemory: false };
          sendBack({ type: 'process.exited', ...defaults, ...end });
        },
      };
      receive((order) => scripted.signals.push(order.signal));
      this.started.push(scripted);
      this.alive.add(scripted);
      sendBack({ type: 'process.spawned', pid: 1000 + this.started.length, startedAtMs: 0 });
    });
    const probe = fromCallback<ProbeRun | ProbeExplain, ProbeOrder>(({ input, sendBack, receive }) => {
      this.#probes.set(keyOf(input), sendBack);
      receive(async (order) => {
        if (order.type === 'probe.run') this.looks.push(`${keyOf(input)}${order.asItIs ? ' as it is' : ''}`);
        // No probe answers in the turn in which it is asked.
        await Promise.resolve();
        if (order.type === 'probe.explain') {
          sendBack({ type: 'probe.waiting', reason: this.waitsFor });
          return;
        }
        if (this.onLook === 'live') sendBack({ type: 'probe.passed', timeToLiveMs: 300, unseenMs: this.unseenMs });
        if (this.onLook === 'not live') sendBack({ type: 'probe.failed', reason: '503 INITIALIZING' });
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
          const { certificates, controlPlaneLimitMs, binary, adminPort, ...rest } = input;
          this.binaries.push(binary);
          this.prepared.push(rest);
          if (this.preparationHangs) await new Promise(() => {});
          if (this.looksAtCertificates && certificates !== null && certificates !== this.digest) {
            return { outdated: 'the certificate files changed after they were checked' };
          }
          if (this.rejectBootstrap !== undefined) throw new Error(this.rejectBootstrap);
          if (this.outdated !== undefined) return { outdated: this.outdated };
          if (this.unwritable !== undefined) return { unwritable: this.unwritable };
          if (this.unreachable !== undefined && controlPlaneLimitMs !== null) return { unreachable: this.unreachable };
          return { configFile: `envoy-rev${input.epoch}.json`, adminPort: adminPort || this.nextFreePort++ };
        }),
        drainListeners: fromPromise<void, DrainListenersOrder>(async ({ input: { adminPort, ...order } }) => {
          this.drained.push(order);
          this.drainedAt.push(adminPort);
          if (this.drainAnswer !== undefined) throw new Error(this.drainAnswer);
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
            watchDirectory: fromCallback<{ type: never }, { directory: string; seen: string | null }>(
              ({ input, sendBack }) => {
                this.watches.push(input);
                this.#sendFiles = sendBack;
                if (this.watchAnswer !== undefined) sendBack({ type: this.watchAnswer, reason: 'ENOSPC', seen: null });
                if (input.seen !== null && input.seen !== this.digest) {
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
          { digest: string; files: string[]; problems: string[]; notJudged?: string },
          { directories: string[]; judge: boolean }
        >(async ({ input }) => {
          this.judgements.push(input.judge);
          if (this.digestAnswer !== undefined) throw new Error(this.digestAnswer);
          if (this.readingHangs) await new Promise<void>((answer) => void this.#hungReadings.push(answer));
          const reading = { digest: this.digest, files: this.files, problems: this.fileProblems };
          const verdict = input.judge && this.notJudged !== undefined ? { notJudged: this.notJudged } : {};
          this.onReading();
          return { ...reading, ...verdict };
        }),
      },
    });
    const status = statusMachine.provide({
      actors: {
        http: fromCallback(({ sendBack, receive, input }) => {
          this.#sendHttp = sendBack;
          if (this.httpAnswer === undefined) sendBack({ type: 'http.listening', port: input.port });
          else sendBack({ type: 'http.failed', reason: this.httpAnswer });
          const tellListeners = (): void => sendBack({ type: 'listeners.checked', listeners: this.refused });
          receive((order) => {
            if (order.type === 'admin.use') {
              this.#servings++;
              this.adminOf = order.baseId;
              tellListeners();
            } else if (order.type === 'readiness.respond') {
              this.readiness.push({ ready: order.ready, reason: order.reason });
            } else if (order.type === 'envoy.probe') {
              const asked = this.#servings;
              this.answer = () => {
                if (this.#servings !== asked) return;
                if (order.at === 'admin') tellListeners();
                sendBack({ type: 'envoy.responded', request: order.request, ...this.#word(order.at) });
              };
              if (!this.answersLate) this.answer();
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
              this.dnsOpened++;
              this.tellDns = sendBack;
              const { dnsAnswer } = this;
              if (dnsAnswer === 'listening')
                sendBack({ type: 'dns-port.listening', addresses: ['127.0.0.1'], port: 15053 });
              if (dnsAnswer === 'failed') sendBack({ type: 'dns-port.failed', reason: 'EADDRINUSE' });
            }),
          },
        }),
        grpcBootstrap: grpcBootstrapMachine.provide({
          actors: {
            writeGrpcBootstrap: fromPromise<WriteOutcome, undefined>(async () => {
              this.grpcBootstrapWrites++;
              if (this.grpcBootstrapAnswer === 'hangs') await new Promise(() => {});
              if (this.grpcBootstrapAnswer !== undefined) return { reason: this.grpcBootstrapAnswer };
              return { file: '/etc/istio/proxy/grpc-bootstrap.json' };
            }),
          },
        }),
        // Certificates are never obtained: a test reports the files by itself.
        secrets: secretsMachine.provide({
          actors: {
            lookForServer: fromPromise(async () => this.secretServer),
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
            ask: fromCallback<PatchesCancel, { shows: UpstreamCredential }>(({ input, receive, sendBack }) => {
              receive(({ waitedMs }) => void this.questionsWithdrawn.push(waitedMs));
              this.patchesAsked.push(input.shows);
              const answer = this.patchesAnswer;
              if (this.takesQuestion && answer?.is !== 'unreachable') sendBack({ type: 'patches.requested' });
              if (answer !== undefined) sendBack({ type: 'patches.completed', answer });
            }),
          },
        }),
        claimBaseIds: fromPromise(async () => {
          // A test says what is answered when its world is made.
          await Promise.resolve();
          if (this.claimAnswer !== undefined) throw new Error(this.claimAnswer);
          return { baseIds: this.#baseIds, sweptFiles: [] as string[] };
        }),
        releaseBaseIds: fromPromise<void, { baseIds: number[]; keeps: boolean }>(async ({ input }) => {
          this.released = input.baseIds;
          if (this.releaseHangs) await new Promise(() => {});
          if (this.releaseAnswer !== undefined) throw new Error(this.releaseAnswer);
        }),
        status,
        binaryWatcher: binaryWatcherMachine.provide({
          actors: {
            directory: directoryWatchMachine.provide({
              actors: {
                watchDirectory: fromCallback<{ type: never }, { directory: string; seen: string | null }>(
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
              if (this.repairAnswer !== undefined) throw new Error(this.repairAnswer);
              this.repaired.push(input.baseId);
            }),
            shutdown: shutdownMachine.provide({
              actors: {
                countRequests: fromPromise<number, { adminPort: number }>(async ({ input }) => {
                  this.counted.push(input.adminPort);
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
