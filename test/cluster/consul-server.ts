/** Real Consul servers for tests, each with its own ports and folder. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '../harness/eventually.ts';
import { freePorts } from '../harness/free-ports.ts';
import { endWithRunner } from '../harness/runner-watch.ts';
import { consul, findOrBuild } from './go-program.ts';

export interface ConsulServerOptions {
  /** Enables ACLs with this management token and the default policy `deny`. */
  readonly managementToken?: string;
  /** `limits.http_max_conns_per_client` (default 200). */
  readonly connectionsPerClient?: number;
  /** Also serves HTTPS with these files, in addition to the HTTP of {@link ConsulServer.request}. Clients must have a certificate of the CA. */
  readonly tls?: { readonly caFile: string; readonly certificateFile: string; readonly keyFile: string };
  /** Default `dc1`. */
  readonly datacenter?: string;
  /** A server of another datacenter to federate with. */
  readonly otherDatacenter?: ConsulServer;
}

/** A registration in the form of `PUT /v1/catalog/register`. */
export interface GivenInstance {
  readonly node?: string;
  readonly nodeAddress?: string;
  readonly service: string;
  readonly id?: string;
  readonly address?: string;
  readonly port?: number;
  readonly status?: 'passing' | 'warning' | 'critical';
  readonly registrationFields?: Readonly<Record<string, unknown>>;
}

const runningServers = new Set<ConsulServer>();

/** Stops all servers of the test; for `afterEach`. */
export async function stopConsulServers(): Promise<void> {
  for (const server of runningServers) await server.stop();
}

export class ConsulServer {
  readonly port: number;
  readonly #binary: string;
  readonly #ports: readonly number[];
  readonly #options: ConsulServerOptions;
  /** All servers of the datacenter, if there are several. */
  #siblings: readonly ConsulServer[] = [];
  readonly #folder = mkdtempSync(join(tmpdir(), 'cp-consul-'));
  #child: ChildProcess | undefined;
  #output = '';

  private constructor(binary: string, ports: readonly number[], options: ConsulServerOptions) {
    this.#binary = binary;
    this.#ports = ports;
    this.port = ports[options.tls ? 4 : 0]!;
    this.#options = options;
  }

  static async start(options: ConsulServerOptions = {}): Promise<ConsulServer> {
    const server = await ConsulServer.#create(options);
    await server.start();
    return server;
  }

  /** Starts servers of one datacenter, which elect a leader. */
  static async startSeveral(count: number): Promise<readonly ConsulServer[]> {
    const servers: ConsulServer[] = [];
    while (servers.length < count) servers.push(await ConsulServer.#create({}));
    for (const server of servers) server.#siblings = servers;
    await Promise.all(servers.map((server) => server.start()));
    return servers;
  }

  static async #create(options: ConsulServerOptions): Promise<ConsulServer> {
    const binary = await findOrBuild(consul, (line) => console.error(line));
    const server = new ConsulServer(binary, await freePorts(5), options);
    runningServers.add(server);
    return server;
  }

  get url(): string {
    return `${this.#options.tls ? 'https' : 'http'}://127.0.0.1:${this.port}`;
  }

  get pid(): number {
    return this.#child!.pid!;
  }

  /** Restarts a {@link kill | killed} server at the same address with its stored data. Resolves when it has a leader. */
  async start(): Promise<void> {
    const config = join(this.#folder, 'config.json');
    writeFileSync(config, JSON.stringify(this.#config()));
    mkdirSync(join(this.#folder, 'data'), { recursive: true });
    const child = spawn(this.#binary, ['agent', '-server', '-config-file', config], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    endWithRunner(child);
    this.#child = child;
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.#output = (this.#output + text).slice(-4_000);
      });
    }
    const isReady = async (): Promise<boolean> => {
      const leader = await this.request('GET', 'status/leader').catch(() => '');
      if (typeof leader !== 'string' || leader === '') return false;
      return ((await this.request('GET', 'catalog/nodes')) as unknown[]).length > 0;
    };
    await eventually('Consul has a leader', isReady, {
      hopeless: () => (child.exitCode === null ? undefined : `it exited: ${this.#output}`),
    });
  }

  /** Sends SIGKILL. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }

  /** Deletes the data of a stopped server. */
  wipe(): void {
    rmSync(join(this.#folder, 'data'), { recursive: true, force: true });
  }

  async stop(): Promise<void> {
    runningServers.delete(this);
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** @returns the parsed JSON body, or the body as text */
  async request(method: string, path: string, body?: unknown, token = this.#options.managementToken): Promise<unknown> {
    const response = await fetch(`http://127.0.0.1:${this.#ports[0]}/v1/${path}`, {
      method,
      ...(body !== undefined && { body: JSON.stringify(body) }),
      headers: token === undefined ? {} : { 'x-consul-token': token },
      signal: AbortSignal.timeout(5_000),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    try {
      return JSON.parse(text);
    } catch {
      return text;
    }
  }

  async register(instance: GivenInstance): Promise<void> {
    const {
      node = 'n1',
      nodeAddress = '127.0.0.1',
      service,
      id = `${service}-1`,
      address = '',
      port = 8080,
    } = instance;
    await this.request('PUT', 'catalog/register', {
      ...{ Node: node, Address: nodeAddress },
      Service: { ID: id, Service: service, Address: address, Port: port, ...instance.registrationFields },
      Check: {
        ...{ Node: node, CheckID: `service:${id}`, Name: 'test', ServiceID: id },
        Status: instance.status ?? 'passing',
      },
    });
  }

  async deregister(node: string, id: string): Promise<void> {
    await this.request('PUT', 'catalog/deregister', { Node: node, ServiceID: id });
  }

  #config(): object {
    const { managementToken, connectionsPerClient, tls, datacenter = 'dc1', otherDatacenter } = this.#options;
    const [http, server, lan, wan, https] = this.#ports;
    const siblings = this.#siblings.filter((sibling) => sibling !== this);
    return {
      ...{ server: true, bootstrap_expect: siblings.length + 1, data_dir: join(this.#folder, 'data'), datacenter },
      node_name: siblings.length === 0 ? 'server' : `server-${this.port}`,
      ...{ retry_join: siblings.map((sibling) => `127.0.0.1:${sibling.#ports[2]}`), retry_interval: '1s' },
      ...(otherDatacenter && { retry_join_wan: [`127.0.0.1:${otherDatacenter.#ports[3]}`], retry_interval_wan: '1s' }),
      ...{ bind_addr: '127.0.0.1', client_addr: '127.0.0.1', log_level: 'WARN', disable_update_check: true },
      ports: {
        ...{ http, https: tls ? https : -1 },
        ...{ dns: -1, grpc: -1, grpc_tls: -1, server, serf_lan: lan, serf_wan: wan },
      },
      performance: { raft_multiplier: 1 },
      ...(connectionsPerClient !== undefined && { limits: { http_max_conns_per_client: connectionsPerClient } }),
      ...(managementToken !== undefined && {
        acl: {
          enabled: true,
          default_policy: 'deny',
          tokens: { initial_management: managementToken, agent: managementToken },
        },
      }),
      ...(tls && {
        tls: {
          https: { ca_file: tls.caFile, cert_file: tls.certificateFile, key_file: tls.keyFile, verify_incoming: true },
        },
      }),
    };
  }
}
