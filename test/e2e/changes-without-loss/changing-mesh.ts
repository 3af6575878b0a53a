/** A mesh whose configuration changes under load: gateways and sidecars, each with a given latency to the control plane. */
import { AdsTestClient } from '../../ads-client.ts';
import { eventually } from '../../harness/eventually.ts';
import { type LoadRun, startLoad } from '../../load/load-process.ts';
import type { ClientPlan, LoadTarget } from '../../load/plan.ts';
import type { ProxySettings } from '../features/harness/envoy.ts';
import { FeatureMesh } from '../features/harness/feature-mesh.ts';
import { joinDocuments } from '../features/harness/gateway-objects.ts';
import { gateway, object } from '../features/harness/objects.ts';
import { BackendsProcess } from './backends-process.ts';
import { type ChangeKind, extensionProviders, hostOf, newService, type World } from './change-kinds.ts';
import { ProcessorWaits } from './processor-waits.ts';
import { SimulatedProxy } from './simulated-proxy.ts';

export interface Proxy {
  readonly type: 'gateway' | 'sidecar';
  readonly delta: boolean;
  readonly roundTripMs: number;
}

export interface ChangingMeshOptions {
  readonly proxies: readonly Proxy[];
  readonly kinds: readonly ChangeKind[];
  readonly env?: Readonly<Record<string, string>>;
  /** Additional arguments of the control plane. */
  readonly args?: readonly string[];
  /** Whether the proxies have workload certificates. */
  readonly hasCertificates?: boolean;
}

/** A proxy with its name and the address for its clients. */
interface PlacedProxy extends Proxy {
  readonly name: string;
  readonly address: string;
  readonly ports: {
    readonly [port in 'http' | 'tcp' | 'tls' | 'https' | 'routes']: number;
  };
}

/** Shorter than an agent's default: connections of a replaced listener receive a request to close within this time. */
const drainSeconds = 5;
const envoyArgs = ['--drain-time-s', `${drainSeconds}`];
/** The node metadata that an agent sends. */
const metadata = { PROXY_CONFIG: { drainDuration: `${drainSeconds}s` } };
/** Maximum number of simultaneous connection attempts: the control plane rejects more from an address without an authenticated proxy. */
const maxConnecting = 10;
/** A request that takes longer counts as failed. */
export const requestTimeoutMs = 20_000;
/** Delay of late objects after the change. */
const lateMs = 300;

const nameOf = ({ type, delta, roundTripMs }: Proxy): string => `${type}-${delta ? 'delta' : 'sotw'}-${roundTripMs}`;

export class ChangingMesh {
  readonly mesh: FeatureMesh;
  readonly #kinds: readonly ChangeKind[];
  readonly #proxies: readonly PlacedProxy[];
  readonly #world: World;
  /** `main`, and `mirror`, which receives mirrored requests and authorization requests. */
  readonly #backends: BackendsProcess;
  readonly #generations = new Map<string, number>();
  readonly #files: Record<string, string> = {};
  readonly #caFile: string;
  /** Inbound port of all sidecars; each listens on it at its own address. */
  readonly #inboundPort: number;
  readonly #clients: AdsTestClient[] = [];
  readonly #simulatedProxies: SimulatedProxy[] = [];
  readonly #timers = new Set<NodeJS.Timeout>();

  private constructor(
    mesh: FeatureMesh,
    kinds: readonly ChangeKind[],
    proxies: readonly PlacedProxy[],
    backends: BackendsProcess,
    { inboundPort, ...world }: Pick<World, 'ports' | 'certificate'> & { inboundPort: number },
  ) {
    this.mesh = mesh;
    this.#kinds = kinds;
    this.#proxies = proxies;
    this.#backends = backends;
    this.#inboundPort = inboundPort;
    const gateways = proxies.filter(({ type }) => type === 'gateway').map(({ name }) => name);
    this.#world = {
      ...world,
      authority: mesh.authority.certificate,
      gateways,
      https: proxies
        .filter(({ type }) => type === 'gateway')
        .map(({ name, ports }) => ({ name, selector: { proxy: name }, port: ports.https })),
      sidecars: (hosts) =>
        joinDocuments(
          ...proxies.filter(({ type }) => type === 'sidecar').map((proxy) => this.#sidecarOf(proxy, hosts)),
        ),
      kubernetesGateways: gateways.map((name) => `routes-${name}`),
      backend: backends.ports.get('main')!,
      mirror: backends.ports.get('mirror')!,
    };
    this.#caFile = mesh.file('backends.pem', mesh.authority.certificate);
  }

  /** Starts all programs. Resolves when every proxy has applied generation 0 of each kind. */
  static async start({
    proxies,
    kinds,
    env = {},
    args = [],
    hasCertificates,
  }: ChangingMeshOptions): Promise<ChangingMesh> {
    const settings = Object.fromEntries(proxies.map((proxy) => [nameOf(proxy), settingsOf(proxy, hasCertificates)]));
    const mesh = await FeatureMesh.start({
      proxies: settings,
      env: { PILOT_SECRETS_ON_PLAINTEXT: 'true', ...env },
      args,
      explains: false,
      meshConfig: { extensionProviders },
      envoyArgs,
    });
    let backends: BackendsProcess | undefined;
    try {
      const ports = await mesh.ports('http', 'tcp', 'tls');
      const placedProxies = await Promise.all(
        proxies.map(async (proxy, index) => placeProxy(proxy, index, ports, mesh)),
      );
      const certificate = mesh.authority.issue(kinds.map(hostOf));
      backends = await BackendsProcess.start(['main', 'mirror'], certificate);
      const changing = new ChangingMesh(mesh, kinds, placedProxies, backends, {
        ...{ ports, certificate, inboundPort: await mesh.port() },
      });
      await changing.#start();
      return changing;
    } catch (error) {
      backends?.close();
      await mesh.stop();
      throw error;
    }
  }

  /** Applies the next generation of this kind and waits until every proxy has acknowledged it. */
  async change(kind: ChangeKind): Promise<void> {
    this.#next(kind);
    await this.mesh.apply(this.#files);
  }

  /** Applies the next generation of all kinds in one push. */
  async changeAll(): Promise<void> {
    for (const kind of this.#kinds) this.#next(kind);
    await this.mesh.apply(this.#files);
  }

  /** Writes the next generation of this kind without waiting for acknowledgements. */
  write(kind: ChangeKind): void {
    const name = this.#next(kind);
    this.mesh.write(name, this.#files[name]!);
  }

  /** Waits until every proxy has acknowledged all written changes. */
  async settle(): Promise<void> {
    await this.mesh.apply(this.#files);
  }

  /**
   * Adds a server on a new port to each gateway, with routes to a new service: a listener, a route configuration and a cluster in one change.
   * @returns the ports, in the order of the gateways
   */
  async addServers(name: string): Promise<number[]> {
    const gateways = this.#proxies.filter(({ type }) => type === 'gateway');
    const ports = await Promise.all(gateways.map(() => this.mesh.port()));
    const hosts = [`${name}.servers.test`];
    const objects = gateways.map((proxy, index) => {
      const server = { port: ports[index]!, protocol: 'HTTP', hosts };
      return gateway(`${name}-${proxy.name}`, { proxy: proxy.name }, [server]);
    });
    const names = gateways.map((proxy) => `${name}-${proxy.name}`);
    const file = `${name}.yaml`;
    this.#files[file] = joinDocuments(...objects, newService(hosts[0]!, names, this.#world));
    this.mesh.write(file, this.#files[file]);
    return ports;
  }

  /** Starts clients of each kind at each proxy. */
  startLoad({ pauseMs, maxDurationMs }: { pauseMs: number; maxDurationMs: number }): Promise<LoadRun> {
    const clients = this.#proxies.flatMap((proxy) =>
      this.#kinds.flatMap((kind) => {
        const target = this.#targetOf(kind, proxy);
        if (target === undefined) return [];
        const name = `${kind.name} at ${proxy.name}`;
        const { traffic = 'http' } = kind;
        const client = { http: 'ka', tcp: 'tcp', tls: 'new', https: 'new' } as const;
        // Clients open connections one after the other, with only this pause between them.
        const pause = traffic === 'http' ? pauseMs : pauseMs / 2;
        return [{ kind: client[traffic], count: 1, pauseMs: pause, name, target } satisfies ClientPlan];
      }),
    );
    return startLoad({ target: clients[0]!.target, clients, maxDurationMs, requestTimeoutMs });
  }

  /** Mirrored requests that the application received; Envoy marks their host. */
  mirrored(): Promise<number> {
    return this.#backends.requests('mirror', `${hostOf({ name: 'mirror' })}-shadow`);
  }

  /** Starts to measure how long the processes on a request's path, and those that configure them, wait for a processor. */
  watchProcessor(load: LoadRun): ProcessorWaits {
    const envoys = this.#proxies.map(({ name }) => [`Envoy ${name}`, this.mesh.envoy(name).program.pid] as const);
    const pids = {
      clients: load.pid,
      applications: this.#backends.pid,
      'control plane': this.mesh.pilot.pid,
      test: process.pid,
    };
    return new ProcessorWaits({ ...pids, ...Object.fromEntries(envoys) }, requestTimeoutMs);
  }

  /** Number of clusters that proxies did not warm within the limit; 0 unless the machine is overloaded. */
  async abandonedClusters(): Promise<number> {
    return Number(/^pilot_xds_abandoned_clusters_total (\d+)$/m.exec(await this.mesh.page('/metrics'))?.[1] ?? 0);
  }

  /** Clusters of earlier generations that proxies still have, by proxy. */
  async outdatedClusters(): Promise<string[]> {
    const foundByProxy = await Promise.all(
      this.#proxies.map(async ({ name }) => {
        const dump = await this.mesh
          .envoy(name)
          .admin('/config_dump?resource=dynamic_active_clusters&mask=cluster.name');
        const names = [...dump.matchAll(/"name": "([^"]+)"/g)].map(([, cluster]) => cluster!);
        return names.filter((cluster) => this.#isOutdated(cluster)).map((cluster) => `${name}: ${cluster}`);
      }),
    );
    return foundByProxy.flat();
  }

  /** Decides by the name of the subset or of the host: `outbound|80|s3|weights.shop.test`, `outbound|80||host-3.backends.test`. */
  #isOutdated(cluster: string): boolean {
    return this.#kinds.some((kind) => {
      const generation = this.#generations.get(kind.name)!;
      const subset = new RegExp(`\\|[a-z](\\d+)\\|${hostOf(kind).replaceAll('.', '\\.')}$`).exec(cluster);
      const host = kind.targets === undefined ? null : new RegExp(`\\|${kind.targets}-(\\d+)\\.`).exec(cluster);
      const [, foundGeneration] = subset ?? host ?? [];
      return foundGeneration !== undefined && Number(foundGeneration) < generation;
    });
  }

  /** Starts simulated sidecars, which only implement the xDS protocol and are closed with the mesh. */
  async simulate(count: number): Promise<SimulatedProxy[]> {
    const addedProxies: SimulatedProxy[] = [];
    while (addedProxies.length < count) {
      const batch = this.#connectSimulated(addedProxies.length, Math.min(maxConnecting, count - addedProxies.length));
      await eventually('simulated proxies have routes', () => batch.every(({ routes }) => routes > 0));
      addedProxies.push(...batch);
    }
    return addedProxies;
  }

  #connectSimulated(first: number, count: number): SimulatedProxy[] {
    const addedProxies = Array.from({ length: count }, (_unused, number) => {
      const index = first + number;
      const client = new AdsTestClient(this.mesh.xdsPort);
      this.#clients.push(client);
      const id = `sidecar~127.0.9.${index + 1}~simulated-${index}.shop~shop.svc.cluster.local`;
      const node = { id, cluster: 'simulated', metadata: { NAMESPACE: 'shop', LABELS: { app: 'simulated' } } };
      return new SimulatedProxy(client, node, [String(this.#world.ports.http)]);
    });
    this.#simulatedProxies.push(...addedProxies);
    return addedProxies;
  }

  async stop(): Promise<void> {
    for (const timer of this.#timers) clearTimeout(timer);
    for (const proxy of this.#simulatedProxies) proxy.close();
    for (const client of this.#clients) client.close();
    await this.mesh.stop();
    this.#backends.close();
  }

  #next(kind: ChangeKind): string {
    const generation = (this.#generations.get(kind.name) ?? -1) + 1;
    this.#generations.set(kind.name, generation);
    const file = `${kind.name}.yaml`;
    this.#files[file] = kind.config(generation, this.#world);
    if (kind.late !== undefined)
      this.#followLater(`${kind.name}-late.yaml`, kind.late(generation, this.#world), generation);
    return file;
  }

  #followLater(file: string, text: string, generation: number): void {
    const write = (): void => {
      this.#files[file] = text;
      if (generation > 0) this.mesh.write(file, text);
    };
    if (generation === 0) write();
    else {
      const timer = setTimeout(() => {
        this.#timers.delete(timer);
        write();
      }, lateMs);
      this.#timers.add(timer);
    }
  }

  async #start(): Promise<void> {
    this.#files['base.yaml'] = joinDocuments(
      ...this.#proxies.filter(({ type }) => type === 'gateway').map(gatewaysOf),
      ...(this.#kinds.some(({ definesSidecars }) => definesSidecars) ? [] : [this.#world.sidecars(['./*'])]),
    );
    for (const kind of this.#kinds) this.#next(kind);
    await this.mesh.apply(this.#files);
  }

  #targetOf(kind: ChangeKind, proxy: PlacedProxy): LoadTarget | undefined {
    const { proxies, traffic = 'http' } = kind;
    const authority = hostOf(kind);
    if (proxies === 'inbound') {
      if (proxy.type === 'gateway') return undefined;
      return { host: inboundAddressOf(proxy), port: this.#inboundPort, authority };
    }
    if (proxies !== undefined && proxies !== proxy.type) return undefined;
    const port = kind.name === 'http-route' ? proxy.ports.routes : proxy.ports[traffic];
    return {
      host: proxy.address,
      port,
      authority,
      ...((traffic === 'tls' || traffic === 'https') && { caFile: this.#caFile }),
    };
  }

  #sidecarOf(proxy: PlacedProxy, hosts: readonly string[]): string {
    const { ports, backend } = this.#world;
    const at = { bind: proxy.address, captureMode: 'NONE', hosts };
    const port = (name: keyof World['ports']): object => ({
      ...at,
      port: { number: ports[name], name, protocol: name.toUpperCase() },
    });
    return object('networking.istio.io/v1', 'Sidecar', 'shop', proxy.name, {
      workloadSelector: { labels: { proxy: proxy.name } },
      egress: [port('http'), port('tcp'), port('tls')],
      ingress: [
        {
          port: { number: this.#inboundPort, name: 'http', protocol: 'HTTP' },
          bind: inboundAddressOf(proxy),
          captureMode: 'NONE',
          defaultEndpoint: `127.0.0.1:${backend}`,
        },
      ],
    });
  }
}

const inboundAddressOf = ({ address }: PlacedProxy): string => address.replace('127.0.3.', '127.0.4.');

function settingsOf(proxy: Proxy, hasCertificates = false): ProxySettings {
  const name = nameOf(proxy);
  const { delta, roundTripMs } = proxy;
  const proxyOptions = {
    delta,
    roundTripMs,
    metadata,
    ...(hasCertificates && { identity: `spiffe://cluster.local/ns/shop/sa/${name}` }),
  };
  if (proxy.type === 'sidecar') return { labels: { proxy: name }, ...proxyOptions };
  const labels = { proxy: name, 'gateway.networking.k8s.io/gateway-name': `routes-${name}` };
  return { type: 'router', labels, ...proxyOptions };
}

async function placeProxy(proxy: Proxy, index: number, ports: World['ports'], mesh: FeatureMesh): Promise<PlacedProxy> {
  const namedProxy = { ...proxy, name: nameOf(proxy) };
  if (proxy.type === 'sidecar')
    return { ...namedProxy, address: `127.0.3.${index + 1}`, ports: { ...ports, https: 0, routes: 0 } };
  return { ...namedProxy, address: '127.0.0.1', ports: await mesh.ports('http', 'tcp', 'tls', 'https', 'routes') };
}

function gatewaysOf({ name, ports }: PlacedProxy): string {
  const hosts = ['*.shop.test'];
  return joinDocuments(
    gateway(name, { proxy: name }, [
      { port: ports.http, protocol: 'HTTP', hosts },
      { port: ports.tcp, protocol: 'TCP', hosts: ['*'] },
      { port: ports.tls, protocol: 'TLS', hosts, tls: { mode: 'PASSTHROUGH' } },
    ]),
    object('gateway.networking.k8s.io/v1', 'Gateway', 'shop', `routes-${name}`, {
      gatewayClassName: 'istio',
      listeners: [{ name: 'http', port: ports.routes, protocol: 'HTTP' }],
    }),
  );
}
