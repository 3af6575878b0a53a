/** Auto-registration of workloads on a real API server, with replicas of the program that are killed. */
import { fromBinary, toJsonString } from '@bufbuild/protobuf';
import { type ChannelCredentials, status } from '@grpc/grpc-js';
import { beforeAll, expect, it } from 'vitest';
import { healthType } from '../../machines/discovery/xds/ads-types.ts';
import { leases, resourceOf } from '../../src/discovery/kubernetes/api-resource.ts';
import type { KubernetesObject } from '../../src/discovery/kubernetes/api-server.ts';
import { HealthStatus } from '../../src/gen/envoy/config/core/v3/health_check_pb.ts';
import { ClusterLoadAssignmentSchema } from '../../src/gen/envoy/config/endpoint/v3/endpoint_pb.ts';
import { ListenerSchema } from '../../src/gen/envoy/config/listener/v3/listener_pb.ts';
import { extensionTypes } from '../../src/networking/messages/extension-types.ts';
import { type SotwStream, typeUrls } from '../ads-client.ts';
import { eventually } from '../harness/eventually.ts';
import { givenCluster } from './given-cluster.ts';
import { defineKinds, of } from './mesh-objects.ts';
import { type NodeWords, type Replica, Replicas } from './replica.ts';

const neverAborted = new AbortController().signal;
const cluster = givenCluster();
/** Maximum time in milliseconds for a returning workload to connect, authenticate and be recorded. */
const graceMs = 6_000;
const replicas = new Replicas(cluster, {
  PILOT_WORKLOAD_ENTRY_GRACE_PERIOD: `${graceMs}ms`,
  PILOT_LEASE_DURATION: '3s',
});
const entries = resourceOf('WorkloadEntry');
const groups = resourceOf('WorkloadGroup');
const probe = { PROXY_CONFIG: { readinessProbe: { tcpSocket: { port: 80 } } } };
let first: Replica;
let second: Replica;
let vm: string;
let asVm: ChannelCredentials;

beforeAll(async () => {
  await defineKinds(cluster);
  vm = await cluster.account();
  asVm = await replicas.credentialsOf(vm);
  await cluster.apply(groups, {
    metadata: { name: 'vm' },
    spec: {
      metadata: { labels: { app: 'vm' }, annotations: { note: 'of the group' } },
      template: { serviceAccount: vm, ports: { http: 8080 }, labels: { tier: 'back' } },
    },
  });
  await cluster.apply(of.serviceEntries, {
    metadata: { name: 'vm' },
    spec: {
      ...{ hosts: ['vm.example.com'], resolution: 'STATIC', ports: [{ number: 80, name: 'http', protocol: 'HTTP' }] },
      workloadSelector: { labels: { app: 'vm' } },
    },
  });
  [first, second] = await Promise.all([replicas.start('first'), replicas.start('second')]);
});

const registering = (nodeFields: NodeWords = {}): NodeWords => ({
  ...nodeFields,
  metadata: { AUTO_REGISTER_GROUP: 'vm', ...nodeFields.metadata },
});

function connect(
  replica: Replica,
  nodeFields: NodeWords = {},
  credentials: ChannelCredentials | null = asVm,
): SotwStream {
  const port = credentials === null ? replica.plainPort : replica.securePort;
  return replicas.connect(port, registering(nodeFields), credentials ?? undefined);
}

async function entry(name: string): Promise<KubernetesObject | undefined> {
  const { items } = await cluster.admin.list(entries, { namespace: cluster.namespace, keepsData: true }, neverAborted);
  return items.find(({ metadata }) => metadata.name === name);
}

const annotation = (object: KubernetesObject | undefined, name: string): string | undefined =>
  object?.metadata.annotations?.[`istio.io/${name}`];

/** Resolves when the entry exists and names its controller. */
const heldBy = (name: string, controller: string): Promise<KubernetesObject> =>
  eventually(`${name} is held by ${controller}`, async () => {
    const object = await entry(name);
    const isControlled = annotation(object, 'workloadController')?.startsWith(`${controller}_`);
    return isControlled && annotation(object, 'connectedAt') !== undefined ? object : undefined;
  });

/** Endpoints that receive requests. */
async function endpoints(replica: Replica): Promise<string[]> {
  const stream = replicas.connect(replica.plainPort, { ip: '10.9.9.9' });
  await stream.next();
  stream.onResponse = () => {};
  stream.send({ typeUrl: typeUrls.EDS, resourceNames: ['outbound|80||vm.example.com'] });
  for (;;) {
    const { typeUrl, resources } = await stream.next();
    if (typeUrl !== typeUrls.EDS) continue;
    stream.cancel();
    return resources.flatMap(({ value }) =>
      fromBinary(ClusterLoadAssignmentSchema, value).endpoints.flatMap(({ lbEndpoints }) =>
        lbEndpoints
          .filter(({ healthStatus }) => healthStatus !== HealthStatus.UNHEALTHY)
          .map(({ hostIdentifier }) => {
            const address = hostIdentifier.case === 'endpoint' ? hostIdentifier.value.address?.address : undefined;
            return address?.case === 'socketAddress'
              ? `${address.value.address}:${JSON.stringify(address.value.portSpecifier.value)}`
              : '?';
          }),
      ),
    );
  }
}

const isEndpoint = async (replica: Replica, ip: string): Promise<boolean> =>
  (await endpoints(replica)).includes(`${ip}:8080`);

it('a connected workload has an entry of its group and is an endpoint, even after a disconnect within the grace period', async () => {
  const ip = '10.9.1.1';
  const name = `vm-${ip}-lab`;
  const nodeFields = { ip, metadata: { NETWORK: 'lab', LABELS: { version: 'v2' } } };
  const stream = connect(first, nodeFields);
  const createdEntry = await heldBy(name, 'first');
  expect(createdEntry.spec).toEqual({
    ...{ address: ip, network: 'lab', serviceAccount: vm, ports: { http: 8080 } },
    labels: { tier: 'back', app: 'vm', version: 'v2' },
  });
  expect(createdEntry.metadata).toMatchObject({
    labels: { app: 'vm' },
    annotations: { note: 'of the group', 'istio.io/autoRegistrationGroup': 'vm' },
    ownerReferences: [{ kind: 'WorkloadGroup', name: 'vm', controller: true }],
  });
  stream.cancel();
  await eventually('its disconnect is noted', async () => annotation(await entry(name), 'disconnectedAt'));
  const back = connect(first, nodeFields);
  const keptEntry = await heldBy(name, 'first');
  expect(keptEntry.metadata.uid).toBe(createdEntry.metadata.uid);
  expect(annotation(keptEntry, 'disconnectedAt')).toBeUndefined();
  back.cancel();
  await eventually('it is deleted', async () => (await entry(name)) === undefined);
});

it('a workload with a health probe is an endpoint only while it reports that it is healthy', async () => {
  const ip = '10.9.2.1';
  const name = `vm-${ip}`;
  const stream = connect(first, { ip, metadata: probe });
  await heldBy(name, 'first');
  const plain = connect(first, { ip: '10.9.2.2' });
  await eventually('one that is not probed is', () => isEndpoint(second, '10.9.2.2'));
  expect(await isEndpoint(second, ip)).toBe(false);
  await cluster.patch(entries, name, { status: { conditions: [{ type: 'Foreign', status: 'True' }] } }, 'status');
  stream.send({ typeUrl: healthType });
  await eventually('it is healthy', () => isEndpoint(second, ip));
  const since = (await conditionsOf(name))[1]!.lastTransitionTime;
  stream.send({ typeUrl: healthType, errorDetail: { code: 13, message: 'connection refused' } });
  await eventually('it is not', async () => !(await isEndpoint(second, ip)));
  expect(await conditionsOf(name)).toMatchObject([
    { type: 'Foreign', status: 'True' },
    { type: 'Healthy', status: 'False', message: 'connection refused' },
  ]);
  expect((await conditionsOf(name))[1]!.lastTransitionTime).not.toBe(since);
  stream.cancel();
  plain.cancel();
});

async function conditionsOf(name: string): Promise<Record<string, string>[]> {
  const { conditions } = (await entry(name))!.status as { conditions: Record<string, string>[] };
  return conditions;
}

it.each<[string, () => SotwStream | Promise<SotwStream>, keyof typeof status, RegExp]>([
  [
    'of a group that does not exist',
    () => connect(first, { metadata: { AUTO_REGISTER_GROUP: 'none' } }),
    'FAILED_PRECONDITION',
    /cannot find WorkloadGroup .*\/none/,
  ],
  [
    "of an account that is not the group's",
    async () => connect(first, {}, await replicas.credentialsOf(await cluster.account())),
    'PERMISSION_DENIED',
    /service account/,
  ],
  ['without an identity', () => connect(first, {}, null), 'PERMISSION_DENIED', /requires a verified identity/],
  [
    'of another namespace',
    () => connect(first, { metadata: { NAMESPACE: 'default' } }),
    'PERMISSION_DENIED',
    /authorization failed/,
  ],
  [
    'of a group that is named with a namespace',
    () => connect(first, { metadata: { AUTO_REGISTER_GROUP: 'default/vm' } }),
    'INVALID_ARGUMENT',
    /must be the name of a WorkloadGroup/,
  ],
  ['with a loopback address', () => connect(first, { ip: '127.0.0.1' }), 'INVALID_ARGUMENT', /127\.0\.0\.1/],
])('a workload %s is rejected, and no entry is written', async (_, from, code, reason) => {
  const endStatus = await (await from()).ended;
  expect([status[endStatus.code], endStatus.details]).toEqual([code, expect.stringMatching(reason)]);
  const { items } = await cluster.admin.list(entries, { namespace: cluster.namespace, keepsData: true }, neverAborted);
  expect(items.filter(({ metadata }) => /127|none/.test(metadata.name))).toEqual([]);
});

it('an entry that a user wrote stays unchanged, and a workload that claims its name is rejected', async () => {
  const ip = '10.9.3.1';
  await cluster.apply(entries, { metadata: { name: `vm-${ip}` }, spec: { address: ip } });
  const endStatus = await connect(first, { ip }).ended;
  expect([status[endStatus.code], endStatus.details]).toEqual([
    'FAILED_PRECONDITION',
    expect.stringMatching(/not registered automatically.*\[REGISTRATION_REJECTED\]$/),
  ]);
  expect((await entry(`vm-${ip}`))?.spec).toEqual({ address: ip });
  await cluster.delete(entries, `vm-${ip}`);
});

/** Returns the inbound listener that a node receives. */
async function inboundListener(replica: Replica, ip: string, namespace: string): Promise<string | undefined> {
  const stream = replicas.connect(replica.plainPort, {
    ip,
    metadata: { NAMESPACE: namespace, ISTIO_VERSION: '1.30.0' },
  });
  await stream.next();
  stream.send({ typeUrl: typeUrls.LDS });
  let response = await stream.next();
  while (response.typeUrl !== typeUrls.LDS) response = await stream.next();
  stream.cancel();
  const listeners = response.resources.map(({ value }) => fromBinary(ListenerSchema, value));
  const virtual = listeners.find(({ name }) => name === 'virtualInbound');
  return virtual && toJsonString(ListenerSchema, virtual, { registry: extensionTypes });
}

it('a workload that registers at the address of another namespace does not change inbound listeners of that namespace', async () => {
  const [ip, victim] = ['10.9.6.1', `v-${cluster.namespace}`];
  await cluster.create(of.namespaces, { metadata: { name: victim } });
  const servingSpec = (name: string, extraFields: object, protocol: string): KubernetesObject['spec'] => ({
    ...{ hosts: [`${name}.example.com`], resolution: 'STATIC', location: 'MESH_INTERNAL', ...extraFields },
    ports: [{ number: 8080, name: 'served', protocol }],
  });
  const ownEntry = servingSpec('victim', { endpoints: [{ address: ip }] }, 'HTTP');
  await cluster.apply(of.serviceEntries, { metadata: { name: 'victim', namespace: victim }, spec: ownEntry });
  const previousListener = await eventually('the port is served as HTTP', async () => {
    const listener = await inboundListener(first, ip, victim);
    return listener?.includes('inbound|8080||') === true ? listener : undefined;
  });
  expect(previousListener).toContain('http_connection_manager');
  const foreignSpec = servingSpec('raw', { exportTo: ['.'], workloadSelector: { labels: { app: 'vm' } } }, 'TCP');
  await cluster.apply(of.serviceEntries, { metadata: { name: 'raw' }, spec: foreignSpec });
  const stream = connect(first, { ip });
  await eventually('it is an endpoint', () => isEndpoint(first, ip));
  const registered = await eventually('its own port is TCP', async () => {
    const listener = await inboundListener(first, ip, cluster.namespace);
    return listener?.includes('inbound|8080||') === true ? listener : undefined;
  });
  expect(registered).not.toBe(previousListener);
  expect(await inboundListener(first, ip, victim)).toBe(previousListener);
  stream.cancel();
  await cluster.delete(of.serviceEntries, 'raw');
});

it('an entry that is deleted while its workload is connected is recreated', async () => {
  const ip = '10.9.4.1';
  const stream = connect(first, { ip });
  const createdEntry = await heldBy(`vm-${ip}`, 'first');
  await cluster.delete(entries, `vm-${ip}`);
  const recreatedEntry = await eventually('it is there again', () => entry(`vm-${ip}`));
  expect(recreatedEntry.metadata.uid).not.toBe(createdEntry.metadata.uid);
  stream.cancel();
});

it('another replica adopts a reconnecting workload without deleting its entry, and the entry of an absent workload is removed', async () => {
  const [movedIp, killed, lostIp] = ['10.9.5.1', '10.9.5.2', '10.9.5.4'];
  const oldStream = connect(first, { ip: movedIp });
  const aloneStream = connect(first, { ip: killed });
  connect(first, { ip: lostIp });
  const createdEntry = await heldBy(`vm-${movedIp}`, 'first');
  for (const ip of [killed, lostIp]) await heldBy(`vm-${ip}`, 'first');
  const takenStream = connect(second, { ip: movedIp });
  await heldBy(`vm-${movedIp}`, 'second');
  // A late disconnect: the workload is already connected to the other replica. Once a workload that disconnected at the same time is recorded, this
  // one was checked, too.
  oldStream.cancel();
  const witness = connect(first, { ip: '10.9.5.3' });
  await heldBy('vm-10.9.5.3', 'first');
  witness.cancel();
  await eventually('the witness is deleted', async () => (await entry('vm-10.9.5.3')) === undefined);
  expect((await entry(`vm-${movedIp}`))?.metadata.uid).toBe(createdEntry.metadata.uid);
  expect(annotation(await entry(`vm-${movedIp}`), 'disconnectedAt')).toBeUndefined();
  await first.program.stop({ signal: 'SIGKILL' });
  await aloneStream.ended;
  const previousListener = await entry(`vm-${killed}`);
  const back = connect(second, { ip: killed });
  const entryAfter = await heldBy(`vm-${killed}`, 'second');
  expect(entryAfter.metadata.uid).toBe(previousListener?.metadata.uid);
  await eventually(
    'both are endpoints',
    async () => (await isEndpoint(second, movedIp)) && (await isEndpoint(second, killed)),
  );
  await eventually(
    'who was lost with the replica is deleted, and its Lease',
    async () => {
      const { items } = await cluster.admin.list(leases, { namespace: cluster.namespace }, neverAborted);
      const replicasThere = items.filter(({ metadata }) => metadata.name.startsWith('istiod-replica-')).length;
      return (await entry(`vm-${lostIp}`)) === undefined && replicasThere === 1;
    },
    // A leader without processor time loses Leases of such a short duration, and restarts its grace periods.
    { deadlineMs: 120_000 },
  );
  expect([await entry(`vm-${movedIp}`), await entry(`vm-${killed}`)].map((one) => one?.metadata.uid)).toEqual([
    createdEntry.metadata.uid,
    entryAfter.metadata.uid,
  ]);
  for (const stream of [takenStream, back]) stream.cancel();
  await eventually('both are deleted', async () => !(await entry(`vm-${killed}`)) && !(await entry(`vm-${movedIp}`)));
});
