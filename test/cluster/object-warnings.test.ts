/**
 * Objects that take effect only partly have the condition PartiallyInvalid. Uses a separate server, because control planes of other files would write
 * statuses, too.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { kindsWithEvents, kindsWithWarningEvents } from '../../src/discovery/distribution/status-objects.ts';
import { type ApiResource, events, resourceOf } from '../../src/discovery/kubernetes/api-resource.ts';
import { type KindName, kinds } from '../../src/model/kinds/index.ts';
import {
  maxIngressPaths,
  maxPodContainers,
  maxServicePorts,
  maxSliceEndpoints,
} from '../../src/model/kinds/object-limits.ts';
import { conditionReasonOf, type WarningCode } from '../../src/runtime/errors.ts';
import { typeUrls } from '../ads-client.ts';
import {
  connectedGateway,
  type FaultyObjects,
  faultyObjects,
  meshConfigOfFaults,
} from '../fixtures/objects-with-warnings.ts';
import { eventually } from '../harness/eventually.ts';
import { isFull } from '../harness/size-of-run.ts';
import { givenOwnServer } from './given-cluster.ts';
import { defineShippedKinds, of } from './mesh-objects.ts';
import { type Replica, Replicas } from './replica.ts';

const { cluster } = givenOwnServer();
const neverAborted = new AbortController().signal;
const replicas = new Replicas(cluster, { PILOT_LEASE_DURATION: '3s', PILOT_SECRETS_ON_PLAINTEXT: 'true' });
let first: Replica;
const folder = mkdtempSync(join(tmpdir(), 'cp-warnings-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const startReplica = (name: string): Promise<Replica> =>
  replicas.start(name, undefined, undefined, ['--meshConfig', join(folder, 'mesh')]);
const [gateways, sidecars, entries] = [resourceOf('Gateway'), resourceOf('Sidecar'), resourceOf('WorkloadEntry')];
const rules = resourceOf('DestinationRule');
const ports = [{ number: 80, name: 'http', protocol: 'HTTP' }];

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
  readonly observedGeneration?: number;
}

beforeAll(async () => {
  writeFileSync(join(folder, 'mesh'), meshConfigOfFaults);
  await defineShippedKinds(cluster);
});

async function conditionsOf(
  resource: ApiResource,
  name: string,
  namespace = cluster.namespace,
): Promise<Record<string, Condition>> {
  const { status } = await cluster.admin.request({ method: 'GET', resource, namespace, name }, neverAborted);
  const { conditions = [] } = (status ?? {}) as { conditions?: Condition[] };
  return Object.fromEntries(conditions.map((condition) => [condition.type, condition]));
}

const partialOf = (resource: ApiResource, name: string, namespace?: string): Promise<Condition> =>
  eventually(
    `${resource.kind} ${name} has PartiallyInvalid`,
    async () => (await conditionsOf(resource, name, namespace)).PartiallyInvalid,
  );

const waitUntilRepaired = (
  resource: ApiResource,
  name: string,
  namespace?: string,
): Promise<Record<string, Condition>> =>
  eventually(`${resource.kind} ${name} has no PartiallyInvalid`, async () => {
    const conditions = await conditionsOf(resource, name, namespace);
    return conditions.PartiallyInvalid === undefined ? conditions : undefined;
  });

const server = (name: string, mode: string, hosts: readonly string[]) => ({
  ...{ port: { number: 18443, name, protocol: 'HTTPS' }, hosts },
  tls: { mode, credentialName: `edge-${name}` },
});

it('the status of a Gateway reports that another one replaces its TLS server entirely or in part', async () => {
  const { metadata } = await cluster.apply(gateways, {
    metadata: { name: 'g1' },
    spec: { selector: { istio: 'edge' }, servers: [server('one', 'SIMPLE', ['x.example.test', 'z.example.test'])] },
  });
  await cluster.apply(gateways, {
    metadata: { name: 'g2' },
    spec: { selector: { istio: 'edge' }, servers: [server('two', 'MUTUAL', ['x.example.test', 'y.example.test'])] },
  });
  // No gateway is connected.
  first = await startReplica('first');
  expect(await partialOf(gateways, 'g1')).toMatchObject({
    ...{ status: 'True', reason: 'ServerNotServed', observedGeneration: metadata.generation },
    message: `x.example.test is served by ${cluster.namespace}/g2 on port 18443`,
  });
  expect((await conditionsOf(gateways, 'g2')).PartiallyInvalid).toBeUndefined();
  await cluster.apply(gateways, {
    metadata: { name: 'g2' },
    spec: { selector: { istio: 'edge' }, servers: [server('two', 'MUTUAL', ['y.example.test'])] },
  });
  await waitUntilRepaired(gateways, 'g1');
});

const entry = (name: string, extraSpec: object) =>
  cluster.apply(of.serviceEntries, {
    metadata: { name },
    spec: { hosts: [`${name}.test`], location: 'MESH_INTERNAL', resolution: 'STATIC', ports, ...extraSpec },
  });
const workload = (name: string, spec: object) =>
  cluster.apply(entries, { metadata: { name, labels: { app: name } }, spec });

it('the status of an object reports endpoints that no proxy receives, until proxies receive them', async () => {
  const { plainPort } = first;
  replicas.connect(plainPort, { ip: 'fd00::9', metadata: { INSTANCE_IPS: 'fd00::9', NETWORK: 'n1' } });
  await cluster.apply(of.services, {
    metadata: { name: 'east-west', labels: { 'topology.istio.io/network': 'n2' } },
    spec: { externalIPs: ['203.0.113.9'], ports: [{ name: 'tls', port: 15443 }] },
  });
  await workload('vm', { address: 'vm.internal' });
  await entry('vm', { workloadSelector: { labels: { app: 'vm' } } });
  await workload('far', { network: 'n3' });
  await entry('far', { workloadSelector: { labels: { app: 'far' } } });
  await entry('remote', {
    endpoints: [{ address: '10.0.0.9', network: 'n2', labels: { 'security.istio.io/tlsMode': 'istio' } }],
  });
  const disable = (mode: string) =>
    cluster.apply(rules, {
      metadata: { name: 'remote' },
      spec: { host: 'remote.test', trafficPolicy: { tls: { mode } } },
    });
  await disable('DISABLE');
  const forwarding = (defaultEndpoint: string) =>
    cluster.apply(sidecars, {
      metadata: { name: 'own' },
      spec: { ingress: [{ port: { number: 9080, name: 'http', protocol: 'HTTP' }, defaultEndpoint }] },
    });
  await forwarding('127.0.0.1:8080');

  expect(await partialOf(of.serviceEntries, 'vm')).toMatchObject({
    reason: 'HostNameEndpoints',
    message: expect.stringContaining('vm.internal:80'),
  });
  expect(await partialOf(of.serviceEntries, 'far')).toMatchObject({
    reason: 'EndpointsWithoutAddress',
    message: expect.stringContaining('far of network n3'),
  });
  expect(await partialOf(rules, 'remote')).toMatchObject({
    reason: 'PlaintextAcrossNetworks',
    message: expect.stringContaining('10.0.0.9:80 of network n2'),
  });
  expect(await partialOf(sidecars, 'own')).toMatchObject({
    reason: 'AddressFamilyReplaced',
    message: expect.stringContaining('[::1]:8080 is used instead of 127.0.0.1:8080'),
  });

  await workload('vm', { address: '10.0.0.7' });
  await workload('far', { address: '10.0.0.8' });
  await disable('ISTIO_MUTUAL');
  await forwarding('[::1]:8080');
  const conditions = await waitUntilRepaired(rules, 'remote');
  expect(conditions.Reconciled).toMatchObject({ status: 'True', reason: 'UpToDate' });
  await waitUntilRepaired(of.serviceEntries, 'vm');
  await waitUntilRepaired(of.serviceEntries, 'far');
  await waitUntilRepaired(sidecars, 'own');
  // Another Sidecar for all workloads of the namespace would conflict with it.
  await cluster.delete(sidecars, 'own');
});

const numbered = <Item>(count: number, item: (index: number) => Item): Item[] =>
  Array.from({ length: count }, (_, index) => item(index));

it('a Service, Pod, EndpointSlice or Ingress beyond a size limit is reported by an Event', async () => {
  first ??= await startReplica('first');
  const name = 'large';
  const path = (index: number) => ({
    ...{ path: `/${index}`, pathType: 'Prefix' },
    backend: { service: { name, port: { number: 80 } } },
  });
  const backends = numbered(maxIngressPaths + 1, path);
  await cluster.apply(of.services, {
    metadata: { name },
    spec: { ports: numbered(maxServicePorts + 1, (index) => ({ name: `p${index}`, port: 1 + index })) },
  });
  await cluster.apply(of.pods, {
    metadata: { name },
    spec: {
      containers: numbered(maxPodContainers + 1, (index) => ({
        ...{ name: `c${index}`, image: 'a' },
        ports: [{ containerPort: 1 + index }],
      })),
    },
  });
  await cluster.apply(of.slices, {
    metadata: { name },
    ...{ addressType: 'IPv4', ports: numbered(100, (index) => ({ name: `p${index}`, port: 1 + index })) },
    endpoints: numbered(maxSliceEndpoints / 100 + 1, (index) => ({
      addresses: [`10.9.${index >> 8}.${index & 255}`],
    })),
  });
  await cluster.apply(resourceOf('Ingress'), {
    metadata: { name },
    spec: { ingressClassName: 'istio', rules: [{ host: 'large.test', http: { paths: backends } }] },
  });
  for (const kind of kindsWithEvents) {
    // The API server also writes Events about Services when it repairs their addresses.
    const eventSelector = `involvedObject.kind=${kind},involvedObject.name=${name},reason=LimitExceeded`;
    const [event] = await eventually(`an Event reports the limit of the ${kind}`, async () => {
      const query = { namespace: cluster.namespace, fieldSelector: eventSelector };
      const { items } = await cluster.admin.list(events, query, neverAborted);
      return items.length > 0 ? items : undefined;
    });
    expect(event).toMatchObject({ type: 'Warning', reason: 'LimitExceeded' });
    expect(event!.message).toContain('LIMIT_EXCEEDED');
  }
});

const kindOf = ({ object }: FaultyObjects): KindName => object.slice(0, object.indexOf('/')) as KindName;
const nameOf = ({ object }: FaultyObjects): string => object.slice(object.indexOf('/') + 1);
const isGatewayApiFault = (fault: FaultyObjects): boolean =>
  kinds[kindOf(fault)].group === 'gateway.networking.k8s.io' && !kindsWithWarningEvents.has(kindOf(fault));
const hasEvent = (fault: FaultyObjects): boolean => kindsWithWarningEvents.has(kindOf(fault));
const faults = faultyObjects.filter((fault) => !isGatewayApiFault(fault) && !hasEvent(fault));

interface WrittenObject {
  readonly kind: KindName;
  readonly apiVersion: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly labels?: Record<string, string>;
    readonly annotations?: Record<string, string>;
  };
  readonly spec?: { clusterIP?: string; serviceAccountName?: string };
}

/** Applies objects in the test's namespace; the server assigns creation times and Service addresses. */
async function applyObjects(yaml: string): Promise<void> {
  for (const document of parseAllDocuments(yaml.replaceAll('shop', cluster.namespace))) {
    const object = document.toJS() as WrittenObject | null;
    if (object === null) continue;
    const { kind: writtenKind, metadata, ...body } = object;
    const isGatewayApi = writtenKind === 'Gateway' && String(body.apiVersion).startsWith('gateway.networking.k8s.io');
    const kind = isGatewayApi ? 'KubernetesGateway' : writtenKind;
    const { name, labels, annotations } = metadata;
    const namespace = kinds[kind].scope === 'Cluster' ? '' : metadata.namespace;
    if (kind === 'Service') delete body.spec?.clusterIP;
    const metadataFields = { ...(labels && { labels }), ...(annotations && { annotations }) };
    await cluster.apply(resourceOf(kind), { ...body, metadata: { name, namespace, ...metadataFields } });
  }
}

/** A gateway that requests its listeners and a Secret, like Envoy. */
function connectGateway(port: number, labels: Readonly<Record<string, string>>, secret: string): void {
  const stream = replicas.connect(port, { type: 'router', ip: '10.9.0.8', metadata: { LABELS: labels } });
  stream.send({ typeUrl: typeUrls.LDS });
  stream.send({ typeUrl: typeUrls.SDS, resourceNames: [secret] });
}

it('the status of objects with missing or conflicting references reports each code and both fields until they are corrected', async () => {
  first ??= await startReplica('first');
  const { plainPort } = first;
  connectGateway(plainPort, connectedGateway, 'kubernetes://missing');
  await cluster.apply(of.namespaces, { metadata: { name: 'third', namespace: '' } });
  for (const { yaml } of faults) await applyObjects(yaml);
  for (const { code, object, namespace, field, other } of faults) {
    const [kind, name] = object.split('/') as [KindName, string];
    // Objects are applied one after the other, so an earlier reference may be missing for a while.
    const { message } = await eventually(`the status of ${object} reports ${code}`, async () => {
      const partialCondition = await partialOf(resourceOf(kind), name, namespace);
      return partialCondition.reason === conditionReasonOf(code as WarningCode) ? partialCondition : undefined;
    });
    expect(message).toContain(`${field}: `);
    const [otherKind, otherName] = other?.split('/') ?? [];
    const placePattern = otherKind === 'MeshConfig' ? 'mesh configuration' : `${otherKind}/[^/ ]+/${otherName}`;
    if (other !== undefined) expect(message).toMatch(new RegExp(`; see ${placePattern}( |;|$)`));
  }
  expect(new Set(faults.map(({ code }) => code)).size).toBeGreaterThan(25);
  for (const { yaml, fix } of faults) await applyObjects(yaml.replace(...fix));
  for (const { object, namespace, code } of faults) {
    const [kind, name] = object.split('/') as [KindName, string];
    // The fix of RULE_NOT_APPLIED creates the object in another namespace.
    if (code !== 'RULE_NOT_APPLIED') await waitUntilRepaired(resourceOf(kind), name, namespace);
  }
});

it('the status of a VirtualService reports what a connected proxyless gRPC client ignores', async () => {
  first ??= await startReplica('first');
  const [virtualServices, host] = [resourceOf('VirtualService'), 'mirrored.test'];
  await entry('mirrored', { endpoints: [{ address: '10.0.0.10' }] });
  await cluster.apply(virtualServices, {
    metadata: { name: 'mirrored' },
    spec: { hosts: [host], http: [{ mirror: { host }, route: [{ destination: { host } }] }] },
  });
  const program = replicas.connect(first.plainPort, { ip: '10.9.0.9', metadata: { GENERATOR: 'grpc' } });
  const request = { typeUrl: typeUrls.RDS, resourceNames: [`outbound|80||${host}`] };
  program.onResponse = ({ nonce, versionInfo }) => program.send({ ...request, responseNonce: nonce, versionInfo });
  program.send(request);
  expect(await partialOf(virtualServices, 'mirrored')).toMatchObject({
    reason: 'GrpcNotSupported',
    message: expect.stringContaining('spec.http[0]: '),
  });
  program.cancel();
  await waitUntilRepaired(virtualServices, 'mirrored');
});

it('a Service, Ingress, WorkloadEntry or BackendTLSPolicy that takes effect only in part has an Event with the code and both fields', async () => {
  first ??= await startReplica('first');
  await cluster.apply(of.namespaces, { metadata: { name: 'third', namespace: '' } });
  const withEvents = faultyObjects.filter(hasEvent);
  expect(new Set(withEvents.map(kindOf))).toEqual(new Set(['Service', 'Ingress', 'WorkloadEntry', 'BackendTLSPolicy']));
  for (const { yaml } of withEvents) await applyObjects(yaml);
  for (const fault of withEvents) {
    const reason = conditionReasonOf(fault.code as WarningCode);
    const eventSelector = `involvedObject.kind=${kindOf(fault)},involvedObject.name=${nameOf(fault)},reason=${reason}`;
    const [event] = await eventually(`an Event reports ${fault.code} of ${fault.object}`, async () => {
      const query = { namespace: cluster.namespace, fieldSelector: eventSelector };
      const { items } = await cluster.admin.list(events, query, neverAborted);
      return items.length > 0 ? items : undefined;
    });
    expect(event!.message).toContain(`${fault.field}: `);
    if (fault.other !== undefined)
      expect(event!.message).toContain(`; see ${fault.other.replace('/', `/${cluster.namespace}/`)}`);
  }
});

/** False conditions of the object, of its listeners and of its parents. */
async function falseConditions(fault: FaultyObjects): Promise<readonly Condition[]> {
  const { namespace } = cluster;
  const resource = resourceOf(kindOf(fault));
  const { status } = await cluster.admin.request(
    { method: 'GET', resource, namespace, name: nameOf(fault) },
    neverAborted,
  );
  type WithConditions = { conditions?: Condition[] };
  const {
    conditions = [],
    listeners = [],
    parents = [],
  } = (status ?? {}) as WithConditions & {
    listeners?: WithConditions[];
    parents?: WithConditions[];
  };
  const all = [...conditions, ...[...listeners, ...parents].flatMap((one) => one.conditions ?? [])];
  return all.filter((one) => one.status === 'False');
}

it('objects of the Gateway API report each error in a condition of that API', async () => {
  first ??= await startReplica('first');
  await cluster.apply(of.namespaces, { metadata: { name: 'keys', namespace: '' } });
  const gatewayApiFaults = faultyObjects.filter(isGatewayApiFault);
  for (const { yaml } of gatewayApiFaults) await applyObjects(yaml);
  for (const fault of gatewayApiFaults.filter(({ condition }) => condition !== undefined)) {
    await eventually(`${fault.code} is in the status of ${fault.object}`, async () =>
      (await falseConditions(fault)).find(
        ({ type, reason, message }) =>
          type === fault.condition!.type && reason === fault.condition!.reason && message !== '',
      ),
    );
  }
  // No controller may write to a Gateway of a class that it does not know.
  const unclassifiedFaults = gatewayApiFaults.filter(({ condition }) => condition === undefined);
  expect(unclassifiedFaults.map(({ code }) => code)).toEqual(['CLASS_NOT_FOUND']);
  for (const fault of unclassifiedFaults) expect(await falseConditions(fault)).toEqual([]);
});

it.runIf(isFull)(
  'a control plane that becomes leader keeps a warning that still applies, and removes one that does not',
  async () => {
    await workload('far', { network: 'n3' });
    const previousCondition = await partialOf(of.serviceEntries, 'far');
    const { metadata } = await entry('mended', { endpoints: [{ address: '10.0.0.1' }] });
    await first.program.stop({ signal: 'SIGKILL' });
    const stale = { ...previousCondition, message: 'stale', observedGeneration: metadata.generation! };
    await cluster.patch(of.serviceEntries, 'mended', { status: { conditions: [stale] } }, 'status');
    const seenStates = new Set<boolean>();
    const { plainPort } = await startReplica('second');
    replicas.connect(plainPort, { ip: 'fd00::9', metadata: { NETWORK: 'n1' } });
    await eventually('the stale condition is removed', async () => {
      seenStates.add((await conditionsOf(of.serviceEntries, 'far')).PartiallyInvalid !== undefined);
      return (await conditionsOf(of.serviceEntries, 'mended')).PartiallyInvalid === undefined;
    });
    expect(await conditionsOf(of.serviceEntries, 'far')).toMatchObject({ PartiallyInvalid: previousCondition });
    expect([...seenStates]).toEqual([true]);
  },
);
