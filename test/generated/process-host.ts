/** Envoys as processes: the agent's effects with a fake or the real Envoy. */
import { closeSync, ftruncateSync, openSync, writeSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { type ClientRequest, request as httpRequest } from 'node:http';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { drainListeners } from '../../src/agent/admin/drain-listeners.ts';
import { liveProbe } from '../../src/agent/admin/live-probe.ts';
import { countRequests } from '../../src/agent/admin/requests-in-flight.ts';
import { prepareEpoch } from '../../src/agent/bootstrap/prepare-epoch.ts';
import { claimBaseIds } from '../../src/agent/envoy/base-ids/base-ids.ts';
import { repairSharedMemory } from '../../src/agent/envoy/base-ids/shared-memory.ts';
import { type EnvoyFlags, envoyArguments } from '../../src/agent/envoy/envoy-args.ts';
import { envoyProcess } from '../../src/agent/envoy/envoy-process.ts';
import { outOfMemoryCounter } from '../../src/agent/envoy/out-of-memory.ts';
import { ProcessTable } from '../../src/agent/envoy/process-table.ts';
import { XdsActivity } from '../../src/agent/xds/xds-activity.ts';
import { FileTurns } from '../../src/runtime/files/file-turns.ts';
import { silentLogger } from '../../src/runtime/output/log.ts';
import { adminAt, envoyBinary, temporaryScratch, testFlags } from '../fixtures/real-envoy.ts';
import { freePorts } from '../harness/free-ports.ts';
import { sized } from '../harness/size-of-run.ts';
import { Control, type StandInProcess, standInBinary } from '../stand-in/control.ts';
import { StepNotPossible } from './driver.ts';
import { type EnvoyEnd, epochName, type Host, type HostKind, type HostPlan, waitForValue } from './host.ts';
import type { Limit } from './limit.ts';

/** Differences between the two binaries. */
interface Kind {
  readonly name: string;
  readonly binary: () => string;
  /** Whether it accepts orders on a control socket. */
  readonly acceptsOrders: boolean;
}

/** Long enough that no child shuts a fake Envoy down before a test orders it. */
const standInParentShutdownMs = 60_000;
/**
 * A process starts within 0.5 s, on a busy machine within 2 s; an unresponsive admin interface times out after 5 s. The short run's limits suffice
 * next to twenty other tasks; the full run's are shorter, because some events never occur.
 */
const limits = sized({
  short: { obedient: { ms: 30_000 }, real: { ms: 30_000 } },
  full: { obedient: { ms: 6_000 }, real: { ms: 8_000 } },
});

const limitOf = ({ acceptsOrders }: Kind): Limit => (acceptsOrders ? limits.obedient : limits.real);

export const standInHost = hostKind({ name: 'the stand-in process', binary: () => standInBinary, acceptsOrders: true });
export const realHost = hostKind({ name: 'the real Envoy', binary: envoyBinary, acceptsOrders: false });

function hostKind(kind: Kind): HostKind {
  return { name: kind.name, limit: limitOf(kind), open: (plan) => ProcessHost.open(kind, plan) };
}

class ProcessHost implements Host {
  readonly baseIds: readonly number[];
  readonly adminPorts: Host['adminPorts'];
  readonly certificates: string | null;
  readonly epochEffects: Host['epochEffects'];
  readonly supervisorEffects: Host['supervisorEffects'];
  readonly shutdownEffects: Host['shutdownEffects'];
  readonly #kind: Kind;
  readonly #plan: HostPlan;
  readonly #control: Control | undefined;
  readonly #flags: EnvoyFlags;
  readonly #table = new ProcessTable();
  readonly #folder: string;
  readonly #silentServer: Server;
  readonly #stoppedPids = new Set<number>();
  readonly #children: { kill(signal: NodeJS.Signals): boolean; pid?: number | undefined }[] = [];
  readonly #release: () => Promise<void>;
  readonly #port: number;
  readonly #requests: ClientRequest[] = [];
  /** Accepted connections of the silent server. */
  #arrivedRequests = 0;
  #heldBack = false;
  #onPrepared = (): void => {};

  static async open(kind: Kind, plan: HostPlan): Promise<ProcessHost> {
    const folder = await mkdtemp(join(tmpdir(), 'chartpilot-generated-'));
    const claim = await claimBaseIds({ runDir: join(folder, 'run'), withSpare: true });
    await mkdir(join(folder, 'etc'));
    const control = kind.acceptsOrders ? await Control.listen(join(folder, 'etc')) : undefined;
    const [adminPort, sparePort, port] = (await freePorts(3)) as [number, number, number];
    const silentServer = createServer();
    await new Promise<void>((resolve) => silentServer.listen(0, '127.0.0.1', resolve));
    const release = async (): Promise<void> => {
      claim.release();
      // A preparation in progress may still be writing.
      await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
    };
    return new ProcessHost(kind, plan, { folder, claim, control, adminPort, sparePort, port, silentServer, release });
  }

  private constructor(
    kind: Kind,
    plan: HostPlan,
    hostParts: {
      folder: string;
      claim: { baseIds: readonly number[] };
      control: Control | undefined;
      adminPort: number;
      sparePort: number;
      port: number;
      silentServer: Server;
      release: () => Promise<void>;
    },
  ) {
    this.#kind = kind;
    this.#plan = plan;
    this.#control = hostParts.control;
    this.#folder = hostParts.folder;
    this.#port = hostParts.port;
    this.#silentServer = hostParts.silentServer.on('connection', () => this.#arrivedRequests++);
    this.#release = hostParts.release;
    this.baseIds = hostParts.claim.baseIds;
    // No files have this digest, so the bootstrap is outdated.
    this.certificates = plan.bootstrap === 'outdated' ? 'digest-1' : null;
    this.#flags = { ...testFlags, ...(kind.acceptsOrders && { parentShutdownMs: standInParentShutdownMs }) };
    const mayPrepare = new Promise<void>((resolve) => {
      this.#onPrepared = resolve;
    });
    if (hostParts.control !== undefined) {
      hostParts.control.begin = async ({ mode }) => {
        if (mode === 'serve') return { live: 'on order', ignores: ['SIGTERM'] };
        await mayPrepare;
        return plan.bootstrap === 'good' ? {} : { exit: { code: 1, lastWords: 'no such field: bogus' } };
      };
    }
    this.adminPorts = { adminPort: hostParts.adminPort, spareAdminPort: hostParts.sparePort };
    const binary = kind.binary();
    const commonOptions = { guard: [], flags: this.#flags, scratch: temporaryScratch() };
    this.epochEffects = {
      prepare: prepareEpoch({
        ...commonOptions,
        // A separate process validates a bootstrap, so it is started only if validation must fail.
        binaries: { pathOf: () => (plan.bootstrap === 'good' ? '/bin/true' : binary) },
        admin: { host: '127.0.0.1', port: hostParts.adminPort },
        // No folder can be created below a device, even by root.
        configPath: plan.bootstrap === 'unwritable' ? '/dev/null/etc' : join(hostParts.folder, 'etc'),
        source: { bootstrap: (port) => this.#bootstrap(port) },
        discoveryAddress: undefined,
        turns: new FileTurns(),
        certificates: plan.bootstrap === 'outdated' ? [hostParts.folder] : [],
      }),
      process: envoyProcess({
        ...commonOptions,
        binaries: { pathOf: () => (plan.spawns ? binary : join(hostParts.folder, 'no-envoy')) },
        table: this.#table,
        adminAt,
        log: silentLogger,
        outOfMemoryKills: outOfMemoryCounter(),
      }),
      probe: liveProbe({
        adminAt,
        discoveryAddress: undefined,
        xds: new XdsActivity(),
      }),
      drainListeners: drainListeners({ adminAt, role: 'sidecar' }),
    };
    this.supervisorEffects = {
      repair: repairSharedMemory({ binary }),
    };
    this.shutdownEffects = { countRequests: countRequests({ adminAt, ownPorts: [] }) };
  }

  prepare(): void {
    if (this.#plan.bootstrap === 'unreachable')
      throw new StepNotPossible('an Envoy that is nobody’s child asks for nobody');
    this.#onPrepared();
  }

  async live(name: string): Promise<void> {
    if (this.#kind.acceptsOrders) await (await this.#standIn(name)).order({ order: 'live' });
  }

  waits(): void {}

  lacks(): void {
    throw new StepNotPossible('no Envoy here refuses a listener');
  }

  holdBack(): void {
    this.#heldBack = true;
  }

  running(): readonly string[] {
    return this.#table.list().map((runningProcess) => epochName(runningProcess, this.baseIds));
  }

  async end(name: string, endKind: EnvoyEnd): Promise<void> {
    if (endKind === 'after it took over')
      throw new StepNotPossible('an Envoy that is nobody’s child takes over from nobody');
    if (endKind === 'killed') return;
    if (this.#kind.acceptsOrders) return this.#orderEnd(name, endKind);
    if (endKind === 'on request' && !this.#isRunning(name)) return;
    const pid = await this.#pid(name);
    if (endKind === 'by a signal') process.kill(pid, 'SIGKILL');
    if (endKind === 'with code 0') process.kill(pid, 'SIGTERM');
    if (this.#stoppedPids.delete(pid)) process.kill(pid, 'SIGCONT');
  }

  /** A fake Envoy ignores SIGTERM until it is ordered to exit, so that earlier steps complete. */
  async #orderEnd(name: string, endKind: EnvoyEnd): Promise<void> {
    const standIn = endKind === 'on request' ? this.#findStandIn(name) : await this.#standIn(name);
    await standIn?.order(
      endKind === 'by a signal' ? { order: 'crash', signal: 'SIGSEGV' } : { order: 'exit', code: 0 },
    );
  }

  /** With the real Envoy, starts the next epoch, which shuts its parent down after the parent-shutdown time. */
  async attachChild(name: string): Promise<void> {
    if (this.#kind.acceptsOrders) return;
    const parent = await this.#waitForProcess(name);
    const configFile = join(this.#folder, 'etc', 'envoy-rev0.json');
    const args = envoyArguments(this.#flags, { configFile, epoch: parent.epoch + 1, baseId: parent.baseId });
    const child = execa(this.#kind.binary(), args, { stdio: 'ignore', reject: false });
    this.#children.push(child.nodeChildProcess);
  }

  async drain(name: string, meets: 'a response' | 'an error' | 'no response'): Promise<void> {
    if (this.#kind.acceptsOrders) {
      const behaviour = ({ 'a response': 'answers', 'an error': 'fails', 'no response': 'holds' } as const)[meets];
      await (await this.#standIn(name)).order({ order: 'admin', behaviour });
    } else if (meets !== 'a response') {
      await this.#stop(name);
    }
  }

  /** Stops the process; its clients time out. */
  async #stop(name: string): Promise<void> {
    const pid = await this.#pid(name);
    process.kill(pid, 'SIGSTOP');
    this.#stoppedPids.add(pid);
  }

  /** Envoy has as many requests in flight as have reached its upstream server, which never responds. */
  async #openRequests(count: number): Promise<void> {
    while (this.#requests.length < count) {
      const request = httpRequest({ host: '127.0.0.1', port: this.#port, agent: false });
      request.on('error', () => {}).end();
      this.#requests.push(request);
    }
    const hasArrived = (): true | undefined => (this.#arrivedRequests >= count ? true : undefined);
    await waitForValue('way of a request through Envoy', hasArrived, limits.real);
  }

  /**
   * Sets the mark of an initializing epoch (docs/hot-restart-reference.md, fact 2). If `repairable` is false, it truncates the
   * shared memory, so that a repair fails.
   */
  async refuseNext(name: string, repairable: boolean): Promise<void> {
    const { baseId } = await this.#waitForProcess(name);
    const sharedMemoryFd = openSync(`/dev/shm/envoy_shared_memory_${baseId * 10}`, 'r+');
    try {
      writeSync(sharedMemoryFd, Buffer.from([0x01]), 0, 1, 96);
      if (!repairable) ftruncateSync(sharedMemoryFd, 105);
    } finally {
      closeSync(sharedMemoryFd);
    }
  }

  async requests(name: string, inFlight: number | undefined): Promise<void> {
    if (!this.#kind.acceptsOrders) return inFlight === undefined ? this.#stop(name) : this.#openRequests(inFlight);
    const standIn = await this.#standIn(name);
    if (inFlight === undefined) await standIn.order({ order: 'admin', behaviour: 'fails' });
    else {
      await standIn.order({ order: 'admin', behaviour: 'answers' });
      await standIn.order({ order: 'requests', active: inFlight });
    }
  }

  async close(): Promise<void> {
    this.#onPrepared();
    // Exited processes need no SIGCONT.
    for (const { pid } of this.#table.list()) if (this.#stoppedPids.has(pid)) process.kill(pid, 'SIGCONT');
    for (const request of this.#requests) request.destroy();
    await this.#table.endAll();
    for (const child of this.#children) child.kill('SIGKILL');
    await this.#control?.close();
    this.#silentServer.close();
    await this.#release();
  }

  /** A live Envoy has static resources. Otherwise it waits for a control plane that never responds. */
  #bootstrap(adminPort: number): object {
    const admin = { address: { socket_address: { address: '127.0.0.1', port_value: adminPort } } };
    const node = { id: 'test', cluster: 'test' };
    const { bootstrap, live, takesRequests } = this.#plan;
    if (bootstrap === 'refused') return { admin, node, bogus: true };
    if (this.#kind.acceptsOrders) return { admin, node };
    const { port } = this.#silentServer.address() as { port: number };
    if (!live || this.#heldBack) return { admin, node, ...waitingFor(port) };
    return takesRequests ? { admin, node, ...leadingTo(port, this.#port) } : { admin, node };
  }

  async #standIn(name: string): Promise<StandInProcess> {
    return waitForValue('stand-in of that epoch', () => this.#findStandIn(name), limits.obedient);
  }

  #findStandIn(name: string): StandInProcess | undefined {
    return this.#control?.serving.findLast(({ hello }) => epochName(hello, this.baseIds) === name);
  }

  #waitForProcess(name: string): Promise<{ pid: number; epoch: number; baseId: number }> {
    const find = () => this.#table.list().find((runningProcess) => epochName(runningProcess, this.baseIds) === name);
    return waitForValue('process of that epoch', find, limitOf(this.#kind));
  }

  #isRunning(name: string): boolean {
    return this.#table.list().some((runningProcess) => epochName(runningProcess, this.baseIds) === name);
  }

  async #pid(name: string): Promise<number> {
    return (await this.#waitForProcess(name)).pid;
  }
}

/** Forwards HTTP connections from one port to another. */
function leadingTo(port: number, from: number): object {
  const at = (port: number): object => ({ socket_address: { address: '127.0.0.1', port_value: port } });
  const cluster = {
    name: 'silent',
    type: 'STATIC',
    load_assignment: { cluster_name: 'silent', endpoints: [{ lb_endpoints: [{ endpoint: { address: at(port) } }] }] },
  };
  const route = { match: { prefix: '/' }, route: { cluster: cluster.name, timeout: '0s' } };
  const manager = {
    '@type': 'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',
    stat_prefix: 'requests',
    route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes: [route] }] },
    http_filters: [
      {
        name: 'router',
        typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' },
      },
    ],
  };
  const filters = [{ name: 'http', typed_config: manager }];
  const listener = { name: 'requests', address: at(from), filter_chains: [{ filters }] };
  return { static_resources: { clusters: [cluster], listeners: [listener] } };
}

/** Gets listeners from a control plane at this port, and waits for them without a limit. */
function waitingFor(port: number): object {
  const endpoint = { address: { socket_address: { address: '127.0.0.1', port_value: port } } };
  const cluster = {
    name: 'control-plane',
    type: 'STATIC',
    typed_extension_protocol_options: {
      'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
        '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
        explicit_http_config: { http2_protocol_options: {} },
      },
    },
    load_assignment: { cluster_name: 'control-plane', endpoints: [{ lb_endpoints: [{ endpoint }] }] },
  };
  const grpc = {
    api_type: 'GRPC',
    transport_api_version: 'V3',
    grpc_services: [{ envoy_grpc: { cluster_name: cluster.name } }],
  };
  return {
    static_resources: { clusters: [cluster] },
    dynamic_resources: {
      ads_config: grpc,
      lds_config: { ads: {}, resource_api_version: 'V3', initial_fetch_timeout: '0s' },
    },
  };
}
