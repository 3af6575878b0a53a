/**
 * A mesh as in a cluster: each workload in its own network, whose connections iptables redirects to its sidecar; applications do not know the mesh.
 * The control plane is in the network that connects them. Needs root, and changes nothing in the machine's own network.
 */
import type { ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { type LoadRun, startLoad } from '../load/load-process.ts';
import type { LoadPlan } from '../load/plan.ts';
import { eventually } from './eventually.ts';
import { hostProcesses, leftovers, signalIfAlive, testRunVariable } from './host-processes.ts';
import { MeshIdentity, spiffeIdOf } from './mesh-identity.ts';
import { type CommandResult, endNamespaces, link, NetworkSide } from './pod-network.ts';
import { Program } from './program.ts';

const controlAddress = '10.78.0.1';
const controlPlaneHost = 'istiod.istio-system.svc';
const securePort = 15012;
const statusPort = 15020;
const namespace = 'demo';
/** The proxy's group, which is never redirected. A different user could not read a checkout in a home directory. */
const proxyGroup = 1337;

/** A client without proxy settings; callers append the time limit in seconds. */
const curl = ['curl', '--silent', '--show-error', '--fail', '--max-time'];

/** A name that only the cluster's name server resolves. */
export const outsideHost = 'outside.example';

/** The service that all clients of the mesh call, at an unassigned address (examples/pods). */
export const podService = { host: 'sample.demo.svc.cluster.local', address: '10.96.0.10', port: 80 } as const;

const podsOfExample = {
  client: { address: '10.78.0.10', labels: { app: 'client' } },
  'sample-v1': { address: '10.78.0.11', labels: { app: 'sample', version: 'v1' } },
  'sample-v2': { address: '10.78.0.12', labels: { app: 'sample', version: 'v2' } },
} as const;

export type PodName = keyof typeof podsOfExample;

const podNames = Object.keys(podsOfExample) as PodName[];

export class Pod {
  readonly name: PodName;
  readonly address: string;
  readonly side: NetworkSide;
  agent: Program | undefined;

  constructor(name: PodName, side: NetworkSide) {
    this.name = name;
    this.address = podsOfExample[name].address;
    this.side = side;
  }
}

export class PodMesh {
  /** Directory for everything that the mesh writes; removed by {@link PodMesh.stop}. */
  readonly root = mkdtempSync(join(tmpdir(), 'chartpilot-pods-'));
  readonly pods: Readonly<Record<PodName, Pod>>;
  /** Network of the control plane, and of programs outside the mesh. */
  readonly outside: NetworkSide;
  readonly #namespaces: ChildProcess[];
  readonly #identity = new MeshIdentity(this.root, securePort);
  readonly #testRun = randomUUID();
  readonly #env: NodeJS.ProcessEnv = { ...process.env, [testRunVariable]: this.#testRun };
  readonly #programs: Program[] = [];
  readonly #loads: LoadRun[] = [];

  private constructor(outside: NetworkSide, pods: readonly Pod[], namespaces: ChildProcess[]) {
    this.outside = outside;
    this.pods = Object.fromEntries(pods.map((pod) => [pod.name, pod])) as Record<PodName, Pod>;
    this.#namespaces = namespaces;
    for (const folder of ['logs', 'traces', 'mesh']) mkdirSync(join(this.root, folder));
    for (const example of ['pods', 'strict']) {
      cpSync(join(packageRoot(), 'examples', example), join(this.root, 'mesh'), { recursive: true });
    }
  }

  /** Creates the networks without starting programs. */
  static async create(): Promise<PodMesh> {
    const namespaces: ChildProcess[] = [];
    try {
      const outside = await NetworkSide.make(namespaces);
      await outside.mustRun('ip', 'link', 'add', 'br0', 'type', 'bridge');
      await outside.mustRun('ip', 'addr', 'add', `${controlAddress}/24`, 'dev', 'br0');
      await outside.mustRun('ip', 'link', 'set', 'br0', 'up');
      const pods = await Promise.all(podNames.map((name) => podBehind(outside, name, namespaces)));
      return new PodMesh(outside, pods, namespaces);
    } catch (error) {
      await endNamespaces(namespaces);
      throw error;
    }
  }

  get traceFiles(): string[] {
    const folder = join(this.root, 'traces');
    return readdirSync(folder).map((name) => join(folder, name));
  }

  traceFileOf(name: PodName | 'pilot-discovery'): string {
    return join(this.root, 'traces', `${name}.trace.ndjson`);
  }

  /** Starts everything in the order of a pod: redirection, proxy, application. Waits for a response through both sidecars. */
  async start(): Promise<void> {
    await Promise.all(podNames.map((name) => this.#prepare(this.pods[name])));
    await Promise.all([this.#startDiscovery(), this.#startNameServer()]);
    const pods = podNames.map((name) => this.pods[name]);
    for (const pod of pods) pod.agent = this.#startAgent(pod);
    await Promise.all([this.#startSample('v1'), this.#startSample('v2')]);
    await Promise.all(pods.map((pod) => this.#ready(pod)));
    await eventually('an answer of the service', async () => (await this.callService('/')).exitCode === 0, {
      hopeless: () => this.hopeless(),
    });
  }

  /** Returns why waiting is pointless, if a program has exited. */
  hopeless(): string | undefined {
    return this.#programs.map((program) => program.hopeless()).find(Boolean);
  }

  /** Resolves when the first program exits. */
  get anyEnded(): Promise<unknown> {
    return Promise.race(this.#programs.map(({ exited }) => exited));
  }

  /** The response of the service to curl, which uses its name and no proxy settings. */
  callService(path: string): Promise<CommandResult> {
    const address = `http://${podService.host}${path}`;
    return this.pods.client.side.run([...curl, '5', address]);
  }

  /** Starts a load run in the client's network that calls the service by name. */
  async startLoad(plan: Omit<LoadPlan, 'target'>): Promise<LoadRun> {
    const { host, port } = podService;
    const target = { host, port, authority: host };
    const run = await startLoad({ ...plan, target }, this.#env, this.pods.client.side.within([]));
    this.#loads.push(run);
    return run;
  }

  /** Runs `istio-iptables` or `istio-clean-iptables` in a pod. */
  async iptables(pod: Pod, command: 'istio-iptables' | 'istio-clean-iptables', ...args: string[]): Promise<void> {
    await pod.side.mustRun(this.#bin('pilot-agent'), command, ...args);
  }

  /**
   * Stops everything.
   * @returns processes and files on the host that should not exist; they are removed as well
   */
  async stop({ keepDirectory = false } = {}): Promise<string[]> {
    for (const load of this.#loads) load.kill();
    await Promise.all(podNames.map((name) => this.pods[name].agent?.stop()));
    await Promise.all(this.#programs.map((program) => program.stop({ deadlineMs: 20_000 })));
    await eventually('nothing is left', () => this.#leftovers().length === 0, { deadlineMs: 10_000 }).catch(() => {});
    const leftoverTexts = this.#leftovers();
    for (const { pid, testRun } of hostProcesses()) {
      if (testRun === this.#testRun) signalIfAlive(pid, 'SIGKILL');
    }
    await endNamespaces(this.#namespaces);
    if (!keepDirectory) this.remove();
    return leftoverTexts;
  }

  remove(): void {
    rmSync(this.root, { recursive: true, force: true });
  }

  #leftovers(): string[] {
    return leftovers(this.#testRun, new Set());
  }

  /** Does the work of a container runtime and an init container: names, name servers, redirection. */
  async #prepare(pod: Pod): Promise<void> {
    const etc = join(this.root, pod.name, 'etc');
    mkdirSync(etc, { recursive: true });
    writeFileSync(join(etc, 'hosts'), `127.0.0.1 localhost\n${controlAddress} ${controlPlaneHost}\n`);
    const search = `${namespace}.svc.cluster.local svc.cluster.local cluster.local`;
    writeFileSync(join(etc, 'resolv.conf'), `search ${search}\nnameserver ${controlAddress}\noptions ndots:5\n`);
    for (const file of ['hosts', 'resolv.conf']) {
      await pod.side.mustRun('mount', '--bind', join(etc, file), `/etc/${file}`);
    }
    const captured = ['-b', '*', '-d', '15090,15021,15020', '-i', '*', '-u', `${proxyGroup}`, '-g', `${proxyGroup}`];
    await this.iptables(pod, 'istio-iptables', ...captured, '--redirect-dns');
  }

  async #startDiscovery(): Promise<void> {
    const program = this.#run('pilot-discovery', this.outside, [
      ...[this.#bin('pilot-discovery'), 'discovery', '--registries', 'Kubernetes'],
      ...['--configDir', join(this.root, 'mesh'), '--meshConfig', join(packageRoot(), 'examples/mesh-config.yaml')],
      ...['--grpcAddr=', '--secureGRPCAddr', `:${securePort}`, '--httpAddr', '127.0.0.1:8080'],
      ...['--monitoringAddr=', '--httpsAddr=', '--trace', this.traceFileOf('pilot-discovery'), '--traceLevel', 'full'],
    ]);
    await eventually('the control plane is ready', () => this.#responds(this.outside, 'http://127.0.0.1:8080/ready'), {
      hopeless: () => program.hopeless(),
    });
  }

  /** The cluster's name server, which does not know the mesh. */
  async #startNameServer(): Promise<void> {
    const script = join(packageRoot(), 'test/harness/name-server.ts');
    const args = [process.execPath, script, controlAddress, `${outsideHost}=${controlAddress}`];
    await this.#run('name server', this.outside, args).line(/^ready/);
  }

  #startAgent({ name, address, side }: Pod): Program {
    const folder = join(this.root, name);
    this.#identity.mount(name, folder, this.#bin('pilot-discovery'), this.#env);
    const env = {
      POD_NAME: name,
      POD_NAMESPACE: namespace,
      // The same value as the injector writes.
      SERVICE_ACCOUNT: spiffeIdOf(name).split('/').at(-1),
      INSTANCE_IP: address,
      ISTIO_METAJSON_LABELS: JSON.stringify(podsOfExample[name].labels),
      ISTIO_META_DNS_CAPTURE: 'true',
      TERMINATION_DRAIN_DURATION_SECONDS: '1',
    };
    return this.#run(
      name,
      side,
      [
        ...['setpriv', '--regid', `${proxyGroup}`, '--clear-groups'],
        ...[this.#bin('pilot-agent'), 'proxy', 'sidecar', '--concurrency', '1'],
        ...['--discoveryAddress', `${controlPlaneHost}:${securePort}`, '--controlPlaneAuthPolicy', 'MUTUAL_TLS'],
        ...['--configPath', join(folder, 'proxy'), '--statusPort', `${statusPort}`, '--trace', this.traceFileOf(name)],
        ...['--drainDuration', '2s', '--parentShutdownDuration', '6s'],
      ],
      { env, cwd: folder },
    );
  }

  async #startSample(version: 'v1' | 'v2'): Promise<void> {
    const main = join(packageRoot(), 'test/sample/main.ts');
    const { side } = this.pods[`sample-${version}`];
    const args = [process.execPath, main, '--version', version, '--port', '8080', '--host', '0.0.0.0'];
    await this.#run(`application ${version}`, side, args).line(/^ready /);
  }

  async #ready({ name, address, agent }: Pod): Promise<void> {
    const url = `http://${address}:${statusPort}/healthz/ready`;
    await eventually(`${name} is ready`, () => this.#responds(this.outside, url), {
      hopeless: () => agent?.hopeless(),
    });
  }

  async #responds(side: NetworkSide, url: string): Promise<boolean> {
    await side.mustRun(...curl, '2', url);
    return true;
  }

  #run(
    name: string,
    side: NetworkSide,
    command: readonly string[],
    { env = {}, cwd = this.root }: { env?: NodeJS.ProcessEnv; cwd?: string } = {},
  ): Program {
    const [executable = '', ...args] = side.within(command, cwd);
    const program = Program.run(name, executable, {
      args,
      env: { ...this.#env, ...this.#identity.discoveryEnvironment, ...env },
      cwd,
      logFile: join(this.root, 'logs', `${name}.log`),
    });
    this.#programs.push(program);
    return program;
  }

  #bin(wrapper: string): string {
    return join(packageRoot(), 'bin', wrapper);
  }
}

async function podBehind(outside: NetworkSide, name: PodName, namespaces: ChildProcess[]): Promise<Pod> {
  const { address } = podsOfExample[name];
  const side = await NetworkSide.make(namespaces, { mounts: true });
  await link({ side, name: 'eth0' }, { side: outside, name });
  await outside.mustRun('ip', 'link', 'set', name, 'master', 'br0');
  await side.mustRun('ip', 'addr', 'add', `${address}/24`, 'dev', 'eth0');
  await side.mustRun('ip', 'route', 'add', 'default', 'via', controlAddress);
  return new Pod(name, side);
}
