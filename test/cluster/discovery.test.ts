/** The control plane reads a cluster: objects written through the API reach proxies. Uses a separate server, which is killed. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fromBinary } from '@bufbuild/protobuf';
import { afterEach, beforeAll, expect, it } from 'vitest';
import { customResourceDefinitions } from '../../src/discovery/kubernetes/api-resource.ts';
import { ClusterLoadAssignmentSchema } from '../../src/gen/envoy/config/endpoint/v3/endpoint_pb.ts';
import { RouteConfigurationSchema } from '../../src/gen/envoy/config/route/v3/route_pb.ts';
import type { TraceRecord } from '../../src/runtime/trace/trace.ts';
import { typeUrls } from '../ads-client.ts';
import { ControlPlane, serviceEntry, sidecar, stopControlPlanes } from '../harness/control-plane.ts';
import { eventually } from '../harness/eventually.ts';
import { linesOf, loggedLine } from '../harness/logged-line.ts';
import { isFull } from '../harness/size-of-run.ts';
import type { Rights } from './cluster.ts';
import { givenOwnServer } from './given-cluster.ts';
import {
  customKinds,
  defineKinds,
  definitionOf,
  of,
  writeKubeconfig,
  writeRoute,
  writeService,
  writeSlice,
} from './mesh-objects.ts';

const ownServer = givenOwnServer();
const { cluster } = ownServer;
const folder = mkdtempSync(join(tmpdir(), 'cp-kubeconfig-'));
const kubeconfig = join(folder, 'config');

beforeAll(async () => {
  writeKubeconfig(kubeconfig, cluster);
  // ServiceEntry is defined later.
  await defineKinds(
    cluster,
    customKinds.filter((kind) => kind !== 'ServiceEntry'),
  );
  await writeService(cluster, 'web', ['10.1.0.1']);
  await writeService(cluster, 'other', ['10.1.0.2']);
  return () => rmSync(folder, { recursive: true, force: true });
});
afterEach(stopControlPlanes);

const hostOf = (service: string): string => `${service}.${cluster.namespace}.svc.cluster.local`;
const clusterOf = (service: string, port = 80): string => `outbound|${port}||${hostOf(service)}`;

async function following(flags = {}, files = {}): Promise<ControlPlane> {
  // `namespace` is the namespace of the control plane's Leases.
  const plane = new ControlPlane(
    { ...{ registries: 'Kubernetes', configDir: '', kubeconfig, namespace: cluster.namespace }, ...flags },
    files,
  );
  await plane.ready();
  return plane;
}

const clustersOf = async (plane: ControlPlane): Promise<string[]> => (await plane.subscribe()).clusters;

async function endpointsOf(plane: ControlPlane, name: string): Promise<string[]> {
  const stream = plane.client('ads.listening').sotw();
  stream.send({ node: sidecar, typeUrl: typeUrls.EDS, resourceNames: [name] });
  const { resources } = await stream.next();
  stream.cancel();
  return resources.flatMap(({ value }) =>
    fromBinary(ClusterLoadAssignmentSchema, value).endpoints.flatMap(({ lbEndpoints }) =>
      lbEndpoints.map(({ hostIdentifier }) => {
        const address = hostIdentifier.case === 'endpoint' ? hostIdentifier.value.address?.address : undefined;
        return address?.case === 'socketAddress' ? address.value.address : '?';
      }),
    ),
  );
}

/** Clusters to which requests for the host are routed. */
async function routedTo(plane: ControlPlane, host: string): Promise<string> {
  const stream = plane.client('ads.listening').sotw();
  stream.send({ node: sidecar, typeUrl: typeUrls.RDS, resourceNames: ['80'] });
  const { resources } = await stream.next();
  stream.cancel();
  const hosts = resources.flatMap(({ value }) => fromBinary(RouteConfigurationSchema, value).virtualHosts);
  return JSON.stringify(
    hosts
      .find(({ domains }) => domains.includes(host))
      ?.routes.map(({ action }) => action.case === 'route' && action.value.clusterSpecifier.value),
  );
}

it('the control plane serves services, endpoints and routes of the cluster, and their changes', async () => {
  await writeRoute(cluster, hostOf('web'), hostOf('other'), 'moves');
  const plane = await following();
  expect(await clustersOf(plane)).toEqual(expect.arrayContaining([clusterOf('web'), clusterOf('other')]));
  expect(await endpointsOf(plane, clusterOf('web'))).toEqual(['10.1.0.1']);
  expect(await routedTo(plane, hostOf('web'))).toContain(clusterOf('other'));
  await writeRoute(cluster, hostOf('web'), hostOf('web'), 'moves');
  await eventually('the route is another', async () =>
    (await routedTo(plane, hostOf('web'))).includes(clusterOf('web')),
  );
  await writeSlice(cluster, 'web', ['10.1.0.1', '10.1.0.9']);
  await eventually('there is another endpoint', async () =>
    (await endpointsOf(plane, clusterOf('web'))).includes('10.1.0.9'),
  );
  await writeSlice(cluster, 'web', ['10.1.0.1']);
  await cluster.delete(of.virtualServices, 'moves');
  expect(plane.deviations()).toEqual([]);
  expect(plane.unexpectedErrors()).toEqual([]);
});

/** The machines between the registry and the push, and the slice informer. The API server, elections and other informers run concurrently. */
const chartsOfPush = /^(service-registry|push|push-queue|discovery)(\/|$)/;
/** Maximum trace records per changed slice; 32 and 10 were measured. */
const maxRecordsOfSlice = 34;
const maxMessagesOfSlice = 11;

it('serving a changed slice takes a bounded number of messages and transitions', async () => {
  const plane = await following();
  const stream = plane.client('ads.listening').sotw();
  const names = { typeUrl: typeUrls.EDS, resourceNames: [clusterOf('web')] };
  stream.send({ node: sidecar, ...names });
  const acknowledge = async (): Promise<void> => {
    const { nonce, versionInfo } = await stream.next();
    stream.send({ ...names, responseNonce: nonce, versionInfo });
  };
  await acknowledge();
  const counts: { records: number; messages: number }[] = [];
  // Concurrent events only add records, so the minimum counts.
  for (let last = 20; last < 25; last++) {
    const startIndex = plane.records.length;
    await writeSlice(cluster, 'web', ['10.1.0.1', `10.1.0.${last}`]);
    await acknowledge();
    const servedIndex = () =>
      plane.records.findIndex(
        (record, index) => index > startIndex && record.kind === 'transition' && record.on === 'clients.served',
      );
    await eventually('the push is over', () => servedIndex() >= 0);
    const actorOf = (record: TraceRecord): string => (record.kind === 'event' ? record.to : record.actor);
    const all = plane.records.slice(startIndex, servedIndex() + 1);
    const informers = all.flatMap((one) =>
      one.kind === 'event' && one.event.type === 'objects.changed' ? [one.to] : [],
    );
    const records = all.filter((record) => {
      const actor = actorOf(record);
      return chartsOfPush.test(actor) || informers.includes(actor.split('/')[0]!);
    });
    counts.push({ records: records.length, messages: records.filter(({ kind }) => kind === 'event').length });
  }
  stream.cancel();
  expect(Math.min(...counts.map(({ records }) => records))).toBeLessThanOrEqual(maxRecordsOfSlice);
  expect(Math.min(...counts.map(({ messages }) => messages))).toBeLessThanOrEqual(maxMessagesOfSlice);
  await writeSlice(cluster, 'web', ['10.1.0.1']);
});

it('an invalid object keeps its last valid version, an invalid new policy denies all requests, and both are reported with the field', async () => {
  await writeRoute(cluster, hostOf('web'), hostOf('other'), 'mended');
  const plane = await following();
  const http = [{ timeout: 'soon', route: [{ destination: { host: hostOf('web') } }] }];
  await cluster.apply(of.virtualServices, { metadata: { name: 'mended' }, spec: { hosts: [hostOf('web')], http } });
  const rejections = loggedLine('object.rejected', {
    ...{ place: 'k8s://', object: `VirtualService ${cluster.namespace}/mended` },
    reason: /spec\.http\[0\]\.timeout: /,
  });
  await eventually('it is reported', () => plane.troubles().some((line) => rejections.test(line)));
  expect(await routedTo(plane, hostOf('web'))).toContain(clusterOf('other'));
  await cluster.apply(of.policies, { metadata: { name: 'closed' }, spec: { action: 'PERMIT' } });
  const isClosed = async (): Promise<boolean> =>
    /closed[^\n]*is rejected/.test((await plane.get('/debug/push_status')).text);
  await eventually('nobody is let in', isClosed);
  await writeRoute(cluster, hostOf('web'), hostOf('web'), 'mended');
  await eventually('it is in force', async () => (await routedTo(plane, hostOf('web'))).includes(clusterOf('web')));
  await cluster.apply(of.policies, { metadata: { name: 'closed' }, spec: { action: 'ALLOW' } });
  await eventually(
    'they are in order',
    async () => !(await isClosed()) && linesOf(plane.lines, 'config.recovered', { places: /k8s:.*mended/ }).length > 0,
  );
  await cluster.delete(of.policies, 'closed');
  await cluster.delete(of.virtualServices, 'mended');
  expect(plane.deviations()).toEqual([]);
});

it('a kind that is defined later is read from then on, in any of its served versions', async () => {
  const plane = await following();
  await cluster.apply(customResourceDefinitions, definitionOf('ServiceEntry', ['v1beta1']));
  const olderResource = { ...of.virtualServices, version: 'v1beta1', plural: 'serviceentries', kind: 'ServiceEntry' };
  const spec = {
    hosts: ['late.example.com'],
    resolution: 'STATIC',
    ports: [{ number: 80, name: 'http', protocol: 'HTTP' }],
  };
  await eventually('one is written', () => cluster.apply(olderResource, { metadata: { name: 'late' }, spec }));
  await eventually('it is served', async () => (await clustersOf(plane)).includes('outbound|80||late.example.com'));
  expect(plane.deviations()).toEqual([]);
});

it('objects of other revisions are ignored by each revision of the control plane', async () => {
  const object = (revision: string) => ({
    metadata: { name: 'revised', labels: { 'istio.io/rev': revision } },
    spec: { hosts: [hostOf('web')], http: [{ route: [{ destination: { host: hostOf('other') } }] }] },
  });
  await cluster.apply(of.virtualServices, object('canary'));
  const plane = await following();
  expect(await routedTo(plane, hostOf('web'))).toContain(clusterOf('web'));
  const canary = new ControlPlane({ registries: 'Kubernetes', configDir: '', kubeconfig }, {}, undefined, {
    REVISION: 'canary',
  });
  await canary.ready();
  expect(await routedTo(canary, hostOf('web'))).toContain(clusterOf('other'));
  await cluster.apply(of.virtualServices, object('default'));
  await eventually('it is of this one', async () =>
    (await routedTo(plane, hostOf('web'))).includes(clusterOf('other')),
  );
  await eventually('and not of that one', async () =>
    (await routedTo(canary, hostOf('web'))).includes(clusterOf('web')),
  );
  await cluster.delete(of.virtualServices, 'revised');
});

it('objects of configuration directories are merged with those of the cluster, and have precedence', async () => {
  const configDir = mkdtempSync(join(folder, 'config-'));
  writeFileSync(join(configDir, 'cart.yaml'), serviceEntry());
  const route = { hosts: [hostOf('web')], http: [{ route: [{ destination: { host: hostOf('other') } }] }] };
  const file = {
    apiVersion: 'networking.istio.io/v1',
    kind: 'VirtualService',
    metadata: { name: 'both', namespace: cluster.namespace },
    spec: route,
  };
  await writeRoute(cluster, hostOf('web'), hostOf('web'), 'both');
  const plane = await following({ configDir });
  expect(await clustersOf(plane)).toEqual(expect.arrayContaining([clusterOf('web'), 'outbound|80||cart.example.com']));
  expect(await routedTo(plane, hostOf('web'))).toContain(clusterOf('web'));
  writeFileSync(join(configDir, 'both.yaml'), JSON.stringify(file));
  await eventually('the file counts', async () => (await routedTo(plane, hostOf('web'))).includes(clusterOf('other')));
  rmSync(join(configDir, 'both.yaml'));
  await eventually("the cluster's counts again", async () =>
    (await routedTo(plane, hostOf('web'))).includes(clusterOf('web')),
  );
  await cluster.delete(of.virtualServices, 'both');
  expect(plane.deviations()).toEqual([]);
});

it('/ready lists the kinds that the control plane has no permission to read', async () => {
  const verbs = ['list', 'watch'];
  const clusterRights = { cluster: [{ apiGroups: ['networking.istio.io'], resources: ['*'], verbs }] };
  const settings = { namespace: [{ apiGroups: [''], resources: ['configmaps'], verbs }] };
  const expectWaiting = async (name: string, rights: Rights, expected: RegExp): Promise<void> => {
    const limitedKubeconfig = join(folder, name);
    writeKubeconfig(limitedKubeconfig, cluster, await cluster.token(await cluster.account(rights)));
    const flags = { registries: 'Kubernetes', configDir: '', kubeconfig: limitedKubeconfig };
    const plane = new ControlPlane(flags, {}, undefined, { POD_NAMESPACE: cluster.namespace });
    const text = async (): Promise<string> => (await plane.get('/ready').catch(() => ({ text: '' }))).text;
    await eventually('it is named', async () => expected.test(await text()));
    expect(plane.deviations()).toEqual([]);
  };
  await expectWaiting(
    'few',
    clusterRights,
    /: loading mesh config \(Kubernetes: waiting for .*configmaps.* is forbidden/,
  );
  const waitingPattern = /: syncing configuration, waiting for .*k8s:\/\/.*\(Kubernetes: waiting for .* is forbidden/;
  await expectWaiting('more', { ...clusterRights, ...settings }, waitingPattern);
});

it.runIf(isFull)(
  'a killed API server removes no configuration, and changes made during its outage arrive afterwards',
  async () => {
    const plane = await following();
    const clustersBefore = await clustersOf(plane);
    await ownServer.server.kill();
    await eventually('it is logged', () => linesOf(plane.lines, 'kubernetes.unresponsive').length > 0);
    expect(await clustersOf(plane)).toEqual(clustersBefore);
    const latePlane = new ControlPlane({ registries: 'Kubernetes', configDir: '', kubeconfig }, {});
    await eventually('another one waits for it', async () =>
      /not ready: .*the API server https:.* does not respond/.test(
        (await latePlane.get('/ready').catch(() => ({ text: '' }))).text,
      ),
    );
    await ownServer.server.start();
    await writeSlice(cluster, 'web', ['10.1.0.77']);
    await eventually('there is another endpoint', async () =>
      (await endpointsOf(plane, clusterOf('web'))).includes('10.1.0.77'),
    );
    await latePlane.ready();
    expect((await clustersOf(latePlane)).sort()).toEqual(clustersBefore.toSorted());
    expect([...plane.deviations(), ...latePlane.deviations()]).toEqual([]);
  },
);

it('the ConfigMap of the mesh is watched, overrides the shared ConfigMap, and has no effect while it is invalid', async () => {
  const namespace = cluster.namespace;
  const write = (name: string, mesh: string) => cluster.apply(of.configMaps, { metadata: { name }, data: { mesh } });
  await write('shared', 'trustDomain: shared.example\nconnectTimeout: 7s\n');
  await write('istio', 'trustDomain: own.example\n');
  const env = { POD_NAMESPACE: namespace, SHARED_MESH_CONFIG: 'shared' };
  const plane = new ControlPlane({ registries: 'Kubernetes', configDir: '', kubeconfig }, {}, undefined, env);
  await plane.ready();
  const mesh = async (): Promise<{ trustDomain: string; connectTimeoutMs?: number }> =>
    (await plane.get('/debug/mesh')).json();
  expect(linesOf(plane.lines, 'settings.loaded', { settings: 'mesh', origin: 'config map' })).toHaveLength(1);
  expect(JSON.stringify(await mesh())).toMatch(/own\.example/);
  expect(JSON.stringify(await mesh())).toMatch(/"connectTimeout[^"]*":"?7/);
  await write('istio', 'trustDomain: another.example\n');
  await eventually('it is in force', async () => JSON.stringify(await mesh()).includes('another.example'));
  await write('istio', 'trustDomain: [no]\n');
  const rejectedFields = { place: new RegExp(`ConfigMap ${namespace}/istio: mesh:1`), reason: /trustDomain/ };
  await eventually('it is logged', () => linesOf(plane.lines, 'object.rejected', rejectedFields).length > 0);
  await cluster.delete(of.configMaps, 'istio');
  await write('shared', 'trustDomain: shared.example\nconnectTimeout: 8s\n');
  await eventually('what is left counts', async () => JSON.stringify(await mesh()).includes('shared.example'));
  await cluster.delete(of.configMaps, 'shared');
  await write('marker', '');
  writeFileSync(join(plane.root, 'mesh'), 'trustDomain: file.example\n');
  await eventually('the file counts', async () => JSON.stringify(await mesh()).includes('file.example'));
  expect(plane.deviations()).toEqual([]);
});
