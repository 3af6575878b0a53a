/**
 * The agent's real statecharts with scripted effects, under a virtual clock. A test plays the operating system: it says
 * when a file changes, when an Envoy is live, and how it ends.
 */
import { type Actor, type AnyEventObject, fromCallback, fromPromise } from 'xstate';
import { type AgentOutput, agentMachine } from '../../machines/agent/agent.machine.ts';
import { certWatcherMachine } from '../../machines/agent/cert-watcher.machine.ts';
import { epochMachine } from '../../machines/agent/epoch.machine.ts';
import type { ProcessSignal, Signal } from '../../machines/agent/protocol.ts';
import { type AgentSettings, defaultSettings } from '../../machines/agent/settings.ts';
import { statusMachine } from '../../machines/agent/status.machine.ts';
import { supervisorMachine } from '../../machines/agent/supervisor.machine.ts';
import { createRecorder, startRoot, stateName } from '../../src/runtime/actor-system.ts';
import type { TraceRecord } from '../../src/runtime/trace.ts';
import { VirtualClock } from './virtual-clock.ts';

/** One scripted Envoy process: alive from its start until `exit` is called. */
export interface ScriptedProcess {
  epoch: number;
  signals: string[];
  /** The admin interface answers 200 for this epoch. */
  live(): void;
  exit(end?: { code?: number | null; signal?: string | null; lastWords?: string; refusedByParent?: boolean }): void;
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
  readonly prepared: { epoch: number; validate: boolean }[] = [];
  rejectBootstrap: string | undefined;
  drainAnswer: string | undefined;
  /** Why shared memory cannot be repaired; undefined when it can. */
  repairAnswer: string | undefined;
  repairs = 0;
  digest = 'digest-0';
  files = ['tls.crt'];
  /** Why Envoy could not use the files. */
  fileProblems: string[] = [];
  readonly readiness: { ready: boolean; reason: string }[] = [];
  envoyLive = true;
  failed: unknown;
  readonly agent: Actor<typeof agentMachine>;
  #sendSignal: Send = () => {};
  #sendFiles: Send = () => {};
  #sendHttp: Send = () => {};
  readonly #probes = new Map<number, Send>();

  constructor(settings: Partial<AgentSettings> = {}) {
    AgentWorld.made.push(this);
    const recorder = createRecorder({ program: 'pilot-agent', now: () => this.clock.now() });
    recorder.observe((record) => this.records.push(record));
    this.agent = startRoot(this.#machine(), {
      id: 'agent',
      input: { settings: { ...defaultSettings, ...settings } },
      recorder,
      clock: this.clock as never,
      onError: (error) => {
        this.failed = error;
      },
    });
  }

  /** A world in which epoch 0 serves. */
  static async serving(settings: Partial<AgentSettings> = {}): Promise<AgentWorld> {
    const world = new AgentWorld(settings);
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

  async ask(): Promise<{ ready: boolean; reason: string }> {
    this.#sendHttp({ type: 'readiness.asked', request: this.readiness.length });
    await this.settle();
    return this.readiness.at(-1)!;
  }

  supervisorState(): string {
    const supervisor = this.#snapshot('supervisor');
    return supervisor === undefined ? 'gone' : stateName(supervisor.value);
  }

  output(): AgentOutput | undefined {
    return this.agent.getSnapshot().output;
  }

  /** The events that passed between actors, as `from → to: type`. */
  messages(): string[] {
    return this.records.flatMap((r) => (r.kind === 'event' ? [`${r.from} → ${r.to}: ${r.event.type}`] : []));
  }

  #snapshot(systemId: 'supervisor') {
    return (this.agent.system.get(systemId) as Actor<typeof supervisorMachine> | undefined)?.getSnapshot();
  }

  #machine() {
    const process = fromCallback<ProcessSignal, { epoch: number; baseId: number; configFile: string }>(
      ({ input, sendBack, receive }) => {
        const scripted: ScriptedProcess = {
          epoch: input.epoch,
          signals: [],
          live: () => this.#probes.get(input.epoch)?.({ type: 'probe.passed', timeToLiveMs: 300 }),
          exit: (end = {}) => {
            this.alive.delete(scripted);
            const defaults = { code: 0, signal: null, lastWords: '', refusedByParent: false };
            sendBack({ type: 'process.exited', ...defaults, ...end });
          },
        };
        receive((order) => scripted.signals.push(order.signal));
        this.started.push(scripted);
        this.alive.add(scripted);
        sendBack({ type: 'process.spawned', pid: 1000 + this.started.length });
      },
    );
    const probe = fromCallback<{ type: never }, { epoch: number }>(({ input, sendBack }) => {
      this.#probes.set(input.epoch, sendBack);
      return () => this.#probes.delete(input.epoch);
    });
    const epoch = epochMachine.provide({
      actors: {
        process,
        probe,
        prepare: fromPromise<{ configFile: string }, { epoch: number; baseId: number; validate: boolean }>(
          async ({ input }) => {
            this.prepared.push({ epoch: input.epoch, validate: input.validate });
            if (this.rejectBootstrap !== undefined) throw new Error(this.rejectBootstrap);
            return { configFile: `envoy-rev${input.epoch}.json` };
          },
        ),
        drainListeners: fromPromise<void, { epoch: number }>(async () => {
          if (this.drainAnswer !== undefined) throw new Error(this.drainAnswer);
        }),
      },
    });
    const certWatcher = certWatcherMachine.provide({
      actors: {
        waitForFiles: fromPromise<{ missing: string[] }, { files: string[]; limitMs: number }>(async () => ({
          missing: [],
        })),
        watchFiles: fromCallback(({ sendBack }) => {
          this.#sendFiles = sendBack;
        }),
        digestFiles: fromPromise<{ digest: string; files: string[]; problems: string[] }, { directories: string[] }>(
          async () => ({ digest: this.digest, files: this.files, problems: this.fileProblems }),
        ),
      },
    });
    const status = statusMachine.provide({
      actors: {
        http: fromCallback(({ sendBack, receive, input }) => {
          this.#sendHttp = sendBack;
          sendBack({ type: 'http.listening', port: input.port });
          receive((order) => {
            if (order.type === 'readiness.answer') this.readiness.push({ ready: order.ready, reason: order.reason });
            else {
              sendBack({ type: 'envoy.answered', request: order.request, live: this.envoyLive, detail: '503' });
            }
          });
        }),
      },
    });
    return agentMachine.provide({
      actors: {
        signals: fromCallback(({ sendBack }) => {
          this.#sendSignal = sendBack;
        }),
        claimBaseId: fromPromise(async () => ({ baseId: 7, sweptFiles: [] as string[] })),
        releaseBaseId: fromPromise<void, { baseId: number }>(async () => {}),
        status,
        certWatcher,
        supervisor: supervisorMachine.provide({
          actors: {
            epoch,
            repair: fromPromise<void, { baseId: number }>(async () => {
              if (this.repairAnswer !== undefined) throw new Error(this.repairAnswer);
              this.repairs++;
            }),
          },
        }),
      },
    });
  }
}
