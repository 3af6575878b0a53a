/** Runs a calibration scenario on real Envoys with separate base IDs, ports and folders, and leaves nothing behind. */
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createActor, toPromise } from 'xstate';
import { type AdminClient, AdminTimeoutError, createAdminClient } from '../../src/agent/admin/admin-client.ts';
import { type ClaimedBaseId, claimBaseId } from '../../src/agent/envoy/base-ids/base-ids.ts';
import { repairSharedMemory } from '../../src/agent/envoy/base-ids/shared-memory.ts';
import { envoyArguments } from '../../src/agent/envoy/envoy-args.ts';
import { envoyBinary, testFlags } from '../fixtures/real-envoy.ts';
import { eventually } from '../harness/eventually.ts';
import { freePorts } from '../harness/free-ports.ts';
import { testRunVariable } from '../harness/host-processes.ts';
import { Program } from '../harness/program.ts';
import { type BootstrapPorts, bootstrap } from './envoy-bootstrap.ts';
import { type AdminObservation, type HostObservation, type Observation, Observations } from './observations.ts';
import type { CalibrationSignal, CalibrationStep, Family, Scenario, StartStep } from './scenario.ts';
import { servingProcesses } from './serving-processes.ts';

interface RealEnvoy {
  readonly program: Program;
  readonly start: StartStep;
  /** Resolves when the process's exit has been logged. */
  readonly over: Promise<void>;
}

/** Resources that the Envoys of one base ID share. */
interface FamilyResources {
  readonly claim: ClaimedBaseId;
  readonly adminPort: number;
  readonly admin: AdminClient;
}

interface HostPorts {
  readonly listener: number;
  readonly controlPlane: number;
  /** A port on which another program listens. */
  readonly taken: number;
}

/** Envoy's log line, which has no identifier. */
const refusalMessage = 'previous envoy process is still initializing';
/** A child's calls to a dead parent start up to five seconds after its death and last ten seconds (fact 4); the rest is reserve. */
const exitLimitMs = 30_000;
const liveLimitMs = 20_000;
/** An unblocked main thread responds much faster, even on a busy machine. */
const silenceMs = 1_500;
/** Two observations this far apart must be equal, because a take-over is not instantaneous. */
const settledMs = 150;
const maxObservations = 20;

/**
 * Runs all steps of a scenario.
 *
 * @param testRun mark to find leftover processes
 * @throws Error if an awaited event does not occur
 */
export async function runOnRealEnvoys(scenario: Scenario, testRun: string): Promise<readonly Observation[]> {
  await using run = await RealRun.begin(testRun);
  for (const step of scenario.steps) await run.take(step);
  return run.observed;
}

class RealRun {
  readonly #testRun: string;
  readonly #folder: string;
  readonly #ports: HostPorts;
  readonly #takenServer: Server;
  readonly #families = new Map<Family, FamilyResources>();
  readonly #envoys = new Map<string, RealEnvoy>();
  readonly #observations: Observations;
  /** Duration of observations since the last event: probing an unresponsive Envoy takes seconds. */
  #observingMs = 0;

  private constructor(testRun: string, folder: string, ports: HostPorts, takenServer: Server) {
    this.#testRun = testRun;
    this.#folder = folder;
    this.#ports = ports;
    this.#takenServer = takenServer;
    let last = performance.now();
    this.#observations = new Observations((agoMs) => {
      const eventAt = performance.now() - agoMs;
      const passed = { minMs: eventAt - last - this.#observingMs, maxMs: eventAt - last };
      last = eventAt;
      this.#observingMs = 0;
      return passed;
    });
  }

  static async begin(testRun: string): Promise<RealRun> {
    const [listener, controlPlane, takenPort] = await freePorts(3);
    const server = createServer((socket) => socket.destroy()).listen(takenPort, '127.0.0.1');
    const folder = mkdtempSync(join(tmpdir(), 'chartpilot-calibration-'));
    return new RealRun(
      testRun,
      folder,
      { listener: listener!, controlPlane: controlPlane!, taken: takenPort! },
      server,
    );
  }

  get observed(): readonly Observation[] {
    return [...this.#observations.entries];
  }

  async take(step: CalibrationStep): Promise<void> {
    switch (step.step) {
      case 'start':
        await this.#start(step);
        return;
      case 'live':
        await this.#waitForAdmin(step.name, (admin) => admin.live);
        this.#observations.occurred(step.name, 'is live');
        return;
      case 'admin open':
        await this.#waitForAdmin(step.name, () => true);
        this.#observations.occurred(step.name, 'has the admin port');
        return;
      case 'blocked':
        await this.#waitUntilBlocked(step.name);
        return;
      case 'closes':
        await this.#waitUntilClosed(step.name);
        return;
      case 'exits':
        await Promise.all(step.names.map((name) => this.#waitForExit(name)));
        this.#observations.leaveOrderOpen(step.names);
        return;
      case 'signal':
        this.#signal(step.name, step.signal);
        return;
      case 'hang':
        // A stopped process receives SIGTERM but does not act on it.
        this.#envoy(step.name).program.signal('SIGSTOP');
        this.#signal(step.name, 'SIGTERM');
        return;
      case 'drain':
        this.#observations.ordered(`listeners of ${step.name} drain`);
        await this.#familyOf(step.name).admin.post(`/drain_listeners${step.gradually ? '?graceful' : ''}`);
        return;
      case 'mark':
        this.#observations.ordered('the mark is set');
        setMark(this.#memoryFile());
        return;
      case 'repair':
        this.#observations.ordered('the mark is cleared');
        await this.#repair();
        return;
      case 'lose memory':
        this.#observations.ordered('the shared memory is removed');
        rmSync(this.#memoryFile());
        return;
      case 'observe':
        this.#observations.recordObservation(await this.#settledObservation());
        return;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { program } of this.#envoys.values()) program.signal('SIGKILL');
    await Promise.all([...this.#envoys.values()].map(({ over }) => over));
    for (const { claim } of this.#families.values()) claim.release();
    this.#takenServer.close();
    rmSync(this.#folder, { recursive: true });
  }

  async #start(step: StartStep): Promise<void> {
    const { claim, adminPort } = await this.#resourcesOf(step.family);
    const { name, epoch, configuration, parentShutdownMs, drainMs } = step;
    const { listener, controlPlane, taken } = this.#ports;
    const ports: BootstrapPorts = {
      admin: configuration === 'admin port taken' ? taken : adminPort,
      listener: configuration === 'listener port taken' ? taken : listener,
      controlPlane,
    };
    const configFile = join(this.#folder, `${name}.json`);
    writeFileSync(configFile, JSON.stringify(bootstrap(step, ports)));
    const flags = { ...testFlags, drainMs, parentShutdownMs, logLevel: 'warning' };
    this.#observations.ordered(`start of ${name}`);
    const program = Program.run(name, envoyBinary(), {
      args: envoyArguments(flags, { configFile, epoch, baseId: claim.baseId }),
      env: { ...process.env, [testRunVariable]: this.#testRun },
      cwd: this.#folder,
    });
    const exitRecorded = program.exited.then((exit) => {
      const refusedByParent = program.lines.some((line) => line.includes(refusalMessage));
      this.#observations.exited(name, { ...exit, refusedByParent });
    });
    this.#envoys.set(name, { program, start: step, over: exitRecorded });
  }

  async #resourcesOf(family: Family): Promise<FamilyResources> {
    const knownResources = this.#families.get(family);
    if (knownResources !== undefined) return knownResources;
    const claim = await claimBaseId({ runDir: this.#folder });
    const [adminPort] = await freePorts(1);
    const familyResources = { claim, adminPort: adminPort!, admin: createAdminClient('127.0.0.1', adminPort!) };
    this.#families.set(family, familyResources);
    return familyResources;
  }

  #signal(name: string, signal: CalibrationSignal): void {
    this.#observations.signalled(name, signal);
    this.#envoy(name).program.signal(signal);
  }

  async #waitForAdmin(name: string, isExpected: (admin: Exclude<AdminObservation, string>) => boolean): Promise<void> {
    const { program } = this.#envoy(name);
    await eventually(
      `${name} answers at its admin port`,
      async () => {
        const admin = await this.#adminOf(this.#familyOf(name));
        return typeof admin === 'object' && admin.name === name && isExpected(admin);
      },
      { deadlineMs: liveLimitMs, hopeless: () => program.hopeless() },
    );
  }

  async #waitUntilBlocked(name: string): Promise<void> {
    const { program } = this.#envoy(name);
    await eventually(`${name} answers no more`, async () => (await this.#adminOf(this.#familyOf(name))) === 'silent', {
      deadlineMs: exitLimitMs,
      hopeless: () => program.hopeless(),
    });
    this.#observations.occurred(name, 'is blocked', silenceMs);
  }

  async #waitUntilClosed(name: string): Promise<void> {
    await eventually(
      `${name} takes no more connections`,
      async () => !(await servingProcesses(this.#ports.listener)).includes(name),
      { deadlineMs: exitLimitMs, hopeless: () => this.#envoy(name).program.hopeless() },
    );
    this.#observations.occurred(name, 'takes no more connections');
  }

  async #waitForExit(name: string): Promise<void> {
    const { over } = this.#envoy(name);
    const inTime = await Promise.race([over.then(() => true), sleep(exitLimitMs, false, { ref: false })]);
    if (!inTime) throw new Error(`${name} has not exited after ${exitLimitMs} ms`);
  }

  async #repair(): Promise<void> {
    const { claim } = this.#families.get('main')!;
    const repairing = createActor(repairSharedMemory({ binary: envoyBinary() }), { input: { baseId: claim.baseId } });
    await toPromise(repairing.start());
  }

  async #settledObservation(): Promise<HostObservation> {
    const startedAt = performance.now();
    let previous = '';
    for (let tries = 0; tries < maxObservations; tries++) {
      const observation = await this.#observe();
      const now = JSON.stringify(observation);
      if (now === previous) {
        this.#observingMs += performance.now() - startedAt;
        return observation;
      }
      previous = now;
      await sleep(settledMs);
    }
    throw new Error(`what is seen does not settle; last: ${previous}`);
  }

  async #observe(): Promise<HostObservation> {
    const admins = [...this.#families].map(async ([family, resources]) => ({
      family,
      admin: await this.#adminOf(resources),
    }));
    return { admins: await Promise.all(admins), serving: await servingProcesses(this.#ports.listener) };
  }

  async #adminOf({ admin }: FamilyResources): Promise<AdminObservation> {
    try {
      const { body } = await admin.get('/server_info', silenceMs);
      const info = JSON.parse(body) as ServerInfo;
      // Proto JSON can omit zero and false.
      const epoch = info.command_line_options.restart_epoch ?? 0;
      return {
        name: this.#nameOf(admin, epoch),
        live: info.state === 'LIVE',
        marked: info.hot_restart_initializing ?? false,
      };
    } catch (error) {
      return error instanceof AdminTimeoutError ? 'silent' : 'nobody';
    }
  }

  /** The newest running process of this epoch. */
  #nameOf(admin: AdminClient, epoch: number): string {
    const matchingEnvoy = [...this.#envoys.values()].findLast(
      ({ start, program }) =>
        start.epoch === epoch && program.exit === undefined && this.#families.get(start.family)!.admin === admin,
    );
    return matchingEnvoy?.start.name ?? `an unknown epoch ${epoch}`;
  }

  #envoy(name: string): RealEnvoy {
    const realEnvoy = this.#envoys.get(name);
    if (realEnvoy === undefined) throw new Error(`the scenario starts no ${name}`);
    return realEnvoy;
  }

  #familyOf(name: string): FamilyResources {
    return this.#families.get(this.#envoy(name).start.family)!;
  }

  #memoryFile(): string {
    return `/dev/shm/envoy_shared_memory_${this.#families.get('main')!.claim.baseId * 10}`;
  }
}

interface ServerInfo {
  readonly state: string;
  readonly hot_restart_initializing?: boolean;
  readonly command_line_options: { readonly restart_epoch?: number };
}

/** docs/hot-restart-reference.md, fact 2. */
function setMark(memoryFile: string): void {
  const sharedMemoryFd = openSync(memoryFile, 'r+');
  writeSync(sharedMemoryFd, Buffer.from([0x01]), 0, 1, 96);
  closeSync(sharedMemoryFd);
}
