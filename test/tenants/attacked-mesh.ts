/**
 * A control plane that watches a cluster, with one victim: a sidecar of namespace `bank` that subscribes to everything, like Envoy. A tenant writes
 * objects in namespace `mallory`. Measures their effect on the victim and on the event loop.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fromBinary } from '@bufbuild/protobuf';
import { resourceOf } from '../../src/discovery/kubernetes/api-resource.ts';
import { ClusterSchema } from '../../src/gen/envoy/config/cluster/v3/cluster_pb.ts';
import { ListenerSchema } from '../../src/gen/envoy/config/listener/v3/listener_pb.ts';
import { HttpConnectionManagerSchema } from '../../src/gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts';
import type { KindName } from '../../src/model/kinds/index.ts';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { AdsTestClient, type DeltaStream, type SotwStream, typeUrls } from '../ads-client.ts';
import { type GivenObject, InMemoryApiServer, type StoredObject } from '../fixtures/in-memory-api-server.ts';
import { eventually } from '../harness/eventually.ts';
import { freePorts } from '../harness/free-ports.ts';
import { Program } from '../harness/program.ts';
import { programFile } from '../harness/program-files.ts';

export interface LoopTurns {
  /** The longest event loop iteration, in milliseconds of its thread's CPU time. */
  readonly maxMs: number;
  readonly sumMs: number;
}

const node = {
  id: 'sidecar~10.1.1.1~web-0.bank~bank.svc.cluster.local',
  cluster: 'web.bank',
  metadata: { NAMESPACE: 'bank', LABELS: { app: 'web' }, INSTANCE_IPS: '10.1.1.1', ISTIO_VERSION: '1.30.0' },
};

const heapSignal = 'SIGALRM';
const bankHost = 'web.bank.test';

export class AttackedMesh {
  readonly api = new InMemoryApiServer();
  readonly #folder = mkdtempSync(join(tmpdir(), 'cp-tenants-'));
  #client!: AdsTestClient;
  #stream!: SotwStream | DeltaStream;
  program!: Program;
  /** Bytes of resources that the victim received. */
  receivedBytes = 0;
  #pushes = 0;
  #seenHosts = new Set<string>();

  /** @param protocol the victim's protocol: the cost of one change differs, because each `sotw` response has all clusters */
  static async start(
    env: NodeJS.ProcessEnv = {},
    nodeArgs: readonly string[] = [],
    protocol: 'sotw' | 'delta' = 'sotw',
  ): Promise<AttackedMesh> {
    const mesh = new AttackedMesh();
    await mesh.#start(env, nodeArgs, protocol);
    return mesh;
  }

  async #start(env: NodeJS.ProcessEnv, nodeArgs: readonly string[], protocol: 'sotw' | 'delta'): Promise<void> {
    const [grpc, http] = (await freePorts(2)) as [number, number];
    const kubeconfig = join(this.#folder, 'kubeconfig');
    writeFileSync(kubeconfig, await this.api.kubeconfig(), { mode: 0o600 });
    for (const name of ['bank', 'mallory', 'istio-system'])
      this.api.put(resourceOf('Namespace'), { metadata: { name } });
    for (let index = 0; index < 100; index++) this.#putEntry('bank', `s${index}`, `s${index}.bank.test`);
    for (let index = 0; index < 20; index++) {
      this.#putEntry('mallory', `web${index}`, `web${index}.mallory.test`);
      this.api.put(resourceOf('Service'), {
        metadata: { name: `svc${index}`, namespace: 'mallory' },
        spec: { clusterIP: `10.96.1.${index}`, ports: [{ name: 'http', port: 80 }] },
      });
    }
    const meters = ['turn-meter.mjs', 'heap-meter.mjs'].map((name) => join(packageRoot(), 'test/load', name));
    this.program = Program.run('pilot-discovery', process.execPath, {
      args: [
        ...nodeArgs,
        ...meters.flatMap((path) => ['--import', path]),
        ...[programFile('pilot-discovery'), 'discovery', '--registries', 'Kubernetes', '--kubeconfig', kubeconfig],
        ...['--grpcAddr', `127.0.0.1:${grpc}`, '--httpAddr', `127.0.0.1:${http}`, '--monitoringAddr=', '--httpsAddr='],
        ...['--secureGRPCAddr=', '--shutdownDuration', '1s'],
      ],
      env: {
        ...process.env,
        POD_NAME: 'pilot-0',
        POD_NAMESPACE: 'istio-system',
        PILOT_DEBOUNCE_AFTER: '10ms',
        HEAP_METER_SIGNAL: heapSignal,
        ...env,
      },
      cwd: this.#folder,
    });
    await eventually('the control plane is ready', async () => (await fetch(`http://127.0.0.1:${http}/ready`)).ok, {
      hopeless: () => this.program.hopeless(),
    });
    this.#client = new AdsTestClient(grpc);
    if (protocol === 'sotw') this.#subscribe();
    else this.#subscribeDelta();
    await this.pushMs();
  }

  /** Acknowledges every response, and requests the endpoints and routes that clusters and listeners name. */
  #subscribe(): void {
    const stream = this.#client.sotw();
    this.#stream = stream;
    const names: Record<string, readonly string[]> = {};
    stream.onResponse = ({ typeUrl, nonce, versionInfo, resources }) => {
      for (const { value } of resources) this.receivedBytes += value.length;
      stream.send({ typeUrl, responseNonce: nonce, versionInfo, resourceNames: [...(names[typeUrl] ?? [])] });
      const requestNames = (requestedType: string, desiredNames: readonly string[]): void => {
        if (desiredNames.length === 0 || desiredNames.join() === names[requestedType]?.join()) return;
        names[requestedType] = desiredNames;
        stream.send({ typeUrl: requestedType, resourceNames: [...desiredNames] });
      };
      if (typeUrl === typeUrls.CDS) {
        const clusters = resources.map(({ value }) => fromBinary(ClusterSchema, value));
        this.#seenHosts = new Set(clusters.map(({ name }) => name.split('|').at(-1)!));
        requestNames(
          typeUrls.EDS,
          clusters.filter(({ edsClusterConfig }) => edsClusterConfig !== undefined).map(({ name }) => name),
        );
      }
      if (typeUrl === typeUrls.LDS) {
        const listeners = resources.map(({ value }) => fromBinary(ListenerSchema, value));
        requestNames(typeUrls.RDS, [...new Set(listeners.flatMap(routesOf))]);
      }
    };
    stream.send({ node, typeUrl: typeUrls.CDS });
    stream.send({ typeUrl: typeUrls.LDS });
  }

  #subscribeDelta(): void {
    const stream = this.#client.delta();
    this.#stream = stream;
    const edsNames = new Set<string>();
    const routeNames = new Set<string>();
    const hosts = new Set<string>();
    this.#seenHosts = hosts;
    const subscribe = (typeUrl: string, subscribedNames: Set<string>, names: readonly string[]): void => {
      const addedNames = names.filter((name) => !subscribedNames.has(name));
      for (const name of addedNames) subscribedNames.add(name);
      if (addedNames.length > 0) stream.send({ typeUrl, resourceNamesSubscribe: addedNames });
    };
    stream.onResponse = ({ typeUrl, nonce, resources, removedResources }) => {
      for (const { resource } of resources) this.receivedBytes += resource!.value.length;
      stream.send({ typeUrl, responseNonce: nonce });
      if (typeUrl === typeUrls.CDS) {
        const clusters = resources.map(({ resource }) => fromBinary(ClusterSchema, resource!.value));
        for (const { name } of clusters) hosts.add(name.split('|').at(-1)!);
        for (const name of removedResources) {
          hosts.delete(name.split('|').at(-1)!);
          edsNames.delete(name);
        }
        if (removedResources.length > 0)
          stream.send({ typeUrl: typeUrls.EDS, resourceNamesUnsubscribe: removedResources });
        const withEds = clusters.filter(({ edsClusterConfig }) => edsClusterConfig !== undefined);
        subscribe(
          typeUrls.EDS,
          edsNames,
          withEds.map(({ name }) => name),
        );
      }
      if (typeUrl === typeUrls.LDS) {
        const listeners = resources.map(({ resource }) => fromBinary(ListenerSchema, resource!.value));
        subscribe(typeUrls.RDS, routeNames, listeners.flatMap(routesOf));
      }
    };
    stream.send({ node, typeUrl: typeUrls.CDS });
    stream.send({ typeUrl: typeUrls.LDS });
  }

  /** Returns the milliseconds from a change in the victim's namespace until the victim receives it. */
  async pushMs(): Promise<number> {
    const host = `v${++this.#pushes}.${bankHost}`;
    const startedAt = performance.now();
    this.#putEntry('bank', 'changing', host);
    await eventually(`the victim has ${host}`, () => this.#seenHosts.has(host), {
      everyMs: 2,
      hopeless: () => this.program.hopeless(),
    });
    return performance.now() - startedAt;
  }

  /** Like {@link pushMs}, with the event loop iterations in that time. Their CPU time does not depend on the machine's load. */
  async pushCost(): Promise<LoopTurns & { readonly ms: number }> {
    await this.turns();
    const ms = await this.pushMs();
    return { ms, ...(await this.turns()) };
  }

  #putEntry(namespace: string, name: string, host: string): void {
    this.api.put(resourceOf('ServiceEntry'), {
      metadata: { name, namespace },
      spec: {
        hosts: [host],
        resolution: 'STATIC',
        location: 'MESH_INTERNAL',
        ports: [{ number: 80, name: 'http', protocol: 'HTTP' }],
        endpoints: [{ address: '10.1.1.1' }],
      },
    });
  }

  /** Hosts of the victim's clusters. */
  get hosts(): ReadonlySet<string> {
    return this.#seenHosts;
  }

  /** Writes an object of the tenant. */
  attack(kind: KindName, object: GivenObject): void {
    this.api.put(resourceOf(kind), object);
  }

  object(kind: KindName, object: GivenObject): StoredObject | undefined {
    return this.api.get(resourceOf(kind), object);
  }

  remove(kind: KindName, object: GivenObject): void {
    this.api.delete(resourceOf(kind), object);
  }

  /** Event loop iterations since the last call. */
  async turns(): Promise<LoopTurns> {
    const line = await this.#report('SIGUSR2', /^turns: /);
    const [, max, sum] = /longest ([\d.]+) sum ([\d.]+)/.exec(line)!;
    return { maxMs: Number(max), sumMs: Number(sum) };
  }

  /** Heap and buffers after garbage collection, in MiB. */
  async memoryMib(): Promise<number> {
    const line = await this.#report(heapSignal, /^memory: /);
    const [, heap, external] = /heap ([\d.]+) external ([\d.]+)/.exec(line)!;
    return Number(heap) + Number(external);
  }

  async #report(signal: NodeJS.Signals, pattern: RegExp): Promise<string> {
    const from = this.program.lines.length;
    process.kill(this.program.pid, signal);
    const report = (): string | undefined => this.program.lines.slice(from).find((line) => pattern.test(line));
    return await eventually('the meter reports', report, { everyMs: 5 });
  }

  async stop(): Promise<void> {
    this.#stream.cancel();
    this.#client.close();
    await this.program.stop({ signal: 'SIGKILL' });
    await this.api.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

function routesOf(listener: ReturnType<typeof fromBinary<typeof ListenerSchema>>): string[] {
  const chains = [...listener.filterChains, ...(listener.defaultFilterChain ? [listener.defaultFilterChain] : [])];
  return chains
    .flatMap(({ filters }) => filters)
    .flatMap(({ configType }) => {
      if (configType.case !== 'typedConfig' || !configType.value.typeUrl.endsWith('HttpConnectionManager')) return [];
      const manager = fromBinary(HttpConnectionManagerSchema, configType.value.value);
      return manager.routeSpecifier.case === 'rds' ? [manager.routeSpecifier.value.routeConfigName] : [];
    });
}
