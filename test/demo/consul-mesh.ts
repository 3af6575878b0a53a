/**
 * Virtual machines without Kubernetes: a real Consul, a control plane that reads it, and services `shop` and `stock`.
 * Each instance has a separate loopback address, an agent and a real Envoy in front of its application. `shop` calls
 * two versions of `stock`.
 */
import { randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, get, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { ConsulServer } from '../cluster/consul-server.ts';
import { eventually } from '../harness/eventually.ts';
import { freePorts } from '../harness/free-ports.ts';
import { hostProcesses, leftovers, signalIfAlive, testRunVariable } from '../harness/host-processes.ts';
import { Program } from '../harness/program.ts';
import { agentArguments, agentEnvironment, discoveryArguments, withFlags } from '../harness/program-arguments.ts';
import { consulMeshConfig, stockHost, type VirtualMachine } from './consul-config.ts';

export type Machine = 'shop' | 'stock-v1' | 'stock-v2';

interface RunningMachine extends VirtualMachine {
  readonly adminPort: number;
  readonly statusPort: number;
  agent?: Program;
}

interface Reply {
  readonly status: number;
  readonly body: string;
}

export class ConsulMesh {
  readonly root = mkdtempSync(join(tmpdir(), 'chartpilot-consul-'));
  readonly consul: ConsulServer;
  readonly machines: Readonly<Record<Machine, RunningMachine>>;
  readonly httpPort: number;
  readonly #xdsPort: number;
  readonly #monitoringPort: number;
  readonly #testRun = randomUUID();
  readonly #programs: Program[] = [];
  readonly #applications: Server[] = [];

  private constructor(consul: ConsulServer, ports: readonly number[]) {
    this.consul = consul;
    const [shop, stock, xds, http, monitoring, ...agentPorts] = ports as [number, number, number, number, number];
    const restPorts = agentPorts as number[];
    const machine = (name: string, version: string, address: string, port: number): RunningMachine => ({
      ...{ name, version, address, port },
      ...{ applicationPort: restPorts.shift()!, adminPort: restPorts.shift()!, statusPort: restPorts.shift()! },
    });
    this.machines = {
      shop: machine('shop', 'v1', '127.0.2.1', shop),
      'stock-v1': machine('stock', 'v1', '127.0.2.2', stock),
      'stock-v2': machine('stock', 'v2', '127.0.2.3', stock),
    };
    [this.#xdsPort, this.httpPort, this.#monitoringPort] = [xds, http, monitoring];
    for (const folder of ['mesh', 'logs', 'traces']) mkdirSync(join(this.root, folder));
    writeFileSync(join(this.root, 'mesh-config.yaml'), '{}\n');
  }

  /** Starts Consul. */
  static async create(): Promise<ConsulMesh> {
    return new ConsulMesh(await ConsulServer.start(), await freePorts(14));
  }

  get #all(): RunningMachine[] {
    return Object.values(this.machines);
  }

  get agents(): readonly Program[] {
    return this.#all.flatMap(({ agent }) => agent ?? []);
  }

  get traceFiles(): string[] {
    return readdirSync(join(this.root, 'traces')).map((name) => join(this.root, 'traces', name));
  }

  traceFileOf(name: string): string {
    return join(this.root, 'traces', `${name}.trace.ndjson`);
  }

  /**
   * A response passes the Envoy of `shop` twice and that of `stock` once, because applications listen on other
   * addresses.
   */
  get shopUrl(): string {
    const { address, port } = this.machines.shop;
    return `http://${address}:${port}/`;
  }

  /** Replaces the VirtualService. The weights are percentages. */
  setWeights(v1: number, v2: number): void {
    const file = join(this.root, 'mesh/consul.yaml');
    writeFileSync(`${file}.new`, consulMeshConfig(this.#all, { v1, v2 }));
    renameSync(`${file}.new`, file);
  }

  /** Registers all instances, starts all programs, and waits for a response of each version. */
  async start(): Promise<void> {
    this.setWeights(50, 50);
    for (const [id, { name, version, address, port }] of Object.entries(this.machines)) {
      await this.consul.register({
        ...{ node: id, nodeAddress: address, service: name, id, port },
        registrationFields: { Tags: [`version|${version}`, `app|${name}`], Meta: { protocol: 'http' } },
      });
    }
    await this.#startApplications();
    const args = discoveryArguments({
      ...{ configDirectory: join(this.root, 'mesh'), meshConfigFile: join(this.root, 'mesh-config.yaml') },
      ...{ xdsPort: this.#xdsPort, httpPort: this.httpPort, monitoringPort: this.#monitoringPort },
      traceFile: this.traceFileOf('pilot-discovery'),
    });
    const consulFlags = ['--registries', 'Consul', '--consulServerURL', this.consul.url];
    this.#run('pilot-discovery', 'pilot-discovery', withFlags(args, consulFlags));
    for (const [id, machine] of Object.entries(this.machines)) this.#startAgent(id, machine);
    const seenVersions = new Set<string>();
    await eventually(
      'both versions respond',
      async () => {
        seenVersions.add(await this.request());
        return seenVersions.has('v1') && seenVersions.has('v2');
      },
      { hopeless: () => this.hopeless() },
    );
  }

  /** @returns the version of `stock` that responded, or the status */
  async request(): Promise<string> {
    const response = await fetch(this.shopUrl, { signal: AbortSignal.timeout(5_000) });
    const body = await response.text();
    return response.ok ? body.trim() : `status ${response.status}`;
  }

  /** @returns the program that has exited, if any, so that no response can be expected */
  hopeless(): string | undefined {
    return this.#programs.map((program) => program.hopeless()).find(Boolean);
  }

  /** Resolves when any program exits. */
  get anyEnded(): Promise<unknown> {
    return Promise.race(this.#programs.map(({ exited }) => exited));
  }

  /** @returns leftovers on the host */
  async stop({ keepDirectory = false } = {}): Promise<string[]> {
    for (const application of this.#applications.splice(0)) {
      application.closeAllConnections();
      application.close();
    }
    const agents = this.agents;
    await Promise.all(agents.map((agent) => agent.stop()));
    await Promise.all(this.#programs.map((program) => program.stop({ deadlineMs: 20_000 })));
    await this.consul.stop();
    const listLeftovers = (): string[] => leftovers(this.#testRun, new Set());
    await eventually('nothing is left', () => listLeftovers().length === 0, { deadlineMs: 10_000 }).catch(() => {});
    const leftoverTexts = listLeftovers();
    for (const { pid, testRun } of hostProcesses()) if (testRun === this.#testRun) signalIfAlive(pid, 'SIGKILL');
    if (!keepDirectory) this.remove();
    return leftoverTexts;
  }

  remove(): void {
    rmSync(this.root, { recursive: true, force: true });
  }

  async #startApplications(): Promise<void> {
    const { shop, ...stock } = this.machines;
    // Without interception, an application calls a service at the address of its Envoy.
    const stockUrl = `http://${shop.address}:${stock['stock-v1'].port}/`;
    await this.#listen(shop.applicationPort, () => requestText(stockUrl));
    for (const { version, applicationPort } of Object.values(stock)) {
      await this.#listen(applicationPort, async () => ({ status: 200, body: version }));
    }
  }

  async #listen(port: number, respond: () => Promise<Reply>): Promise<void> {
    const server = createServer(async (_, response) => {
      const { status, body } = await respond().catch((error: unknown): Reply => ({ status: 502, body: String(error) }));
      response.writeHead(status).end(`${body.trim()}\n`);
    });
    this.#applications.push(server);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    server.once('error', reject).listen(port, '127.0.0.1', resolve);
    await promise;
  }

  #startAgent(id: string, machine: RunningMachine): void {
    const { name, version, address, adminPort, statusPort } = machine;
    const args = agentArguments({
      ...{ role: 'sidecar', name, xdsPort: this.#xdsPort, adminPort, statusPort, delta: false },
      ...{ configDirectory: join(this.root, id), runDirectory: join(this.root, 'run') },
      ...{ drainMs: 2_000, parentShutdownMs: 9_000, traceFile: this.traceFileOf(id) },
    });
    const env = agentEnvironment(id, { app: name, version }, 1_000);
    machine.agent = this.#run('pilot-agent', id, args, { ...env, POD_NAMESPACE: 'default', INSTANCE_IP: address });
  }

  #run(wrapper: string, name: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Program {
    const program = Program.start(
      wrapper,
      {
        ...{ args, cwd: this.root, logFile: join(this.root, 'logs', `${name}.log`) },
        binFolder: join(packageRoot(), 'bin'),
        env: { ...process.env, ...env, [testRunVariable]: this.#testRun },
      },
      name,
    );
    this.#programs.push(program);
    return program;
  }
}

/** Node's `fetch` cannot send a `Host` header that differs from the address. */
function requestText(url: string): Promise<Reply> {
  const { promise, resolve, reject } = Promise.withResolvers<Reply>();
  get(url, { headers: { host: stockHost } }, async (response) => {
    const body = (await response.setEncoding('utf8').toArray()).join('');
    resolve({ status: response.statusCode ?? 0, body });
  }).once('error', reject);
  return promise;
}
