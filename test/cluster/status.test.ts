/**
 * Statuses of Gateway API objects and Ingresses, written to a real API server by an account with exactly these permissions. Uses a separate server,
 * because control planes of other files would write them, too.
 */

import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { DeploymentFailures } from '../../src/discovery/controllers/gateways/deployment-failures.ts';
import { DerivedStatusDuty, type StatusDerivation } from '../../src/discovery/controllers/status/derived-status.ts';
import { GatewayApiDerivation } from '../../src/discovery/controllers/status/gateway-api-derivation.ts';
import { IngressDerivation } from '../../src/discovery/controllers/status/ingress-derivation.ts';
import { readProcessClocks } from '../../src/discovery/election/leader-term.ts';
import { WriteGate } from '../../src/discovery/election/write-gate.ts';
import { type ApiResource, resourceOf } from '../../src/discovery/kubernetes/api-resource.ts';
import { InformerEffects } from '../../src/discovery/kubernetes/api-server.effects.ts';
import type { ApiServer, KubernetesObject } from '../../src/discovery/kubernetes/api-server.ts';
import { ClusterSource } from '../../src/discovery/kubernetes/readers/cluster-source.ts';
import type { ConfigSet } from '../../src/model/config/config-set.ts';
import type { KindName } from '../../src/model/kinds/index.ts';
import { defaultMeshConfig } from '../../src/model/mesh/mesh-config.ts';
import { startRoot } from '../../src/runtime/actors/actor-system.ts';
import { createAuthority } from '../certs/authority.ts';
import { eventually } from '../harness/eventually.ts';
import { recordingLog } from '../harness/recording-log.ts';
import type { ObjectToWrite } from './cluster.ts';
import { defineGatewayApi } from './gateway-api-status.ts';
import { givenOwnServer } from './given-cluster.ts';
import { of } from './mesh-objects.ts';

const { cluster } = givenOwnServer();
const neverAborted = new AbortController().signal;
const gateways = resourceOf('KubernetesGateway');
const routes = resourceOf('HTTPRoute');
const classes = resourceOf('GatewayClass');
const tlsPolicies = resourceOf('BackendTLSPolicy');
const ingresses = resourceOf('Ingress');
const followedKinds: readonly KindName[] = [
  ...(['GatewayClass', 'KubernetesGateway', 'HTTPRoute', 'ReferenceGrant', 'Namespace', 'Service', 'Secret'] as const),
  ...(['Ingress', 'IngressClass', 'Pod', 'Node', 'BackendTLSPolicy', 'ConfigMap'] as const),
];

beforeAll(() => defineGatewayApi(cluster), 300_000);

/** Permissions that the chart grants to the writer of statuses. */
const rights = (group: string, ...resources: string[]) => ({
  ...{ apiGroups: [group], resources: resources.map((name) => `${name}/status`), verbs: ['get', 'update'] },
});

interface Followed {
  /** Watched namespaces (default: all). */
  readonly namespaces?: readonly string[];
  /** Additional delay of the API server's responses to the status writer. */
  readonly responseDelayMs?: number;
}

/** Watches the file's namespace, and runs the status writer whenever it is due. */
async function leading(
  derivationOf: (objects: () => ConfigSet, onChanged: StatusDerivation['onChanged']) => StatusDerivation,
  { namespaces = [cluster.namespace], responseDelayMs = 0 }: Followed = {},
) {
  const selection = namespaces.length === 1 ? { namespace: namespaces[0]! } : {};
  const informers = new InformerEffects({
    server: cluster.admin,
    kinds: followedKinds.map((kind) => {
      const resource = resourceOf(kind);
      return { resource, selection: resource.namespaced ? selection : {} };
    }),
    ...{ random: () => 0.5, now: () => performance.now() },
    fault: (error) => {
      throw error;
    },
  });
  const source = new ClusterSource({ address: 'k8s://', informers, kinds: followedKinds, revision: '' });
  const moved: string[] = [];
  const listeners = new Set<() => void>();
  const state = { isReading: true };
  let pendingRead: Promise<unknown> = Promise.resolve();
  const read = (): void => {
    pendingRead = pendingRead.then(async () => {
      if (!state.isReading) return;
      await source.read();
      for (const listener of listeners) listener();
    });
  };
  source.watch({
    changed: (kind) => {
      moved.push(kind);
      read();
    },
    failed: () => {},
  });
  const client = await cluster.clientWith({
    cluster: [
      rights(
        'gateway.networking.k8s.io',
        'backendtlspolicies',
        'gatewayclasses',
        'gateways',
        'grpcroutes',
        'httproutes',
        'tcproutes',
        'tlsroutes',
      ),
      rights('networking.k8s.io', 'ingresses'),
    ],
  });
  const server: Pick<ApiServer, 'request'> = {
    request: async (...order) => {
      if (responseDelayMs > 0) await delay(responseDelayMs);
      return client.request(...order);
    },
  };
  const { log, lines: warnings } = recordingLog();
  const duty = new DerivedStatusDuty({
    ...{ lease: 'test', server, resourceOf: (kind) => informers.servedResource(resourceOf(kind as KindName)) },
    log,
    derivation: derivationOf(
      () => source.snapshot.set,
      (onChange) => {
        listeners.add(onChange);
        return () => void listeners.delete(onChange);
      },
    ),
  });
  const gate = new WriteGate({ server, now: readProcessClocks, writeMs: 4_000 });
  gate.extend(readProcessClocks(), 600_000);
  const failures: string[] = [];
  let pendingRun = Promise.resolve();
  const stop = duty.watch(() => {
    pendingRun = pendingRun.then(async () => {
      const { reason } = await duty.writeDue({ retry: true, includesAll: false }, gate);
      if (reason !== '') failures.push(reason);
    });
  });
  const actor = startRoot(informers.machine(), {
    id: 'api-server-0',
    input: { server: cluster.address.url, resources: informers.resources, firstInformer: 1 },
    onError: (error) => {
      throw error;
    },
  });
  onTestFinished(() => {
    stop();
    actor.stop();
  });
  read();
  await Promise.all(followedKinds.map((kind) => informers.waitForFirstSet(resourceOf(kind))));
  return { duty, gate, source, moved, warnings, failures, state, read };
}

const gatewayDerivation = (objects: () => ConfigSet, onChanged: StatusDerivation['onChanged']): StatusDerivation =>
  new GatewayApiDerivation({
    ...{ objects, onChanged, domain: 'cluster.local', revision: '', failures: new DeploymentFailures() },
    isWritten: () => true,
  });

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly observedGeneration: number;
  readonly lastTransitionTime: string;
}

interface Status {
  readonly conditions?: readonly Condition[];
  readonly addresses?: readonly { readonly value: string }[];
  readonly listeners?: readonly { readonly attachedRoutes: number; readonly conditions: readonly Condition[] }[];
  readonly parents?: readonly { readonly controllerName: string; readonly conditions?: readonly Condition[] }[];
  readonly ancestors?: Status['parents'];
  readonly supportedFeatures?: readonly { readonly name: string }[];
  readonly loadBalancer?: { readonly ingress?: readonly object[] };
}

async function read(resource: ApiResource, name: string): Promise<KubernetesObject & { readonly status?: Status }> {
  const target = { resource, name, ...(resource.namespaced && { namespace: cluster.namespace }) };
  return cluster.admin.request({ method: 'GET', ...target }, neverAborted);
}

const shortConditions = (conditions: readonly Condition[] = []): string[] =>
  conditions.map(
    ({ type, status, reason, observedGeneration }) => `${type} ${status} ${reason} of ${observedGeneration}`,
  );
const ownParent = (status: Status = {}) =>
  (status.parents ?? status.ancestors)?.find(({ controllerName }) => controllerName === 'istio.io/gateway-controller');

async function expectConditions(resource: ApiResource, name: string, expected: readonly string[]): Promise<void> {
  let last: readonly string[] = [];
  await eventually(`the status of ${resource.kind} ${name} is that`, async () => {
    const { status } = await read(resource, name);
    last = shortConditions(
      [routes, tlsPolicies].includes(resource) ? ownParent(status)?.conditions : status?.conditions,
    );
    return last.join() === expected.join();
  }).catch(() => expect(last).toEqual(expected));
}

const className = `ours-${crypto.randomUUID().slice(0, 8)}`;
const acceptedConditions = (generation: number): string[] => [
  ...[`Accepted True Accepted of ${generation}`, `ResolvedRefs True ResolvedRefs of ${generation}`],
];
const route = (name: string, backend: string, front = 'front'): ObjectToWrite => ({
  metadata: { name },
  spec: { parentRefs: [{ name: front }], rules: [{ backendRefs: [{ name: backend, port: 80 }] }] },
});
const labelled = (name: string): object => ({ 'gateway.networking.k8s.io/gateway-name': name });

/** A Gateway with a load balancer, a route at it, and its backend. */
async function writeMesh(front: string): Promise<void> {
  await cluster.apply(classes, {
    metadata: { name: className },
    spec: { controllerName: 'istio.io/gateway-controller' },
  });
  const ports = [{ name: 'http', port: 80 }];
  await cluster.apply(of.services, { metadata: { name: 'cart' }, spec: { selector: { app: 'cart' }, ports } });
  const metadata = { name: `${front}-edge` };
  await cluster.apply(of.services, { metadata, spec: { type: 'LoadBalancer', selector: labelled(front), ports } });
  await cluster.apply(
    of.services,
    { metadata, status: { loadBalancer: { ingress: [{ ip: '192.0.2.7' }] } } },
    'status',
  );
  const listeners = [{ name: 'a', port: 80, protocol: 'HTTP' }];
  await cluster.apply(gateways, { metadata: { name: front }, spec: { gatewayClassName: className, listeners } });
}

describe('Gateway API objects', () => {
  it('get a status that is updated after a change, and keep the status of other controllers', async () => {
    await writeMesh('front');
    await cluster.apply(routes, route('cart', 'cart'));
    // A reference with the API's defaults.
    const parentRef = { group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'front' };
    const foreignStatus = { controllerName: 'example.com/other', parentRef, conditions: [] };
    await cluster.patch(routes, 'cart', { status: { parents: [foreignStatus] } }, 'status');
    const { duty, failures, warnings } = await leading(gatewayDerivation);
    await expectConditions(classes, className, ['Accepted True Accepted of 1']);
    expect((await read(classes, className)).status?.supportedFeatures).toContainEqual({ name: 'HTTPRoute' });
    await expectConditions(gateways, 'front', ['Accepted True Accepted of 1', 'Programmed True Programmed of 1']);
    await expectConditions(routes, 'cart', acceptedConditions(1));
    // A status of this controller replaces the API's default completely, and has every field.
    const { status: front } = await read(gateways, 'front');
    expect(front?.conditions?.some(({ lastTransitionTime }) => lastTransitionTime.startsWith('1970'))).toBe(false);
    expect(front?.addresses).toEqual([{ type: 'IPAddress', value: '192.0.2.7' }]);
    expect(
      front?.listeners?.map(({ attachedRoutes, conditions }) => [attachedRoutes, ...shortConditions(conditions)]),
    ).toEqual([
      [
        1,
        ...['Accepted True Accepted of 1', 'Programmed True Programmed of 1'],
        ...['ResolvedRefs True ResolvedRefs of 1', 'Conflicted False NoConflicts of 1'],
      ],
    ]);
    const previousConditions = ownParent((await read(routes, 'cart')).status)!.conditions!;
    await cluster.apply(routes, route('cart', 'nobody'));
    await expectConditions(routes, 'cart', [acceptedConditions(2)[0]!, 'ResolvedRefs False BackendNotFound of 2']);
    const { status } = await read(routes, 'cart');
    expect(status?.parents?.[0]).toEqual(foreignStatus);
    // `lastTransitionTime` changes with the status, not with the generation.
    expect(ownParent(status)!.conditions![0]!.lastTransitionTime).toBe(previousConditions[0]!.lastTransitionTime);
    await cluster.apply(routes, { ...route('cart', 'cart', 'elsewhere') });
    await eventually('ours is gone', async () => (await read(routes, 'cart')).status?.parents?.length === 1);
    await eventually('the Gateway has no route', async () => {
      const { listeners } = (await read(gateways, 'front')).status!;
      return listeners![0]!.attachedRoutes === 0;
    });
    expect((await read(routes, 'cart')).status?.parents).toEqual([foreignStatus]);
    expect([failures, warnings, duty.counts.refused]).toEqual([[], [], 0]);
  });

  it('get a status if they configure TLS to backends, whether valid or not, and keep the status of other controllers', async () => {
    await writeMesh('secured');
    await cluster.apply(routes, route('secured', 'cart', 'secured'));
    const validation = { hostname: 'cart.test', caCertificateRefs: [{ group: '', kind: 'ConfigMap', name: 'ca' }] };
    const targetRefs = [{ group: '', kind: 'Service', name: 'cart' }];
    const policy = (spec: object): ObjectToWrite => ({ metadata: { name: 'secured' }, spec: { targetRefs, ...spec } });
    await cluster.apply(tlsPolicies, policy({ validation: { ...validation, crl: 'list' } }));
    const ancestorRef = { group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'secured' };
    const foreignStatus = { controllerName: 'example.com/other', ancestorRef, conditions: [] };
    await cluster.patch(tlsPolicies, 'secured', { status: { ancestors: [foreignStatus] } }, 'status');
    const { failures, warnings, duty } = await leading(gatewayDerivation);
    const resolved = (generation: number): string => `ResolvedRefs True ResolvedRefs of ${generation}`;
    await expectConditions(tlsPolicies, 'secured', ['Accepted False Invalid of 1', resolved(1)]);
    await cluster.delete(tlsPolicies, 'secured');
    await cluster.apply(tlsPolicies, policy({ validation }));
    await cluster.patch(tlsPolicies, 'secured', { status: { ancestors: [foreignStatus] } }, 'status');
    const missingCondition = 'ResolvedRefs False InvalidCACertificateRef of 1';
    await expectConditions(tlsPolicies, 'secured', ['Accepted False NoValidCACertificate of 1', missingCondition]);
    const data = { 'ca.crt': createAuthority().certificate };
    await cluster.apply(of.configMaps, { metadata: { name: 'ca' }, data });
    await expectConditions(tlsPolicies, 'secured', ['Accepted True Accepted of 1', resolved(1)]);
    expect((await read(tlsPolicies, 'secured')).status?.ancestors?.[0]).toEqual(foreignStatus);
    expect([failures, warnings, duty.counts.refused]).toEqual([[], [], 0]);
  });

  it('are not read again because of a write of their status', async () => {
    await writeMesh('quiet');
    await cluster.apply(routes, route('quiet', 'cart', 'quiet'));
    const { moved, duty } = await leading(gatewayDerivation);
    await expectConditions(routes, 'quiet', acceptedConditions(1));
    await expectConditions(gateways, 'quiet', ['Accepted True Accepted of 1', 'Programmed True Programmed of 1']);
    moved.splice(0);
    await cluster.patch(routes, 'quiet', { status: { parents: [] } }, 'status');
    await cluster.patch(routes, 'quiet', { metadata: { labels: { now: 'another' } } });
    await eventually('the label was seen', () => moved.length > 0);
    expect(moved).toEqual(['HTTPRoute']);
    expect(duty.derivations).toBeGreaterThan(0);
  });

  it('get a new status if a newer generation has the old content, and never a status of an older generation', async () => {
    await writeMesh('again');
    await cluster.apply(routes, route('again', 'cart', 'again'));
    const grants = resourceOf('ReferenceGrant');
    const grant = (name: string): ObjectToWrite => ({
      metadata: { name: 'again' },
      spec: { from: [{ group: '', kind: 'Service', namespace: name }], to: [{ group: '', kind: 'Secret' }] },
    });
    await cluster.apply(grants, grant('a'));
    const { duty, gate, state, source, read: readOn } = await leading(gatewayDerivation);
    await expectConditions(routes, 'again', acceptedConditions(1));
    state.isReading = false;
    await cluster.apply(routes, route('again', 'nobody', 'again'));
    await cluster.apply(routes, route('again', 'cart', 'again'));
    await cluster.apply(grants, grant('b'));
    await cluster.apply(grants, grant('a'));
    const previousConditions = { ...duty.counts };
    await duty.writeDue({ retry: false, includesAll: true }, gate);
    expect(duty.counts.superseded).toBe(previousConditions.superseded + 1);
    expect(shortConditions(ownParent((await read(routes, 'again')).status)!.conditions)).toEqual(acceptedConditions(1));
    state.isReading = true;
    readOn();
    await expectConditions(routes, 'again', acceptedConditions(3));
    // An object without a status counts as changed, too.
    await eventually('its generation is known', () => source.snapshot.set.ReferenceGrant[0]?.generation === 3);
  });
});

it('status messages and reasons are truncated to the limits of the API server', async () => {
  await writeMesh('long');
  const backendRefs = Array.from({ length: 16 }, (_, index) => ({ name: `n${index}-${'x'.repeat(230)}`, port: 80 }));
  const rules = Array.from({ length: 16 }, () => ({ backendRefs }));
  await cluster.apply(routes, { metadata: { name: 'long' }, spec: { parentRefs: [{ name: 'long' }], rules } });
  const { duty, warnings } = await leading(gatewayDerivation);
  await expectConditions(routes, 'long', [acceptedConditions(1)[0]!, 'ResolvedRefs False BackendNotFound of 1']);
  expect([duty.counts.refused, warnings]).toEqual([0, []]);
});

it('objects whose status is full of entries of other controllers report this once, and lose no entry', async () => {
  await writeMesh('full');
  await cluster.apply(routes, route('full', 'cart', 'full'));
  const parents = Array.from({ length: 32 }, (_, index) => ({
    ...{ controllerName: `example.com/${index}`, parentRef: { name: 'full' }, conditions: [] },
  }));
  await cluster.patch(routes, 'full', { status: { parents } }, 'status');
  const { warnings } = await leading(gatewayDerivation);
  await expectConditions(gateways, 'full', ['Accepted True Accepted of 1', 'Programmed True Programmed of 1']);
  await eventually('it is reported', () => warnings.length > 0);
  expect(warnings).toMatchObject([
    {
      event: 'status.writeRejected',
      object: expect.stringMatching(/^HTTPRoute\/.*\/full$/),
      reason: expect.stringContaining('32'),
    },
  ]);
  expect((await read(routes, 'full')).status?.parents).toHaveLength(32);
});

it("writing the status of 300 routes delays the status of another namespace's Gateway by only a part of that time", async () => {
  const mallory = `mallory-${crypto.randomUUID().slice(0, 8)}`;
  const namespace = {
    method: 'POST',
    resource: resourceOf('Namespace'),
    body: { metadata: { name: mallory } },
  } as const;
  await cluster.admin.request(namespace, neverAborted);
  const ownNamespace = `fair-${crypto.randomUUID().slice(0, 8)}`;
  await cluster.create(classes, {
    metadata: { name: ownNamespace },
    spec: { controllerName: 'istio.io/gateway-controller' },
  });
  const gateway = (name: string, of: string): ObjectToWrite => ({
    metadata: { name, namespace: of },
    spec: { gatewayClassName: ownNamespace, listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }] },
  });
  await cluster.create(gateways, gateway('flooded', mallory));
  const flood = Array.from({ length: 300 }, (_, i) => i).values();
  const creating = async (): Promise<void> => {
    for (const i of flood) {
      const { metadata, ...rest } = route(`flood-${i}`, 'nothing', 'flooded');
      await cluster.create(routes, { metadata: { ...metadata, namespace: mallory }, ...rest });
    }
  };
  await Promise.all(Array.from({ length: 8 }, creating));
  const { duty } = await leading(gatewayDerivation, { namespaces: [mallory, cluster.namespace], responseDelayMs: 100 });
  await eventually('statuses are being written', () => duty.counts.written > 8);
  await cluster.create(gateways, gateway('bank', cluster.namespace));
  await eventually('the other Gateway has its status', async () => {
    const { status } = await read(gateways, 'bank');
    return shortConditions(status?.conditions).some((one) => one.startsWith('Accepted True'));
  });
  expect(duty.counts.written).toBeLessThan(250);
});

describe("Ingresses of the control plane's class", () => {
  it('get the address of the gateway, and their status write is no configuration change', async () => {
    const settings = { ...defaultMeshConfig, ingressService: 'gate' };
    const backend = { service: { name: 'cart', port: { number: 80 } } };
    const ingress = (name: string, of: string): ObjectToWrite => ({
      metadata: { name, annotations: { 'kubernetes.io/ingress.class': of } },
      spec: { defaultBackend: backend },
    });
    await cluster.apply(ingresses, ingress('ours', 'istio'));
    await cluster.apply(ingresses, ingress('theirs', 'other'));
    const balanced = { metadata: { name: 'gate' }, spec: { type: 'LoadBalancer', ports: [{ port: 80 }] } };
    await cluster.apply(of.services, balanced);
    const { moved } = await leading(
      (objects, onChanged) =>
        new IngressDerivation({
          objects,
          onChanged,
          settings: () => settings,
          namespace: cluster.namespace,
          isWritten: () => true,
        }),
    );
    const assign = (ip: string) =>
      cluster.apply(
        of.services,
        { metadata: { name: 'gate' }, status: { loadBalancer: { ingress: [{ ip }] } } },
        'status',
      );
    for (const ip of ['192.0.2.8', '192.0.2.9']) {
      await assign(ip);
      await eventually('the Ingress says it', async () => {
        const { status } = await read(ingresses, 'ours');
        return (
          JSON.stringify(status?.loadBalancer?.ingress) === JSON.stringify([{ ip, ipMode: 'VIP' }]) ||
          JSON.stringify(status?.loadBalancer?.ingress) === JSON.stringify([{ ip }])
        );
      });
    }
    expect((await read(ingresses, 'theirs')).status?.loadBalancer).toEqual({});
    moved.splice(0);
    await cluster.patch(ingresses, 'ours', { status: { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } } }, 'status');
    await cluster.patch(ingresses, 'ours', { metadata: { labels: { now: 'another' } } });
    await eventually('the label was seen', () => moved.length > 0);
    expect(moved).toEqual(['Ingress']);
  });
});
