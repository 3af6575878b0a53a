/** The control plane of a churn run: its process, the processes that replace it at the same ports, and their measurements. */
import { readdirSync } from 'node:fs';
import { cpuTimeMs } from '../bench/cpu-time.ts';
import { memoryOf } from '../bench/memory-usage.ts';
import type { Programs } from '../bench/programs.ts';
import { collectedMemory } from '../bench/push/collected-memory.ts';
import {
  type PilotOptions,
  type PilotServer,
  type ServedMesh,
  startPilot,
  waitForPort,
} from '../bench/push/servers.ts';
import { freePorts } from '../harness/free-ports.ts';
import { Inspector } from '../harness/inspector.ts';
import type { ResourceSample } from './final-checks.ts';

/** A process, from its start to its end. */
interface ServerLife {
  readonly server: PilotServer;
  readonly inspector: Inspector;
  readonly startedAtMs: number;
  readonly samples: ResourceSample[];
}

export class ServerLives {
  readonly #start: () => Promise<ServerLife>;
  readonly #ended: ServerLife[] = [];
  #life: ServerLife;
  #cpuOfEndedMs = 0;
  #isRestarting = false;
  #sampling: Promise<void> = Promise.resolve();

  private constructor(start: () => Promise<ServerLife>, life: ServerLife) {
    this.#start = start;
    this.#life = life;
  }

  static async start(programs: Programs, mesh: ServedMesh, options: PilotOptions): Promise<ServerLives> {
    const [grpc, http, monitoring, inspectorPort] = await freePorts(4);
    const start = async (): Promise<ServerLife> => {
      const server = await startPilot(programs, mesh, {
        ...options,
        ports: [grpc!, http!, monitoring!],
        env: { ...options.env, NODE_OPTIONS: `--inspect=127.0.0.1:${inspectorPort}` },
      });
      await waitForPort(server);
      const inspector = await Inspector.attach(inspectorPort!);
      return { server, inspector, startedAtMs: performance.now(), samples: [] };
    };
    return new ServerLives(start, await start());
  }

  /** PID of the current or last process. */
  get pid(): number {
    return this.#life.server.pid;
  }

  get port(): number {
    return this.#life.server.port;
  }

  get httpPort(): number {
    return this.#life.server.httpPort;
  }

  /** Samples of each process, oldest first; times are ages. */
  get samples(): readonly (readonly ResourceSample[])[] {
    return [...this.#ended, this.#life].map(({ samples }) => samples);
  }

  /** CPU time of all processes. */
  get cpuMs(): number {
    return this.#cpuOfEndedMs + (this.#isRestarting ? 0 : cpuTimeMs(this.pid));
  }

  /** Returns why the server failed, if it exited without an order. */
  hopeless(): string | undefined {
    return this.#isRestarting ? undefined : this.#life.server.hopeless();
  }

  /**
   * Stops the process in order and starts the next one.
   *
   * @param stopped called when the process has exited
   * @returns milliseconds without an open port
   * @throws Error if the exit code is not 0
   */
  async restart(stopped: () => void): Promise<number> {
    await this.#sampling;
    this.#isRestarting = true;
    this.#cpuOfEndedMs += cpuTimeMs(this.pid);
    const begun = performance.now();
    await this.stop();
    stopped();
    this.#ended.push(this.#life);
    this.#life = await this.#start();
    this.#isRestarting = false;
    return this.#life.startedAtMs - begun;
  }

  /** Samples the process after a garbage collection; does nothing during a restart. */
  async sample(): Promise<void> {
    if (this.#isRestarting) return;
    this.#sampling = this.#sample(this.#life);
    await this.#sampling;
  }

  /** Stops the process. @throws Error if the exit code is not 0 */
  async stop(): Promise<void> {
    const { server, inspector } = this.#life;
    inspector.close();
    const { code, signal } = await server.stop();
    if (code !== 0) throw new Error(`pilot-discovery ended with ${signal ?? `exit code ${code}`} on SIGTERM`);
  }

  async #sample({ server: { pid }, inspector, startedAtMs, samples }: ServerLife): Promise<void> {
    const atMs = performance.now() - startedAtMs;
    const { rssMib } = memoryOf(pid);
    const { heapMib } = await collectedMemory(pid, inspector);
    samples.push({ atMs, rssMib, heapMib, descriptors: readdirSync(`/proc/${pid}/fd`).length });
  }
}
