/**
 * Two clusters, each with a real API server, and two networks: while a Secret names the other cluster, its services are served together with the
 * local ones.
 */

import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fromBinary } from '@bufbuild/protobuf';
import { afterEach, beforeAll, expect, it } from 'vitest';
import { ClusterLoadAssignmentSchema } from '../../src/gen/envoy/config/endpoint/v3/endpoint_pb.ts';
import { type SotwStream, typeUrls } from '../ads-client.ts';
import { ControlPlane, stopControlPlanes } from '../harness/control-plane.ts';
import { eventually } from '../harness/eventually.ts';
import { linesOf, loggedLine } from '../harness/logged-line.ts';
import { isFull } from '../harness/size-of-run.ts';
import { givenCluster, givenOwnServer } from './given-cluster.ts';
import { kubeconfigText, of, writeKubeconfig, writeService, writeSlice } from './mesh-objects.ts';

const cluster = givenCluster();
const other = givenOwnServer();
/** The namespace of services in both clusters, and of the control plane. */
const { namespace } = cluster;
const folder = mkdtempSync(join(tmpdir(), 'cp-remote-'));
const kubeconfig = join(folder, 'config');
/** No server listens there. */
const unreachableUrl = 'https://127.0.0.1:9';
const gateway = '203.0.113.9';

beforeAll(async () => {
  writeKubeconfig(kubeconfig, cluster);
  await other.cluster.create(of.namespaces, { metadata: { name: namespace } });
  await writeService(cluster, 'web', ['10.1.0.1'], 80, namespace);
  await writeService(other.cluster, 'web', ['10.2.0.1'], 80, namespace);
  return () => rmSync(folder, { recursive: true, force: true });
});
afterEach(stopControlPlanes);

const clusterOfWeb = `outbound|80||web.${namespace}.svc.cluster.local`;

async function following(env: NodeJS.ProcessEnv = {}): Promise<ControlPlane> {
  const flags = { registries: 'Kubernetes', configDir: '', kubeconfig };
  const plane = new ControlPlane(flags, {}, undefined, {
    ...{ POD_NAMESPACE: namespace, PILOT_REMOTE_CLUSTER_TIMEOUT: '20s' },
    ...{ PILOT_DEBOUNCE_AFTER: '20ms', ...env },
  });
  await plane.ready();
  return plane;
}

/** Endpoints of a service in Envoy, current and past. */
class Endpoints {
  readonly history: string[][] = [];
  readonly #stream: SotwStream;

  constructor(plane: ControlPlane, metadata: Record<string, string> = {}) {
    const node = {
      id: `sidecar~10.1.9.9~client.${namespace}~${namespace}.svc.cluster.local`,
      metadata: { NAMESPACE: namespace, CLUSTER_ID: 'Kubernetes', ...metadata },
    };
    const typeUrl = typeUrls.EDS;
    const resourceNames = [clusterOfWeb];
    this.#stream = plane.client('ads.listening').sotw();
    this.#stream.onResponse = ({ resources, nonce, versionInfo }) => {
      this.history.push(resources.flatMap(({ value }) => addressesOf(value)).sort());
      this.#stream.send({ typeUrl, resourceNames, responseNonce: nonce, versionInfo });
    };
    this.#stream.send({ node, typeUrl, resourceNames });
  }

  async are(...addresses: string[]): Promise<void> {
    const expected = addresses.toSorted().join();
    await eventually(`endpoints are ${expected}`, () => this.history.at(-1)?.join() === expected);
  }

  end(): void {
    this.#stream.cancel();
  }
}

function addressesOf(value: Uint8Array): string[] {
  return fromBinary(ClusterLoadAssignmentSchema, value).endpoints.flatMap(({ lbEndpoints }) =>
    lbEndpoints.map(({ hostIdentifier }) => {
      const address = hostIdentifier.case === 'endpoint' ? hostIdentifier.value.address?.address : undefined;
      return address?.case === 'socketAddress' ? address.value.address : '?';
    }),
  );
}

/** Writes the Secret that names other clusters, with only these keys. */
async function writeRemotes(kubeconfigs: Readonly<Record<string, string>>, name = 'remotes'): Promise<void> {
  const data = Object.entries(kubeconfigs).map(([id, text]) => [id, Buffer.from(text).toString('base64')]);
  await cluster.apply(of.secrets, {
    metadata: { name, labels: { 'istio/multiCluster': 'true' } },
    data: Object.fromEntries(data),
  });
}

const hasLogged = (plane: ControlPlane, line: RegExp) =>
  eventually(`${line} is told`, () => plane.lines.some((one) => line.test(one)));

it('a Secret adds the endpoints of a remote cluster until it is deleted, and another key adds another cluster', async () => {
  const plane = await following();
  const endpoints = new Endpoints(plane);
  await endpoints.are('10.1.0.1');
  await writeRemotes({ c2: kubeconfigText(other.server) });
  await endpoints.are('10.1.0.1', '10.2.0.1');
  const clusters = (await plane.get('/debug/clusterz')).json();
  expect(clusters).toContainEqual({ id: 'c2', secretName: `${namespace}/remotes`, syncStatus: 'synced' });
  const metrics = async () => (await plane.get('/metrics')).text;
  expect(await metrics()).toContain('istiod_managed_clusters{cluster_type="remote"} 1');
  await writeSlice(other.cluster, 'web', ['10.2.0.1', '10.2.0.2'], 80, { namespace });
  await endpoints.are('10.1.0.1', '10.2.0.1', '10.2.0.2');
  await writeSlice(other.cluster, 'web', ['10.2.0.1'], 80, { namespace });
  await endpoints.are('10.1.0.1', '10.2.0.1');
  await cluster.delete(of.secrets, 'remotes');
  await endpoints.are('10.1.0.1');
  expect(await metrics()).toContain('istiod_managed_clusters{cluster_type="remote"} 0');
  endpoints.end();
  expect(plane.deviations()).toEqual([]);
});

it('a rotated Secret of a remote cluster removes nothing, because the old kubeconfig stays active until the new one has synced', async () => {
  await writeRemotes({ c2: kubeconfigText(other.server) });
  const plane = await following();
  const endpoints = new Endpoints(plane);
  await endpoints.are('10.1.0.1', '10.2.0.1');
  // No object is ever read with this kubeconfig.
  await writeRemotes({ c2: kubeconfigText(other.server, { server: unreachableUrl }) });
  await hasLogged(plane, loggedLine('kubernetes.unresponsive', { cluster: 'c2' }));
  await writeSlice(other.cluster, 'web', ['10.2.0.1', '10.2.0.3'], 80, { namespace });
  await endpoints.are('10.1.0.1', '10.2.0.1', '10.2.0.3');
  // An invalid kubeconfig changes nothing either.
  await writeRemotes({ c2: 'nonsense' });
  await hasLogged(
    plane,
    loggedLine('remoteCluster.secretInvalid', { reason: /Secret .*remotes: c2: must be a kubeconfig/ }),
  );
  // Another account of the same cluster.
  const verbs = ['list', 'watch'];
  const core = { apiGroups: [''], resources: ['services', 'pods', 'nodes', 'namespaces'], verbs };
  const rules = { cluster: [core, { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs }] };
  const token = await other.cluster.token(await other.cluster.account(rules));
  const read = () => linesOf(plane.lines, 'remoteCluster.synced', { cluster: 'c2' }).length;
  expect(read()).toBe(1);
  await writeRemotes({ c2: kubeconfigText(other.server, { token }) });
  await eventually('it was read once more', () => read() === 2);
  await writeSlice(other.cluster, 'web', ['10.2.0.1'], 80, { namespace });
  await endpoints.are('10.1.0.1', '10.2.0.1');
  // Every state that Envoy received contained both clusters.
  expect(
    endpoints.history.every((addressList) => addressList.includes('10.1.0.1') && addressList.includes('10.2.0.1')),
  ).toBe(true);
  endpoints.end();
  await cluster.delete(of.secrets, 'remotes');
  expect(plane.deviations()).toEqual([]);
});

it("clients with a certificate reach endpoints of another network through that network's gateway", async () => {
  const { cluster: remoteCluster } = other;
  await remoteCluster.apply(of.namespaces, {
    metadata: { name: namespace, labels: { 'topology.istio.io/network': 'n2' } },
  });
  const ports = [{ name: 'tls', port: 15443, protocol: 'TCP' }];
  const metadata = { name: 'eastwest', namespace, labels: { 'topology.istio.io/network': 'n2' } };
  await remoteCluster.apply(of.services, { metadata, spec: { type: 'LoadBalancer', ports } });
  await remoteCluster.apply(
    of.services,
    { metadata, status: { loadBalancer: { ingress: [{ ip: gateway }] } } },
    'status',
  );
  const pod = { name: 'web-0', namespace, labels: { app: 'web', 'security.istio.io/tlsMode': 'istio' } };
  await remoteCluster.apply(of.pods, { metadata: pod, spec: { containers: [{ name: 'web', image: 'web' }] } });
  const status = { phase: 'Running', podIP: '10.2.0.7', podIPs: [{ ip: '10.2.0.7' }] };
  await remoteCluster.apply(of.pods, { metadata: pod, status }, 'status');
  await remoteCluster.apply(of.slices, {
    metadata: { name: 'web-1', namespace, labels: { 'kubernetes.io/service-name': 'web' } },
    ...{ addressType: 'IPv4', ports: [{ name: 'http', port: 80, protocol: 'TCP' }] },
    endpoints: [
      {
        addresses: ['10.2.0.7'],
        conditions: { ready: true },
        targetRef: { kind: 'Pod', name: 'web-0', namespace },
      },
    ],
  });
  await writeRemotes({ c2: kubeconfigText(other.server) });
  const plane = await following();
  const ownNetworkEndpoints = new Endpoints(plane, { NETWORK: 'n1' });
  const otherNetworkEndpoints = new Endpoints(plane, { NETWORK: 'n2', CLUSTER_ID: 'c2' });
  await ownNetworkEndpoints.are('10.1.0.1', gateway);
  await otherNetworkEndpoints.are('10.1.0.1', '10.2.0.7');
  // meshNetworks applies to endpoints without a network label, even in a cluster that is already watched.
  writeFileSync(join(plane.root, 'meshNetworks'), 'networks: {n1: {endpoints: [{fromRegistry: c2}], gateways: []}}\n');
  await remoteCluster.apply(of.namespaces, { metadata: { name: namespace } });
  await ownNetworkEndpoints.are('10.1.0.1', '10.2.0.7');
  for (const one of [ownNetworkEndpoints, otherNetworkEndpoints]) one.end();
  await remoteCluster.delete(of.services, 'eastwest', namespace);
  await writeSlice(remoteCluster, 'web', ['10.2.0.1'], 80, { namespace });
  await cluster.delete(of.secrets, 'remotes');
});

it('an unresponsive remote cluster delays no proxy for long, and is reported by name', async () => {
  await writeRemotes({
    dead: kubeconfigText(other.server, { server: unreachableUrl }),
    c2: kubeconfigText(other.server),
  });
  const flags = { registries: 'Kubernetes', configDir: '', kubeconfig };
  const env = { POD_NAMESPACE: namespace, PILOT_REMOTE_CLUSTER_TIMEOUT: '2s' };
  const plane = new ControlPlane(flags, {}, undefined, env);
  await eventually('/ready names it', async () => {
    const { text } = await plane.get('/ready').catch(() => ({ text: '' }));
    return /waiting for .*Kubernetes\/dead.*\(Kubernetes: waiting for remote cluster dead \(.+\)/.test(text);
  });
  await plane.ready();
  await hasLogged(plane, loggedLine('services.synced.missing', { registries: /Kubernetes\/dead/ }));
  const endpoints = new Endpoints(plane);
  await endpoints.are('10.1.0.1', '10.2.0.1');
  endpoints.end();
  await cluster.delete(of.secrets, 'remotes');
  expect(plane.deviations()).toEqual([]);
});

it('a kubeconfig in a Secret runs no program, reads no file of the control plane, and affects no other key', async () => {
  const marker = join(folder, 'was-here');
  const apiVersion = 'client.authentication.k8s.io/v1';
  const exec = { apiVersion, command: '/bin/touch', args: [marker], interactiveMode: 'Never' };
  await writeRemotes({
    runs: kubeconfigText(other.server, { user: { token: undefined, exec } }),
    reads: kubeconfigText(other.server, { user: { token: undefined, tokenFile: kubeconfig } }),
    key: kubeconfigText(other.server, { user: { 'client-certificate': kubeconfig, 'client-key': kubeconfig } }),
    Kubernetes: kubeconfigText(other.server),
    long: 'a'.repeat(200_000),
    c2: kubeconfigText(other.server),
  });
  await writeRemotes({ c2: kubeconfigText(other.server, { server: unreachableUrl }) }, 'second');
  const plane = await following();
  const endpoints = new Endpoints(plane);
  await endpoints.are('10.1.0.1', '10.2.0.1');
  endpoints.end();
  await hasLogged(
    plane,
    loggedLine('remoteCluster.secretInvalid', {
      reason: /remotes: runs: user: exec is allowed only in the file of --kubeconfig/,
    }),
  );
  await hasLogged(
    plane,
    loggedLine('remoteCluster.secretInvalid', { reason: /remotes: reads: user: tokenFile is allowed/ }),
  );
  await hasLogged(
    plane,
    loggedLine('remoteCluster.secretInvalid', { reason: /remotes: key: user: client-certificate is allowed/ }),
  );
  await hasLogged(
    plane,
    loggedLine('remoteCluster.secretInvalid', {
      reason: /remotes: Kubernetes: is the ID of the control plane's own cluster/,
    }),
  );
  await hasLogged(
    plane,
    loggedLine('remoteCluster.secretInvalid', { reason: /remotes: long: must have at most 131072 bytes/ }),
  );
  await hasLogged(
    plane,
    loggedLine('remoteCluster.secretInvalid', {
      reason: /second: c2: is already in Secret .*remotes: c2, which applies/,
    }),
  );
  expect(existsSync(marker)).toBe(false);
  expect(plane.lines.join('\n')).not.toContain(other.server.adminToken);
  expect(JSON.stringify(plane.records)).not.toContain(other.server.adminToken);
  for (const name of ['remotes', 'second']) await cluster.delete(of.secrets, name);
});

it.runIf(isFull)(
  'endpoints of a remote cluster stay while its API server is unreachable, and are removed with the Secret',
  async () => {
    await writeRemotes({ c2: kubeconfigText(other.server) });
    const plane = await following();
    const endpoints = new Endpoints(plane);
    await endpoints.are('10.1.0.1', '10.2.0.1');
    await other.server.kill();
    await hasLogged(plane, loggedLine('kubernetes.unresponsive', { cluster: 'c2' }));
    const clusterz = async () => (await plane.get('/debug/clusterz')).json() as { id: string; syncStatus: string }[];
    const statusOf = async (id: string) => (await clusterz()).find((one) => one.id === id)?.syncStatus;
    expect([await statusOf('c2'), await statusOf('Kubernetes')]).toEqual(['unreachable', 'synced']);
    await writeSlice(cluster, 'web', ['10.1.0.1', '10.1.0.2'], 80, { namespace });
    await endpoints.are('10.1.0.1', '10.1.0.2', '10.2.0.1');
    await other.server.start();
    await eventually('the cluster is synced again', async () => (await statusOf('c2')) === 'synced');
    await writeSlice(other.cluster, 'web', ['10.2.0.5'], 80, { namespace });
    await endpoints.are('10.1.0.1', '10.1.0.2', '10.2.0.5');
    await other.server.kill();
    await cluster.delete(of.secrets, 'remotes');
    await endpoints.are('10.1.0.1', '10.1.0.2');
    endpoints.end();
    expect(plane.deviations()).toEqual([]);
  },
);
