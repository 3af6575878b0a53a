import { describe, expect, it } from 'vitest';
import { document, service, setOf } from '../../../../test/fixtures/given-objects.ts';
import type { ConfigSet } from '../../../model/config/config-set.ts';
import type { KindName } from '../../../model/kinds/index.ts';
import { defaultMeshConfig } from '../../../model/mesh/mesh-config.ts';
import { silentLogger } from '../../../runtime/output/log.ts';
import { WriteGate } from '../../election/write-gate.ts';
import { resourceOf } from '../../kubernetes/api-resource.ts';
import type { ApiRequest, KubernetesObject } from '../../kubernetes/api-server.ts';
import { DeploymentFailures } from '../gateways/deployment-failures.ts';
import { DerivedStatusDuty, type StatusDerivation } from './derived-status.ts';
import { GatewayApiDerivation } from './gateway-api-derivation.ts';
import { IngressDerivation } from './ingress-derivation.ts';
import type { StatusFields } from './status-writer.ts';

const clockReading = { monotonicMs: 0, wallMs: 0 };
const first = { retry: false, includesAll: false };
const time = '2026-11-27T12:00:00Z';

/** A duty that records the last written status of each object. */
function createDuty(
  derivationOf: (objects: () => ConfigSet, onChanged: StatusDerivation['onChanged']) => StatusDerivation,
) {
  const statuses = new Map<string, unknown>();
  const writtenKeys: string[] = [];
  let wrote = (_count: number): void => {};
  const request = async ({ method, resource, name = '', body }: ApiRequest): Promise<KubernetesObject> => {
    const key = `${resource.kind}/${name}`;
    if (method === 'PUT') {
      statuses.set(key, (body as KubernetesObject).status);
      writtenKeys.push(key);
      wrote(writtenKeys.length);
    }
    return { metadata: { name, resourceVersion: '1', generation: 2 }, status: statuses.get(key) };
  };
  const gate = new WriteGate({ server: { request }, now: () => clockReading, writeMs: 1_000 });
  gate.extend(clockReading, 10_000);
  const clock = { now: 0 };
  const timers: { at: number; callback: () => void }[] = [];
  let objects = setOf('');
  let notifyChanged = (): void => {};
  const duty = new DerivedStatusDuty({
    ...{ lease: 'test', server: { request }, log: silentLogger, now: () => clock.now, time: () => time },
    resourceOf: (kind) => resourceOf(kind as KindName),
    derivation: derivationOf(
      () => objects,
      (listener) => {
        notifyChanged = listener;
        return () => {};
      },
    ),
    schedule: (ms, callback) => {
      const timer = { at: clock.now + ms, callback };
      timers.push(timer);
      return () => timers.splice(timers.indexOf(timer), 1);
    },
  });
  const put = (next: ConfigSet): void => {
    objects = next;
    notifyChanged();
  };
  const onWrite = (listener: typeof wrote): void => {
    wrote = listener;
  };
  return { duty, gate, statuses, written: writtenKeys, clock, timers, put, onWrite };
}

const gatewayDerivation = (objects: () => ConfigSet, onChanged: StatusDerivation['onChanged']): StatusDerivation =>
  new GatewayApiDerivation({
    ...{ objects, onChanged, domain: 'cluster.local', revision: '', failures: new DeploymentFailures() },
    isWritten: () => true,
  });

const front = document(
  'Gateway',
  'front',
  '{gatewayClassName: istio, listeners: [{name: a, port: 80, protocol: HTTP}]}',
);
const cart = service('cart');
const route = (name: string, backend = 'cart'): string =>
  document('HTTPRoute', name, `{parentRefs: [{name: front}], rules: [{backendRefs: [{name: ${backend}, port: 80}]}]}`);

describe('the status of a Gateway that cannot be deployed', () => {
  it("is not programmed and contains the API server's message until the Gateway is deployed", async () => {
    const failures = new DeploymentFailures();
    const { duty, gate, written, statuses, put } = createDuty(
      (objects, onChanged) =>
        new GatewayApiDerivation({
          ...{ objects, onChanged, domain: 'cluster.local', revision: '', failures, isWritten: () => true },
        }),
    );
    const programmed = (): unknown =>
      (statuses.get('Gateway/front') as { conditions: { type: string }[] }).conditions.find(
        ({ type }) => type === 'Programmed',
      );
    put(
      setOf(
        front +
          cart +
          document('Gateway', 'back', '{gatewayClassName: istio, listeners: [{name: a, port: 80, protocol: HTTP}]}'),
      ),
    );
    await duty.writeDue(first, gate);
    const statusBefore = programmed();
    written.splice(0);
    failures.set('shop/front', { reason: 'NoResources', message: 'exceeded quota: few' });
    expect(duty.isDue).toBe(true);
    await duty.writeDue({ retry: false, includesAll: false }, gate);
    expect(written.splice(0)).toEqual(['Gateway/front']);
    expect(programmed()).toMatchObject({ status: 'False', reason: 'NoResources', message: 'exceeded quota: few' });
    failures.delete('shop/front');
    await duty.writeDue({ retry: false, includesAll: false }, gate);
    expect(programmed()).toEqual(statusBefore);
  });
});

describe('the leader', () => {
  it('writes all statuses at first, and then only changed ones', async () => {
    const { duty, gate, written, put } = createDuty(gatewayDerivation);
    put(setOf(front + cart + route('one') + route('two')));
    expect(duty.isDue).toBe(true);
    expect(await duty.writeDue(first, gate)).toEqual({ writtenCount: 3, failedCount: 0, reason: '' });
    expect(written.splice(0).sort()).toEqual(['Gateway/front', 'HTTPRoute/one', 'HTTPRoute/two']);
    expect(duty.isDue).toBe(false);
    put(setOf(front + cart + route('one') + route('two', 'no')));
    await duty.writeDue(first, gate);
    expect(written).toEqual(['HTTPRoute/two']);
  });

  it('writes the status of a recreated object even if only the uid of the object differs', async () => {
    const { duty, gate, written, statuses, put } = createDuty(gatewayDerivation);
    const routeWithUid = (uid: string): ConfigSet =>
      setOf(route('one').replace('namespace', `uid: ${uid}, generation: 2, namespace`) + front + cart);
    put(routeWithUid('a'));
    await duty.writeDue(first, gate);
    written.splice(0);
    statuses.delete('HTTPRoute/one');
    put(routeWithUid('b'));
    await duty.writeDue(first, gate);
    expect(written).toEqual(['HTTPRoute/one']);
  });

  it('derives nothing if no object changed', async () => {
    const { duty, gate, put } = createDuty(gatewayDerivation);
    const objects = setOf(front + cart);
    put(objects);
    await duty.writeDue(first, gate);
    put({ ...objects, VirtualService: [] });
    expect(duty.isDue).toBe(false);
    await duty.writeDue({ retry: true, includesAll: true }, gate);
    expect(duty.derivations).toBe(1);
  });

  it('writes changed route counts of an object at a limited rate', async () => {
    const { duty, gate, written, statuses, clock, timers, put } = createDuty(gatewayDerivation);
    put(setOf(front + cart + route('one')));
    duty.watch(() => {});
    await duty.writeDue(first, gate);
    written.splice(0);
    for (const name of ['two', 'three']) {
      clock.now += 100;
      put(setOf(front + cart + route('one') + route(name)));
      await duty.writeDue(first, gate);
    }
    expect(written).toEqual(['HTTPRoute/two', 'HTTPRoute/three']);
    clock.now = Math.max(...timers.map(({ at }) => at));
    await duty.writeDue(first, gate);
    expect(written.at(-1)).toBe('Gateway/front');
    expect(statuses.get('Gateway/front')).toMatchObject({ listeners: [{ attachedRoutes: 2 }] });
  });
});

describe('a follower', () => {
  it('derives no status', async () => {
    const { duty, gate, put } = createDuty(gatewayDerivation);
    put(setOf(front + cart + route('one')));
    gate.close({ giveUp: false });
    await duty.writeDue(first, gate);
    expect([duty.derivations, duty.isDue]).toEqual([0, true]);
  });
});

it("a namespace with 2,000 routes delays another namespace's Gateway status only by the writes in progress", async () => {
  const { duty, gate, written, put, onWrite } = createDuty(gatewayDerivation);
  const flood = Array.from({ length: 2_000 }, (_, i) => route(`flood-${i}`));
  const statusBefore = front + cart + flood.join('');
  put(setOf(statusBefore));
  const listeners = '[{name: a, port: 80, protocol: HTTP}]';
  const bank = document('Gateway', 'bank', `{gatewayClassName: istio, listeners: ${listeners}}`, { namespace: 'bank' });
  onWrite((count) => {
    if (count === 100) put(setOf(statusBefore + bank));
  });
  while (duty.isDue && !written.includes('Gateway/bank')) await duty.writeDue(first, gate);
  expect(written.indexOf('Gateway/bank')).toBeGreaterThan(99);
  // Eight writes were in progress when the Gateway was added.
  expect(written.indexOf('Gateway/bank')).toBeLessThanOrEqual(100 + 16);
});

it('each derivation is followed by a delay of four times its duration', async () => {
  let inputs = {};
  const { duty, gate, clock, timers, put } = createDuty((_, onChanged) => ({
    inputs: () => [inputs],
    onChanged,
    derive: async () => {
      clock.now += 100;
      return new Map();
    },
  }));
  let notifications = 0;
  duty.watch(() => {
    notifications++;
  });
  await duty.writeDue(first, gate);
  inputs = {};
  put(setOf(''));
  expect([notifications, duty.isDue, timers.map(({ at }) => at)]).toEqual([1, false, [500]]);
  await duty.writeDue(first, gate);
  expect(duty.derivations).toBe(1);
  clock.now = 500;
  timers[0]!.callback();
  expect([notifications, duty.isDue]).toEqual([2, true]);
  await duty.writeDue(first, gate);
  expect(duty.derivations).toBe(2);
});

it('changes during a derivation are derived after the delay', async () => {
  let inputs = {};
  const { duty, gate, clock, timers, put } = createDuty((_, onChanged) => ({
    inputs: () => [inputs],
    onChanged,
    derive: async () => {
      clock.now += 100;
      if (clock.now === 100) {
        inputs = {};
        put(setOf(''));
      }
      return new Map();
    },
  }));
  let notifications = 0;
  duty.watch(() => {
    notifications++;
  });
  await duty.writeDue(first, gate);
  notifications = 0;
  expect([duty.isDue, timers.length]).toEqual([false, 1]);
  clock.now = timers[0]!.at;
  timers[0]!.callback();
  expect([notifications, duty.isDue]).toEqual([1, true]);
});

describe("a route's status", () => {
  const foreignParent = { controllerName: 'example.com/other', parentRef: { name: 'front' }, conditions: 'anything' };
  const ownParent = (name: string, extraFields: object = {}): object => ({
    ...{ controllerName: 'istio.io/gateway-controller', parentRef: { name }, conditions: [], ...extraFields },
  });

  async function statusAfter(present: unknown, yaml: string): Promise<unknown> {
    const { duty, gate, statuses, put } = createDuty(gatewayDerivation);
    statuses.set('HTTPRoute/one', present);
    put(setOf(yaml));
    await duty.writeDue(first, gate);
    return statuses.get('HTTPRoute/one');
  }
  const all = front + cart + route('one');
  const namesOf = (status: unknown): string[] =>
    (status as { parents: { controllerName?: string; parentRef?: { name: string } }[] }).parents.map(
      (one) => `${one.controllerName?.split('/')[0]} ${one.parentRef?.name}`,
    );

  it('keeps entries of other controllers in place, and removes its own entries for former parents', async () => {
    const status = await statusAfter(
      { parents: [ownParent('gone'), foreignParent, ownParent('front'), 'strange', foreignParent] },
      all,
    );
    expect((status as { parents: unknown[] }).parents).toEqual([
      foreignParent,
      ownParent('front', {
        conditions: [
          expect.objectContaining({ type: 'Accepted', status: 'True', lastTransitionTime: time }),
          expect.objectContaining({ type: 'ResolvedRefs', status: 'True' }),
        ],
      }),
      'strange',
      foreignParent,
    ]);
  });

  it('is not written if nothing changes', async () => {
    const yaml = document('HTTPRoute', 'one', '{parentRefs: [{name: elsewhere}]}');
    expect(await statusAfter(undefined, yaml)).toBeUndefined();
    expect(await statusAfter({ parents: [foreignParent] }, yaml)).toEqual({ parents: [foreignParent] });
    expect(namesOf(await statusAfter({ parents: [foreignParent, ownParent('front')] }, yaml))).toEqual([
      'example.com front',
    ]);
  });

  it('keeps an entry about a newer generation of the route', async () => {
    const laterParent = ownParent('gone', { conditions: [{ type: 'Accepted', observedGeneration: 3 }] });
    const earlierParent = ownParent('gone', { conditions: [{ type: 'Accepted', observedGeneration: 1 }] });
    const secondGeneration = all.replaceAll(
      '{name: one, namespace: shop}',
      '{name: one, namespace: shop, generation: 2}',
    );
    expect(namesOf(await statusAfter({ parents: [earlierParent] }, secondGeneration))).toEqual(['istio.io front']);
    expect(namesOf(await statusAfter({ parents: [laterParent] }, secondGeneration))).toEqual([
      'istio.io gone',
      'istio.io front',
    ]);
  });

  it('loses PartiallyInvalid when it no longer applies', async () => {
    const expectedStatus = { type: 'PartiallyInvalid', status: 'True', reason: 'UnsupportedValue' };
    const status = await statusAfter({ parents: [ownParent('front', { conditions: [expectedStatus] })] }, all);
    expect(JSON.stringify(status)).not.toContain('PartiallyInvalid');
  });

  it('matches a parent that omits fields with API defaults', async () => {
    const filled = { group: 'gateway.networking.k8s.io', kind: 'Gateway', namespace: 'shop', name: 'front' };
    expect(namesOf(await statusAfter({ parents: [ownParent('x', { parentRef: filled })] }, all))).toEqual([
      'istio.io front',
    ]);
  });

  it.each(['text', { parents: 'none' }, { parents: Array(10_000).fill(ownParent('old')) }])(
    'is restored after another writer changes it',
    async (present) => {
      expect(namesOf(await statusAfter(present, all))).toEqual(['istio.io front']);
    },
  );
});

describe("an Ingress's status", () => {
  const ingress = (name: string, extraMetadata = ''): string =>
    `---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: ${name}, namespace: shop${extraMetadata}}\nspec: {defaultBackend: {service: {name: cart, port: {number: 80}}}}\n`;
  const istioClass = ', annotations: {kubernetes.io/ingress.class: istio}';
  const edge = (fields: string): string =>
    `---\napiVersion: v1\nkind: Service\nmetadata: {name: istio-ingressgateway, namespace: istio-system}\nspec: {clusterIP: 10.1.0.9, ports: [{port: 80}], ${fields}}\n`;
  const balanced = edge('type: LoadBalancer}\nstatus: {loadBalancer: {ingress: [{ip: 192.0.2.7}, {hostname: a.test}]}');

  async function statusAfter(
    yaml: string,
    present: Record<string, unknown> = {},
    settings: object = {},
  ): Promise<StatusFields> {
    const { duty, gate, statuses, put } = createDuty(
      (objects, onChanged) =>
        new IngressDerivation({
          ...{ objects, onChanged, namespace: 'istio-system', isWritten: () => true },
          settings: () => ({ ...defaultMeshConfig, ...settings }),
        }),
    );
    for (const [name, status] of Object.entries(present)) statuses.set(`Ingress/${name}`, status);
    put(setOf(yaml));
    await duty.writeDue(first, gate);
    return Object.fromEntries(statuses);
  }

  it("contains the addresses of the gateway's Service if the Ingress has this class", async () => {
    expect(await statusAfter(balanced + ingress('one', istioClass) + ingress('two'))).toEqual({
      'Ingress/one': { loadBalancer: { ingress: [{ ip: '192.0.2.7' }, { hostname: 'a.test' }] } },
    });
    const bothIngresses = await statusAfter(
      balanced + ingress('one', istioClass) + ingress('two'),
      {},
      { ingressControllerMode: 'DEFAULT' },
    );
    expect(Object.keys(bothIngresses)).toEqual(['Ingress/one', 'Ingress/two']);
    expect(await statusAfter(balanced + ingress('one', istioClass), {}, { ingressControllerMode: 'OFF' })).toEqual({});
  });

  it.each<[string, string, object, unknown]>([
    ['an external name', edge('type: ExternalName, externalName: far.test'), {}, [{ hostname: 'far.test' }]],
    ['external addresses', edge('externalIPs: [192.0.2.9, 192.0.2.8]'), {}, [{ ip: '192.0.2.8' }, { ip: '192.0.2.9' }]],
    ['no address', edge('type: LoadBalancer'), {}, undefined],
    ['no Service', '', {}, undefined],
  ])('contains %s', async (_, yaml, settings, expected) => {
    const status = await statusAfter(
      yaml + ingress('one', istioClass),
      { one: { loadBalancer: { ingress: [{ ip: '1.1.1.1' }] } } },
      settings,
    );
    expect(status['Ingress/one']).toEqual({ loadBalancer: expected === undefined ? {} : { ingress: expected } });
  });

  it('contains the nodes of the gateway pods if no Service is configured', async () => {
    const pod = (name: string, phase: string, node: string): string =>
      `---\napiVersion: v1\nkind: Pod\nmetadata: {name: ${name}, namespace: istio-system, labels: {istio: ingressgateway}}\nspec: {nodeName: ${node}}\nstatus: {phase: ${phase}}\n`;
    const node = (name: string, address: string): string =>
      `---\napiVersion: v1\nkind: Node\nmetadata: {name: ${name}}\nstatus: {addresses: [{type: InternalIP, address: 10.0.0.1}, {type: ExternalIP, address: ${address}}]}\n`;
    const nodes = node('n1', '192.0.2.1') + node('n2', '192.0.2.2');
    const yaml = pod('a', 'Running', 'n1') + pod('b', 'Pending', 'n2') + nodes + ingress('one', istioClass);
    expect((await statusAfter(yaml, {}, { ingressService: '' }))['Ingress/one']).toEqual({
      loadBalancer: { ingress: [{ ip: '192.0.2.1' }] },
    });
  });

  it('is not written if the existing status has the same content and additional fields', async () => {
    const expectedStatus = {
      loadBalancer: { ingress: [{ ip: '192.0.2.7', ports: [] }, { hostname: 'a.test' }] },
      more: 1,
    };
    const edgeWithStatus = edge(
      'type: LoadBalancer}\nstatus: {loadBalancer: {ingress: [{hostname: a.test}, {ip: 192.0.2.7}]}',
    );
    expect(
      (await statusAfter(edgeWithStatus + ingress('one', istioClass), { one: expectedStatus }))['Ingress/one'],
    ).toEqual(expectedStatus);
  });

  it.each(['text', { loadBalancer: 'none' }, { loadBalancer: { ingress: Array(10_000).fill('x') } }])(
    'is restored after another writer changes it',
    async (present) => {
      const status = (await statusAfter(balanced + ingress('one', istioClass), { one: present }))['Ingress/one'];
      expect(status).toMatchObject({ loadBalancer: { ingress: { length: 2 } } });
    },
  );
});

it('a failed derivation is retried after a change and the usual delay', async () => {
  let derivations = 0;
  const { duty, gate, clock, put } = createDuty((objects, onChanged) => ({
    inputs: () => [objects()],
    derive: async () => {
      derivations++;
      clock.now += 100;
      throw new Error('a bug');
    },
    onChanged,
  }));
  await duty.writeDue(first, gate);
  for (let i = 0; i < 3; i++) {
    clock.now += 100;
    put(setOf(''));
    await duty.writeDue(first, gate);
  }
  expect(derivations).toBe(1);
  clock.now += 100;
  expect(duty.isDue).toBe(true);
  await duty.writeDue(first, gate);
  expect(derivations).toBe(2);
});
