/** A node with the control plane of `deploy/chart`, installed as a user installs it. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { packageRoot } from '../../../src/runtime/package-root.ts';
import { findOrBuild, helm } from '../../cluster/go-program.ts';
import { defineShippedKinds } from '../../cluster/mesh-objects.ts';
import { startClusterDns } from '../cluster-dns.ts';
import { buildMeshImages, discoveryImage, imageHub, imageTag } from '../mesh-image.ts';
import { get } from '../node-request.ts';
import { type RunningNode, startNode } from '../start-node.ts';
import { addressOf, applyManifests, podsOf, readyPods } from '../workloads.ts';

export const systemNamespace = 'istio-system';

const report = (line: string): void => console.error(line);
const run = promisify(execFile);

/** Result of the load generator of a pod. */
export interface Load {
  readonly sent: number;
  /** Time and error of each failed request. */
  readonly failed: readonly string[];
}

export interface Release {
  readonly values?: Readonly<Record<string, unknown>>;
  readonly namespace?: string;
  readonly replicas?: number;
}

/** Values of the chart for the images of this checkout. */
const imageValues = {
  image: { repository: discoveryImage.slice(0, discoveryImage.lastIndexOf(':')), tag: imageTag, pullPolicy: 'Never' },
  global: {
    ...{ hub: imageHub, tag: imageTag, imagePullPolicy: 'Never' },
    ...{ proxy: { image: 'agent' }, proxy_init: { image: 'agent' } },
  },
};

export class InstalledMesh {
  readonly node: RunningNode;
  readonly #helm: string;

  private constructor(node: RunningNode, helmBinary: string) {
    this.node = node;
    this.#helm = helmBinary;
  }

  /** Starts a mesh that injects sidecars into pods of the tests' namespace. */
  static async start(release: Release = {}): Promise<InstalledMesh> {
    const helmBinary = await findOrBuild(helm, report);
    const node = await startNode();
    try {
      const mesh = new InstalledMesh(node, helmBinary);
      const imported = buildMeshImages(join(node.folder, 'mesh')).then((layout) => node.importLayout(layout));
      await Promise.all([imported, startClusterDns(node), defineShippedKinds(node.cluster)]);
      await mesh.install('istiod', release);
      await mesh.label({ 'istio-injection': 'enabled' });
      return mesh;
    } catch (error) {
      await node.stop();
      throw error;
    }
  }

  /** Installs a release of the chart, or changes it, and waits until its pods are ready. */
  async install(name: string, { values = {}, namespace = systemNamespace, replicas = 1 }: Release = {}): Promise<void> {
    const { node } = this;
    await applyManifests(node, JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } }));
    const chartValues = JSON.stringify({ ...imageValues, replicas, ...values });
    const args = ['template', name, 'deploy/chart', '--namespace', namespace, '--values', '-'];
    const helmRun = run(this.#helm, args, {
      ...{ cwd: packageRoot(), env: { PATH: process.env.PATH, HOME: node.folder }, maxBuffer: 1 << 24 },
    });
    helmRun.child.stdin!.end(chartValues);
    await applyManifests(node, (await helmRun).stdout);
    const { revision = 'default' } = values;
    await readyPods(node, `istiod,istio.io/rev=${revision}`, replicas, namespace);
  }

  /** Sets labels of the tests' namespace; `null` removes one. */
  async label(labels: Readonly<Record<string, string | null>>): Promise<void> {
    const { cluster } = this.node;
    const resource = { group: '', version: 'v1', kind: 'Namespace', plural: 'namespaces', namespaced: false };
    await cluster.admin.request(
      { method: 'PATCH', patch: 'merge', resource, name: cluster.namespace, body: { metadata: { labels } } },
      new AbortController().signal,
    );
  }

  /** Sends a request from a pod's application. */
  async call(url: string, client = 'client'): Promise<{ status: number; body: string }> {
    return JSON.parse(await this.#order(client, `call?url=${encodeURIComponent(url)}`));
  }

  /** Starts a load of 8 concurrent requests, until `results`. */
  async startLoad(url: string, client = 'client'): Promise<void> {
    await this.#order(client, `load?url=${encodeURIComponent(url)}`);
  }

  async load(client = 'client'): Promise<Load> {
    return JSON.parse(await this.#order(client, 'sent'));
  }

  async results(client = 'client'): Promise<Load> {
    return JSON.parse(await this.#order(client, 'results'));
  }

  async #order(client: string, path: string): Promise<string> {
    const [pod] = await podsOf(this.node, client);
    return (await get(this.node, `http://${addressOf(pod!)}:8080/${path}`)).body;
  }
}
