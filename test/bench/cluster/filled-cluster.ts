/** A cluster with many services and their pods, EndpointSlices and VirtualServices, written like users, controllers and kubelets do. */
import { setTimeout as sleep } from 'node:timers/promises';
import { resourceOf } from '../../../src/discovery/kubernetes/api-resource.ts';
import { startApiServer } from '../../cluster/api-server-process.ts';
import { Cluster } from '../../cluster/cluster.ts';
import { defineKinds, of } from '../../cluster/mesh-objects.ts';
import { print } from '../bench-run.ts';
import type { Programs } from '../programs.ts';
import { serviceName } from '../push/mesh-files.ts';

export interface ClusterSize {
  readonly services: number;
  /** Total, spread evenly over the services. */
  readonly pods: number;
}

const concurrentWrites = 32;
const nodes = resourceOf('Node');
const podsOfNode = 100;
const port = 8080;

/** A replacement pod has a different name and address. */
interface Pod {
  readonly name: string;
  readonly address: string;
}

export class FilledCluster {
  readonly cluster: Cluster;
  readonly #size: ClusterSize;
  readonly #pods: Pod[][];
  #replacedCount = 0;
  #unready = 0;

  private constructor(cluster: Cluster, size: ClusterSize) {
    this.cluster = cluster;
    this.#size = size;
    this.#pods = Array.from({ length: size.services }, (_, service) =>
      Array.from({ length: size.pods / size.services }, (_, pod) => ({
        name: `${serviceName(service)}-${pod}`,
        address: `10.${1 + Math.floor(service / 250)}.${service % 250}.${pod + 1}`,
      })),
    );
  }

  /** Starts an API server and writes all objects. */
  static async create(programs: Programs, size: ClusterSize): Promise<FilledCluster> {
    const server = await startApiServer(print);
    programs.onEnd(() => server.stop());
    const cluster = new Cluster();
    programs.onEnd(async () => cluster.end());
    await cluster.begin(server);
    await defineKinds(cluster);
    const filled = new FilledCluster(cluster, size);
    const hosts = Math.ceil(size.pods / podsOfNode);
    await runForEach(hosts, (node) => filled.#writeNode(node));
    await runForEach(size.services, (service) => filled.#writeService(service));
    return filled;
  }

  /** Addresses of ready endpoints by Envoy cluster name. */
  addresses(): Map<string, string[]> {
    const clusterOf = (service: number): string =>
      `outbound|${port}||${serviceName(service)}.${this.cluster.namespace}.svc.cluster.local`;
    return new Map(this.#pods.map((pods, service) => [clusterOf(service), pods.map(({ address }) => address).sort()]));
  }

  /** Adds a pod that is not ready, with the address `mark`, to the first service. */
  async prepareReadiness(mark: string): Promise<void> {
    const [pods] = this.#pods as [Pod[]];
    const [pod] = pods as [Pod];
    pods[0] = { ...pod, address: mark };
    await this.#writePod(0, pods[0], false);
    await this.#writeSlice(0, new Set([pod.name]));
  }

  /** Reports the pod as ready: the writes of a kubelet and of the EndpointSlice controller. */
  async becomeReady(): Promise<void> {
    await Promise.all([this.#writePod(0, this.#pods[0]![0]!, true), this.#writeSlice(0)]);
  }

  /**
   * Replaces all pods of services from the last service backwards: sequentially within a service, eight services concurrently. The last replaced pod
   * gets the address `mark`.
   *
   * @returns number of replaced pods
   */
  async roll(pods: number, mark: string): Promise<number> {
    const inEach = this.#size.pods / this.#size.services;
    const services = Math.min(Math.ceil(pods / inEach), this.#size.services - 1);
    const last = this.#size.services - 1;
    await runForEach(services - 1, (n) => this.#rollService(last - 1 - n), 8);
    await this.#rollService(last, mark);
    return services * inEach;
  }

  /**
   * Writes EndpointSlices at a constant rate, one service after another. Each write marks another pod of the service as
   * not ready.
   *
   * @returns number of writes and their duration
   */
  async writeSlices(eventsPerSecond: number, seconds: number): Promise<{ written: number; tookMs: number }> {
    const began = performance.now();
    const total = eventsPerSecond * seconds;
    const writes: Promise<void>[] = [];
    for (let event = 0; event < total; event++) {
      const dueMs = (event * 1_000) / eventsPerSecond - (performance.now() - began);
      if (dueMs > 0) await sleep(dueMs);
      const service = event % this.#size.services;
      const pods = this.#pods[service]!;
      const notReady = pods[Math.floor(this.#unready++ / this.#size.services) % pods.length]!.name;
      writes.push(this.#writeSlice(service, new Set([notReady])));
    }
    await Promise.all(writes);
    return { written: total, tookMs: performance.now() - began };
  }

  /** Sets the address of the first pod in the first service's EndpointSlice, without changing the pod. */
  async markSlice(mark: string): Promise<void> {
    const [pods] = this.#pods as [Pod[]];
    pods[0] = { ...pods[0]!, address: mark };
    await this.#writeSlice(0);
  }

  async #rollService(service: number, mark?: string): Promise<void> {
    const pods = this.#pods[service]!;
    for (const [index, replacedPod] of pods.entries()) {
      const number = this.#replacedCount++;
      const isLast = index === pods.length - 1;
      const address =
        isLast && mark !== undefined ? mark : `10.${100 + (number >> 16)}.${(number >> 8) & 255}.${number & 255}`;
      const pod = { name: `${serviceName(service)}-${this.#size.pods + number}`, address };
      await this.#writePod(service, pod, true);
      pods[index] = pod;
      await this.#writeSlice(service);
      await this.cluster.delete(of.pods, replacedPod.name);
    }
  }

  async #writeNode(node: number): Promise<void> {
    const labels = { 'topology.kubernetes.io/region': 'region', 'topology.kubernetes.io/zone': `zone-${node % 3}` };
    await this.cluster.create(nodes, { metadata: { name: `node-${node}`, labels } });
  }

  async #writeService(service: number): Promise<void> {
    const name = serviceName(service);
    const ports = [{ name: 'http', port, protocol: 'TCP' }];
    await this.cluster.create(of.services, { metadata: { name }, spec: { selector: { app: name }, ports } });
    for (const pod of this.#pods[service]!) await this.#writePod(service, pod, true);
    await this.#writeSlice(service);
    await this.cluster.create(of.virtualServices, {
      metadata: { name },
      spec: {
        hosts: [`${name}.${this.cluster.namespace}.svc.cluster.local`],
        http: [{ match: [{ uri: { prefix: '/' } }], timeout: '10s', route: [{ destination: { host: name } }] }],
      },
    });
  }

  async #writePod(service: number, { name, address }: Pod, ready: boolean): Promise<void> {
    const app = serviceName(service);
    const image = 'registry.example/app:1';
    await this.cluster.apply(of.pods, {
      metadata: { name, labels: { app, version: 'v1', 'security.istio.io/tlsMode': 'istio' } },
      spec: {
        ...{ nodeName: `node-${service % Math.ceil(this.#size.pods / podsOfNode)}`, serviceAccountName: app },
        containers: [{ name: 'app', image, ports: [{ containerPort: port }] }],
      },
    });
    const status = ready ? 'True' : 'False';
    await this.cluster.apply(
      of.pods,
      {
        metadata: { name },
        status: {
          ...{ phase: 'Running', podIP: address, podIPs: [{ ip: address }] },
          conditions: [{ type: 'Ready', status, lastTransitionTime: '2026-11-24T00:00:00Z' }],
        },
      },
      'status',
    );
  }

  async #writeSlice(service: number, notReady: ReadonlySet<string> = new Set()): Promise<void> {
    const app = serviceName(service);
    const namespace = this.cluster.namespace;
    await this.cluster.apply(of.slices, {
      metadata: { name: `${app}-1`, labels: { 'kubernetes.io/service-name': app } },
      ...{ addressType: 'IPv4', ports: [{ name: 'http', port, protocol: 'TCP' }] },
      endpoints: this.#pods[service]!.map(({ name, address }) => ({
        ...{ addresses: [address], conditions: { ready: !notReady.has(name) } },
        targetRef: { kind: 'Pod', name, namespace },
      })),
    });
  }
}

async function runForEach(
  count: number,
  work: (n: number) => Promise<unknown>,
  concurrency = concurrentWrites,
): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, count) }, worker));
}
