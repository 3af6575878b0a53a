/**
 * The complete system on loopback: control plane, a gateway and a sidecar each with agent and real Envoy, and two versions of the sample
 * service. A test starts all of it ({@link startMesh}) or part by part ({@link Mesh.create}).
 */
import { randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packageRoot } from '../../src/runtime/package-root.ts';
import {
  createServerCertificates,
  renewServerCertificate,
  type ServerCertificates,
} from '../certs/issued-certificates.ts';
import { type LoadRun, startLoad } from '../load/load-process.ts';
import type { LoadPlan, LoadTarget } from '../load/plan.ts';
import { Container } from './container.ts';
import { eventually } from './eventually.ts';
import { freePorts } from './free-ports.ts';
import {
  type EnvoyProcess,
  envoysInNamespaceOf,
  envoysOf,
  envoysOfRun,
  hostProcesses,
  leftovers,
  signalIfAlive,
  testRunVariable,
} from './host-processes.ts';
import { MeshDirectory, type MeshPorts } from './mesh-directory.ts';
import { type AgentName, MeshIdentity } from './mesh-identity.ts';
import { probe } from './probe.ts';
import { Program, type ProgramOptions } from './program.ts';
import { agentArguments, agentEnvironment, discoveryArguments, withFlags } from './program-arguments.ts';

export const sampleHost = 'sample.localhost';

export interface MeshOptions {
  /** Whether the proxies use delta xDS. */
  readonly delta?: boolean;
  /** Whether there is a sidecar; without it, the gateway reaches v1 directly. Default true. */
  readonly sidecar?: boolean;
  /** Whether the control plane is the authority, agents have certificates, and plaintext is rejected. Default false. */
  readonly mutualTls?: boolean;
  /** Ports of the example mesh (default: free ports). */
  readonly ports?: MeshPorts;
  /** Delays of the agents, short by default; all except `watchDelayMs` are whole seconds. */
  readonly watchDelayMs?: number;
  readonly drainMs?: number;
  readonly parentShutdownMs?: number;
  readonly terminationDrainMs?: number;
  /** Additional arguments of each agent. */
  readonly agentArgs?: readonly string[];
  /** Additional environment of every program. */
  readonly env?: NodeJS.ProcessEnv;
  /** A folder with an installed package, whose programs and example are used instead of this checkout's. */
  readonly installedIn?: string;
  /** Folder of the agents' base ID locks (default: that of the agents). */
  readonly runDirectory?: string;
}

/** An agent, its ports, and the location of its trace. */
export interface AgentProgram {
  readonly program: Program;
  readonly adminPort: number;
  readonly statusPort: number;
  readonly traceFile: string;
  /** The agent's container, if it has one: its Envoys may then be children of any agent, or orphans. */
  readonly container?: Container;
}

type AgentCommand = [
  role: 'router' | 'sidecar',
  name: AgentName,
  ports: { readonly admin: number; readonly status: number },
  labels: Readonly<Record<string, string>>,
  extraArgs: readonly string[],
];

export interface ContainedSidecar extends AgentProgram {
  readonly container: Container;
}

export interface DiscoveryProgram {
  readonly program: Program;
  readonly httpPort: number;
  readonly monitoringPort: number;
  readonly traceFile: string;
}

interface ControlPorts {
  readonly xds: number;
  readonly secure: number;
  readonly http: number;
  readonly monitoring: number;
  readonly gateway: { readonly admin: number; readonly status: number };
  readonly sidecar: { readonly admin: number; readonly status: number };
}

const defaultTimes = { watchDelayMs: 500, drainMs: 5_000, parentShutdownMs: 12_000, terminationDrainMs: 1_000 };

export class Mesh {
  /** Directory for everything that the mesh writes; removed by {@link Mesh.stop}. */
  readonly root: string;
  readonly ports: MeshPorts;
  readonly directory: MeshDirectory;
  readonly certificates: ServerCertificates;
  discovery: DiscoveryProgram | undefined;
  gateway: AgentProgram | undefined;
  sidecar: AgentProgram | undefined;
  readonly #options: MeshOptions;
  readonly #controlPorts: ControlPorts;
  readonly #env: NodeJS.ProcessEnv;
  readonly #binFolder: string | undefined;
  readonly #identity: MeshIdentity | undefined;
  readonly #testRun = randomUUID();
  /** Base IDs that Envoys of this mesh have used. */
  readonly #baseIds = new Set<number>();
  readonly #baseIdWatch = setInterval(() => this.#noteBaseIds(), 500).unref();
  readonly #programs: Program[] = [];
  readonly #loads: LoadRun[] = [];
  #isStopped = false;

  private constructor(options: MeshOptions, ports: MeshPorts, controlPorts: ControlPorts) {
    this.#options = options;
    this.#controlPorts = controlPorts;
    this.ports = ports;
    this.root = mkdtempSync(join(tmpdir(), 'chartpilot-mesh-'));
    mkdirSync(join(this.root, 'logs'));
    mkdirSync(join(this.root, 'traces'));
    this.certificates = createServerCertificates(join(this.root, 'certs'), [sampleHost]);
    // Without a sidecar, its ingress port is that of v1.
    const configuredPorts = options.sidecar === false ? { ...ports, sidecarIngress: ports.v1 } : ports;
    const { installedIn } = options;
    const modules = installedIn === undefined ? undefined : join(installedIn, 'node_modules');
    const installation = modules === undefined ? undefined : join(modules, 'chartpilot');
    this.directory = new MeshDirectory(this.root, configuredPorts, this.certificates.directory, installation);
    if (options.mutualTls === true) {
      this.directory.requireMutualTls();
      this.#identity = new MeshIdentity(this.root, controlPorts.secure);
    }
    this.#binFolder = modules === undefined ? undefined : join(modules, '.bin');
    this.#env = { ...process.env, ...options.env, [testRunVariable]: this.#testRun };
  }

  /** Prepares directories, certificates and ports without starting programs. */
  static async create(options: MeshOptions = {}): Promise<Mesh> {
    type Four = [number, number, number, number];
    const [http, https, sidecarEgress, sidecarIngress] = (await freePorts(4)) as Four;
    const [v1, v2, xds, securePort] = (await freePorts(4)) as Four;
    const [httpPort, monitoring] = (await freePorts(2)) as [number, number];
    const agents = (await freePorts(4)) as Four;
    const mesh = new Mesh(options, options.ports ?? { http, https, sidecarEgress, sidecarIngress, v1, v2 }, {
      xds,
      secure: securePort,
      http: httpPort,
      monitoring,
      gateway: { admin: agents[0], status: agents[1] },
      sidecar: { admin: agents[2], status: agents[3] },
    });
    // An installed package issues tokens with its own programs.
    if (options.installedIn === undefined) await mesh.#identity?.issueTokens();
    return mesh;
  }

  /** The gateway's plaintext port. */
  get httpTarget(): LoadTarget {
    return { host: '127.0.0.1', port: this.ports.http, authority: sampleHost };
  }

  /** The gateway's TLS port, with the authority of the mesh. */
  get httpsTarget(): LoadTarget {
    return { host: '127.0.0.1', port: this.ports.https, authority: sampleHost, caFile: this.certificates.caFile };
  }

  /** The sidecar's outbound listener. */
  get sidecarTarget(): LoadTarget {
    return { host: '127.0.0.1', port: this.ports.sidecarEgress, authority: sampleHost };
  }

  get xdsPort(): number {
    return this.#controlPorts.xds;
  }

  get logDirectory(): string {
    return join(this.root, 'logs');
  }

  /** The traces of all started programs, including exited ones. */
  get traceFiles(): string[] {
    const directory = join(this.root, 'traces');
    return readdirSync(directory)
      .filter((name) => name.endsWith('.trace.ndjson'))
      .map((name) => join(directory, name));
  }

  /** Trace file of the next start of a program; each start writes another file. */
  traceFileOf(name: string): string {
    const earlierCount = this.#programs.filter((program) => program.name === name).length;
    return join(this.root, 'traces', `${name}${earlierCount === 0 ? '' : `-${earlierCount + 1}`}.trace.ndjson`);
  }

  /** Starts all programs and waits until requests pass each proxy: over HTTP, over HTTPS, and out of the sidecar. */
  async startAll(): Promise<void> {
    const withSidecar = this.#options.sidecar !== false;
    await Promise.all([this.startSamples(), this.startDiscovery()]);
    const agents = [this.startGateway(), ...(withSidecar ? [this.startSidecar()] : [])];
    await Promise.all(agents.map((agent) => this.waitForAgent(agent)));
    const targets = [this.httpTarget, this.httpsTarget, ...(withSidecar ? [this.sidecarTarget] : [])];
    await Promise.all(targets.map((target) => this.waitForResponse(target)));
  }

  /** Starts both versions of the sample service. */
  async startSamples(): Promise<void> {
    const main = join(packageRoot(), 'test/sample/main.ts');
    const programs = (['v1', 'v2'] as const).map((version) =>
      this.#register(
        Program.run(`sample ${version}`, process.execPath, {
          ...this.#programOptions(`sample-${version}`),
          args: [main, '--version', version, '--port', String(this.ports[version])],
        }),
      ),
    );
    await Promise.all(programs.map((program) => program.line(/^ready /)));
  }

  /** Starts the control plane and waits until it is ready. */
  async startDiscovery(extraArgs: readonly string[] = []): Promise<DiscoveryProgram> {
    const { xds, http, monitoring } = this.#controlPorts;
    const traceFile = this.traceFileOf('pilot-discovery');
    const defaultArguments = discoveryArguments({
      configDirectory: this.directory.path,
      meshConfigFile: this.directory.meshConfigFile,
      xdsPort: xds,
      httpPort: http,
      monitoringPort: monitoring,
      traceFile,
    });
    const args = withFlags(withFlags(defaultArguments, this.#identity?.discoveryArguments ?? []), extraArgs);
    const programOptions = this.#programOptions('pilot-discovery');
    const env = { ...programOptions.env, ...this.#identity?.discoveryEnvironment };
    const program = this.#register(Program.start('pilot-discovery', { ...programOptions, args, env }));
    this.discovery = { program, httpPort: http, monitoringPort: monitoring, traceFile };
    await this.#ready('the control plane is ready', program, http, '/ready');
    return this.discovery;
  }

  /** Starts the gateway's agent without waiting for its Envoy. */
  startGateway(extraArgs: readonly string[] = []): AgentProgram {
    const { watchDelayMs } = { ...defaultTimes, ...this.#options };
    const args = [
      ...['--watchCerts', this.certificates.directory],
      ...['--watchDelay', `${watchDelayMs}ms`],
      ...extraArgs,
    ];
    const labels = { istio: 'ingressgateway' };
    this.gateway = this.#startAgent(['router', 'gateway', this.#controlPorts.gateway, labels, args]);
    return this.gateway;
  }

  /** Starts the agent of v1's sidecar without waiting for its Envoy. */
  startSidecar(extraArgs: readonly string[] = []): AgentProgram {
    const labels = { app: 'sample', version: 'v1' };
    this.sidecar = this.#startAgent(['sidecar', 'sidecar', this.#controlPorts.sidecar, labels, extraArgs]);
    return this.sidecar;
  }

  /** Starts the sidecar in its own container, where another agent may replace its agent. */
  async startContainedSidecar(env: NodeJS.ProcessEnv): Promise<ContainedSidecar> {
    const labels = { app: 'sample', version: 'v1' };
    const { programOptions, ports, args, ...command } = this.#agentCommand(
      'sidecar',
      'sidecar',
      this.#controlPorts.sidecar,
      labels,
      [],
    );
    const container = await Container.start({ ...programOptions, args, env: { ...command.env, ...env } });
    const { program } = container;
    this.#register(program);
    const sidecar = { program, ...ports, container };
    this.sidecar = sidecar;
    return sidecar;
  }

  /** Waits until an agent reports that its Envoy serves. */
  async waitForAgent({ program, statusPort }: AgentProgram): Promise<void> {
    await this.#ready(`${program.name} is ready`, program, statusPort, '/healthz/ready');
  }

  async waitForResponse(target: LoadTarget): Promise<void> {
    await eventually(
      `an answer at port ${target.port}`,
      async () => {
        const { outcome } = await probe(target);
        if (!outcome.ok) throw new Error(`${outcome.code} ${outcome.message}`);
        return true;
      },
      {
        hopeless: () =>
          this.#current()
            .map((program) => program.hopeless())
            .find(Boolean),
      },
    );
  }

  /**
   * Issues a new certificate for the gateway.
   * @returns its serial number
   */
  renewCertificate(): string {
    return renewServerCertificate(this.certificates).serialNumber;
  }

  /** The running Envoys of an agent, oldest epoch first. */
  envoysOf({ program, container }: AgentProgram): EnvoyProcess[] {
    return container === undefined ? envoysOf(program.pid) : envoysInNamespaceOf(container.pid);
  }

  /** Starts a load run that stops with the mesh if it is still running. */
  async startLoad(plan: LoadPlan): Promise<LoadRun> {
    const run = await startLoad(plan, this.#env);
    this.#loads.push(run);
    return run;
  }

  /**
   * Stops everything, clients first, and removes the mesh's directory. Idempotent.
   * @returns processes and files on the host that should not exist, one line each; the processes are killed
   */
  async stop({ keepDirectory = false } = {}): Promise<string[]> {
    this.#isStopped = true;
    clearInterval(this.#baseIdWatch);
    this.#noteBaseIds();
    for (const load of this.#loads) load.kill();
    const agents = [this.gateway, this.sidecar].flatMap((agent) => agent?.program ?? []);
    await Promise.all(agents.map((program) => program.stop()));
    await Promise.all(this.#programs.map((program) => program.stop({ deadlineMs: 20_000 })));
    const leftoverTexts = await this.#leftoversWhenSettled();
    for (const { pid, testRun } of hostProcesses()) {
      if (testRun === this.#testRun) signalIfAlive(pid, 'SIGKILL');
    }
    if (!keepDirectory) rmSync(this.root, { recursive: true, force: true });
    return leftoverTexts;
  }

  /** Removes the mesh's directory, if {@link Mesh.stop} kept it. */
  remove(): void {
    rmSync(this.root, { recursive: true, force: true });
  }

  /** Runs another control plane with its own ports until it exits. Later arguments override earlier ones. */
  async runDiscovery(extraArgs: readonly string[]): Promise<ProgramResult> {
    const [xdsPort, httpPort, monitoringPort] = (await freePorts(3)) as [number, number, number];
    const args = discoveryArguments({
      configDirectory: this.directory.path,
      meshConfigFile: this.directory.meshConfigFile,
      xdsPort,
      httpPort,
      monitoringPort,
      traceFile: join(this.root, 'extra.trace.ndjson'),
    }).concat(extraArgs);
    const programOptions = this.#programOptions('extra-discovery');
    return waitForEnd(this.#register(Program.start('pilot-discovery', { ...programOptions, args }, 'extra-discovery')));
  }

  /** Runs another agent with its own ports until it exits. */
  async runAgent(extraArgs: readonly string[]): Promise<ProgramResult> {
    return waitForEnd((await this.startExtraAgent(extraArgs)).program);
  }

  /** Starts another agent of the gateway with its own ports; later arguments override earlier ones. It gets the same listeners. */
  async startExtraAgent(extraArgs: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<AgentProgram> {
    const [admin, status] = (await freePorts(2)) as [number, number];
    return this.#startAgent(['router', 'extra', { admin, status }, {}, extraArgs], env);
  }

  /** Returns leftovers, except started programs that still run, for tests that stop a program themselves. */
  leftovers(): string[] {
    return leftovers(this.#testRun, this.#baseIds);
  }

  async #leftoversWhenSettled(): Promise<string[]> {
    // An Envoy whose agent was killed exits, but not immediately.
    await eventually('nothing is left', () => this.leftovers().length === 0, { deadlineMs: 10_000 }).catch(() => {});
    return this.leftovers();
  }

  #startAgent(command: AgentCommand, moreEnv: NodeJS.ProcessEnv = {}): AgentProgram {
    const { programOptions, ports, args, env } = this.#agentCommand(...command);
    const options = { ...programOptions, args, env: { ...env, ...moreEnv } };
    const program = this.#register(Program.start('pilot-agent', options, command[1]));
    return { program, ...ports };
  }

  #agentCommand(...[role, name, { admin, status }, labels, extraArgs]: AgentCommand) {
    const { drainMs, parentShutdownMs, terminationDrainMs } = { ...defaultTimes, ...this.#options };
    const traceFile = this.traceFileOf(name);
    const defaultArguments = agentArguments({
      role,
      name,
      xdsPort: this.#controlPorts.xds,
      adminPort: admin,
      statusPort: status,
      configDirectory: join(this.root, name),
      drainMs,
      parentShutdownMs,
      traceFile,
      delta: this.#options.delta === true,
      runDirectory: this.#options.runDirectory,
    });
    const meshArguments = withFlags(defaultArguments, this.#identity?.agentArguments ?? []);
    const args = withFlags(withFlags(meshArguments, this.#options.agentArgs ?? []), extraArgs);
    const programOptions = { ...this.#programOptions(name), cwd: this.#folderOf(name) };
    this.#identity?.mount(name, programOptions.cwd, this.#executable('pilot-discovery'), programOptions.env);
    const env = { ...agentEnvironment(name, labels, terminationDrainMs), ...programOptions.env };
    return { programOptions, args, env, ports: { adminPort: admin, statusPort: status, traceFile } };
  }

  /** Working directory of an agent: its own folder if it has its own secrets. */
  #folderOf(name: AgentName): string {
    return this.#identity === undefined ? this.root : join(this.root, name);
  }

  #executable(wrapper: string): string {
    return join(this.#binFolder ?? join(packageRoot(), 'bin'), wrapper);
  }

  #noteBaseIds(): void {
    for (const { baseId } of envoysOfRun(this.#testRun)) this.#baseIds.add(baseId);
  }

  /** The running programs that a response currently needs. */
  #current(): Program[] {
    return [this.discovery, this.gateway, this.sidecar].flatMap((runningProgram) => runningProgram?.program ?? []);
  }

  #register(program: Program): Program {
    this.#programs.push(program);
    return program;
  }

  #programOptions(name: string): Omit<ProgramOptions, 'args'> & { env: NodeJS.ProcessEnv } {
    // A start that is still in progress when the mesh is stopped must not leave a program running.
    if (this.#isStopped) throw new Error(`${name} is not started: the mesh was stopped`);
    return {
      env: this.#env,
      cwd: this.root,
      logFile: join(this.logDirectory, `${name}.log`),
      ...(this.#binFolder !== undefined && { binFolder: this.#binFolder }),
    };
  }

  async #ready(description: string, program: Program, port: number, path: string): Promise<void> {
    await eventually(
      description,
      async () => {
        const response = await fetch(`http://127.0.0.1:${port}${path}`, { signal: AbortSignal.timeout(2_000) });
        await response.arrayBuffer();
        if (response.status !== 200) throw new Error(`${path} answers ${response.status}`);
        return true;
      },
      { hopeless: () => program.hopeless() },
    );
  }
}

/** Exit and output of a program. */
export interface ProgramResult {
  readonly code: number | null;
  readonly output: string;
}

async function waitForEnd(program: Program): Promise<ProgramResult> {
  const { code } = await program.exited;
  return { code, output: program.output() };
}

/** Creates a mesh and starts all programs. Stops everything if that fails. */
export async function startMesh(options: MeshOptions = {}): Promise<Mesh> {
  const mesh = await Mesh.create(options);
  try {
    await mesh.startAll();
    return mesh;
  } catch (error) {
    await mesh.stop();
    throw error;
  }
}
