import * as E from 'fp-ts/lib/Either.js';
import { expect, it, vi } from 'vitest';
import type { SidecarInjector } from '../../../injection/injector.ts';
import { defaultInjectionConfig, defaultInjectionValues } from '../../../injection/settings.ts';
import { defaultMeshConfig } from '../../../model/mesh/mesh-config.ts';
import { defaultProxyConfig } from '../../../model/mesh/proxy-config.ts';
import { WriteGate } from '../../election/write-gate.ts';
import { ApiError } from '../../kubernetes/api-failure.ts';
import { resourceOf } from '../../kubernetes/api-resource.ts';
import { nameOf } from '../../kubernetes/api-server.effects.ts';
import type { ApiRequest, KubernetesObject } from '../../kubernetes/api-server.ts';
import { ObjectStore } from '../../kubernetes/store/object-store.ts';
import { DeploymentFailures } from './deployment-failures.ts';
import { GatewayDeployments } from './gateway-deployments.ts';

const clockReading = { monotonicMs: 0, wallMs: 0 };
const injector: SidecarInjector = {
  settings: {
    config: defaultInjectionConfig,
    values: { ...defaultInjectionValues, hub: 'example.com', tag: '1' },
    revision: '',
  },
  mesh: defaultMeshConfig,
  proxyConfigFor: () => defaultProxyConfig,
};

/** An API server that stores applied objects. */
function createDuty() {
  const stores = new Map<string, ObjectStore>();
  const storeOf = (resource: Parameters<typeof nameOf>[0]): ObjectStore => {
    const store = stores.get(nameOf(resource)) ?? new ObjectStore();
    stores.set(nameOf(resource), store);
    return store;
  };
  const readers = new Map<string, (changes: readonly never[]) => void>();
  const live = new Map<string, KubernetesObject>();
  const reportedObjects: KubernetesObject[] = [];
  const writes: string[] = [];
  let version = 0;
  const placeOf = ({ resource, namespace, name }: ApiRequest): string => `${resource.plural}/${namespace}/${name}`;
  const refusals = new Map<string, { readonly code: number; readonly message: string }>();
  const request = async (apiRequest: ApiRequest): Promise<KubernetesObject> => {
    const objectPath = placeOf(apiRequest);
    const present = live.get(objectPath);
    if (apiRequest.method === 'GET') {
      if (present !== undefined) return present;
      throw new ApiError({ kind: 'status', code: 404, message: 'not found', causes: [] } as never);
    }
    const body = apiRequest.body as KubernetesObject;
    if (apiRequest.method === 'POST') {
      reportedObjects.push(body);
      return body;
    }
    expect([apiRequest.method, apiRequest.patch, apiRequest.query?.fieldManager]).toEqual([
      'PATCH',
      'apply',
      'chartpilot-gateways',
    ]);
    expect(body.metadata.resourceVersion).toBe(present?.metadata.resourceVersion);
    const refusal = refusals.get(apiRequest.resource.plural);
    if (refusal !== undefined)
      throw new ApiError({ kind: 'status', code: refusal.code, message: refusal.message, causes: [] } as never);
    writes.push(`${objectPath} force=${apiRequest.query?.force}`);
    const appliedObject = { ...body, metadata: { ...body.metadata, resourceVersion: `${++version}` } };
    live.set(objectPath, appliedObject);
    return appliedObject;
  };
  const gate = new WriteGate({ server: { request }, now: () => clockReading, writeMs: 1_000 });
  gate.extend(clockReading, 10_000);
  const settings = { current: E.right(injector) as E.Either<string, SidecarInjector>, changed: (): void => {} };
  const failures = new DeploymentFailures();
  const duty = new GatewayDeployments({
    ...{ lease: 'test', revision: '', server: { request }, identity: 'replica', failures },
    injector: () => settings.current,
    onInjector: (listener) => {
      settings.changed = listener;
    },
    informers: {
      storeOf,
      servedResource: (resource) => resource as never,
      addReader: (resource, reader) => void readers.set(nameOf(resource), reader as never),
    },
  });
  const set = (
    kind: 'KubernetesGateway' | 'GatewayClass' | 'Service',
    object: { readonly metadata: object; readonly spec: object },
    type: 'ADDED' | 'MODIFIED' | 'DELETED' = 'ADDED',
  ): void => {
    const namespace = kind === 'GatewayClass' ? {} : { namespace: 'shop' };
    const metadata = { name: 'front', uid: 'u1', resourceVersion: `${++version}`, ...namespace, ...object.metadata };
    const wholeObject = { apiVersion: 'gateway.networking.k8s.io/v1', ...object, metadata };
    const resource = resourceOf(kind);
    readers.get(nameOf(resource))!(storeOf(resource).apply({ type, object: wholeObject }) as never);
  };
  const run = (includesAll = false) => duty.writeDue({ retry: true, includesAll }, gate);
  return {
    duty,
    set,
    run,
    live,
    settings,
    failures,
    refusals,
    written: () => writes.splice(0),
    reported: () => reportedObjects.splice(0),
  };
}

const listeners = [{ name: 'http', port: 80, protocol: 'HTTP' }];
const front = (spec: object = {}, metadata: object = {}) => ({
  metadata,
  spec: { gatewayClassName: 'istio', listeners, ...spec },
});
const createdPaths = ['serviceaccounts', 'services', 'deployments'].map(
  (plural) => `${plural}/shop/front-istio force=false`,
);

it('a Gateway of class istio is deployed once, and its unchanged objects are not written again', async () => {
  const { set, run, written, duty } = createDuty();
  set('KubernetesGateway', front());
  expect(await run()).toEqual({ writtenCount: 1, failedCount: 0, reason: '' });
  expect(written()).toEqual(createdPaths);
  set('KubernetesGateway', front({}, { labels: { a: 'b' } }), 'MODIFIED');
  expect(duty.isDue).toBe(true);
  expect(await run()).toEqual({ writtenCount: 0, failedCount: 0, reason: '' });
  expect(written()).toEqual([]);
});

it('a Gateway is deployed again when it, its objects or the injector settings change', async () => {
  const { set, run, written, live, settings } = createDuty();
  set('KubernetesGateway', front());
  await run();
  written();
  set('KubernetesGateway', front({ listeners: [{ name: 'a', port: 81, protocol: 'HTTP' }] }), 'MODIFIED');
  await run();
  expect(written()).toEqual(['services/shop/front-istio force=true']);
  const service = live.get('services/shop/front-istio')!;
  live.set('services/shop/front-istio', { ...service, spec: { type: 'ClusterIP' } });
  set('Service', { metadata: { ...service.metadata, uid: 'u2' }, spec: {} });
  await run();
  expect(written()).toEqual(['services/shop/front-istio force=true']);
  const values = { ...injector.settings.values, tag: '2' };
  settings.current = E.right({ ...injector, settings: { ...injector.settings, values } });
  settings.changed();
  await run();
  expect(written()).toEqual(['deployments/shop/front-istio force=true']);
});

it('an object that has the same name but does not belong to the Gateway is never changed, and the failure names the object', async () => {
  const { set, run, written, live } = createDuty();
  const foreignObject = { metadata: { name: 'front-istio', resourceVersion: '1', ownerReferences: [{ uid: 'u9' }] } };
  live.set('deployments/shop/front-istio', foreignObject as never);
  live.set('services/shop/front-istio', { metadata: { name: 'front-istio', resourceVersion: '1' } });
  set('KubernetesGateway', front());
  expect(await run()).toMatchObject({
    failedCount: 1,
    reason: expect.stringContaining('Service shop/front-istio exists'),
  });
  live.delete('services/shop/front-istio');
  expect(await run()).toMatchObject({ failedCount: 1, reason: expect.stringContaining('Deployment shop/front-istio') });
  expect(live.get('deployments/shop/front-istio')).toBe(foreignObject);
  expect(written().filter((objectPath) => objectPath.startsWith('deployments'))).toEqual([]);
});

it.each([
  ['of another class', { gatewayClassName: 'other' }, {}],
  ['of another revision', {}, { labels: { 'istio.io/rev': 'canary' } }],
  ['with addresses of existing Services', { addresses: [{ type: 'Hostname', value: 'edge' }] }, {}],
  ['that is being deleted', {}, { deletionTimestamp: '2026-01-01T00:00:00Z' }],
])('a Gateway %s is not deployed', async (_, spec, metadata) => {
  const { set, run, written } = createDuty();
  set('KubernetesGateway', front(spec, metadata));
  expect(await run(true)).toEqual({ writtenCount: 0, failedCount: 0, reason: '' });
  expect(written()).toEqual([]);
});

it('a Gateway is not deployed if an existing Service selects its pods', async () => {
  const { set, run, written } = createDuty();
  const spec = { selector: { 'gateway.networking.k8s.io/gateway-name': 'front' } };
  set('Service', { metadata: { name: 'edge', uid: 'u2' }, spec });
  set('KubernetesGateway', front());
  await run();
  expect(written()).toEqual([]);
  set('Service', { metadata: { name: 'edge', uid: 'u2' }, spec }, 'DELETED');
  await run(true);
  expect(written()).toEqual(createdPaths);
});

it('a Gateway is deployed if its class names this controller', async () => {
  const { set, run, written } = createDuty();
  set('KubernetesGateway', front({ gatewayClassName: 'edge' }));
  await run();
  expect(written()).toEqual([]);
  set('GatewayClass', {
    metadata: { name: 'edge', uid: 'u2' },
    spec: { controllerName: 'istio.io/gateway-controller' },
  });
  await run();
  expect(written()).toEqual(createdPaths.map((objectPath) => objectPath.replace('front-istio', 'front-edge')));
});

it('a Gateway is deployed as soon as the injector settings are available', async () => {
  const { set, run, written, settings, duty } = createDuty();
  settings.current = E.left('there is no ConfigMap istio-system/istio-sidecar-injector');
  set('KubernetesGateway', front());
  expect(await run()).toEqual({ writtenCount: 0, failedCount: 0, reason: '' });
  settings.current = E.right(injector);
  settings.changed();
  expect(duty.isDue).toBe(true);
  await run();
  expect(written()).toEqual(createdPaths);
});

it('a Gateway uses the ConfigMap in parametersRef, and is not deployed if the ConfigMap is missing', async () => {
  const { set, run, written, live } = createDuty();
  set(
    'KubernetesGateway',
    front({ infrastructure: { parametersRef: { group: '', kind: 'ConfigMap', name: 'size' } } }),
  );
  expect(await run()).toMatchObject({ failedCount: 1, reason: expect.stringContaining('no ConfigMap shop/size') });
  expect(written()).toEqual([]);
  live.set('configmaps/shop/size', { metadata: { name: 'size' }, data: { deployment: 'spec: {replicas: 2}' } });
  expect(await run()).toMatchObject({ writtenCount: 1, failedCount: 0 });
  expect(live.get('deployments/shop/front-istio')?.spec).toMatchObject({ replicas: 2 });
  live.set('configmaps/shop/size', { metadata: { name: 'size' }, data: { deployment: '[]' } });
  expect(await run(true)).toMatchObject({
    failedCount: 1,
    reason: expect.stringContaining('parametersRef.deployment'),
  });
});

it("a failure that the Gateway's owner can correct is reported as an Event, and again when the reason changes", async () => {
  const { set, run, reported } = createDuty();
  const gatewayWithType = (type: string) => front({}, { annotations: { 'networking.istio.io/service-type': type } });
  set('KubernetesGateway', gatewayWithType('Cloud'));
  expect(await run()).toMatchObject({ failedCount: 1 });
  expect(await run()).toMatchObject({ failedCount: 1 });
  expect(reported()).toMatchObject([
    {
      type: 'Warning',
      reason: 'GatewayNotDeployed',
      involvedObject: { kind: 'Gateway', namespace: 'shop', name: 'front', uid: 'u1' },
      message: expect.stringContaining('networking.istio.io/service-type'),
    },
  ]);
  set('KubernetesGateway', gatewayWithType('Other'), 'MODIFIED');
  await run();
  expect(reported()).toHaveLength(1);
  set('KubernetesGateway', front(), 'MODIFIED');
  expect(await run()).toMatchObject({ failedCount: 0 });
  expect(reported()).toEqual([]);
});

it.each([
  [403, 'exceeded quota: few', 'NoResources'],
  [403, 'deployments.apps is forbidden', 'DeploymentFailed'],
  [422, 'spec: Invalid value', 'DeploymentFailed'],
])(
  "a response with %i (%s) is reported as a failure in the Gateway's status until the Gateway is deployed",
  async (code, message, reason) => {
    const { set, run, failures, refusals, written } = createDuty();
    refusals.set('deployments', { code, message });
    set('KubernetesGateway', front());
    expect(await run()).toMatchObject({ failedCount: 1 });
    expect([...failures.failuresByGateway]).toEqual([
      ['shop/front', { reason, message: expect.stringContaining(message) }],
    ]);
    refusals.clear();
    written();
    expect(await run()).toMatchObject({ failedCount: 0 });
    expect(written()).toEqual([createdPaths[2]]);
    expect(failures.failuresByGateway.size).toBe(0);
  },
);

it.each([409, 500, 503])("a response with %i is retried without a failure in the Gateway's status", async (code) => {
  const { set, run, failures, refusals } = createDuty();
  refusals.set('deployments', { code, message: 'later' });
  set('KubernetesGateway', front());
  expect(await run()).toMatchObject({ failedCount: 1 });
  expect(failures.failuresByGateway.size).toBe(0);
});

it('a failure is removed with its Gateway, and all failures are removed at the start of a term', async () => {
  const { set, run, failures } = createDuty();
  set(
    'KubernetesGateway',
    front({ infrastructure: { parametersRef: { group: '', kind: 'ConfigMap', name: 'none' } } }),
  );
  await run();
  expect([...failures.failuresByGateway.values()]).toMatchObject([{ reason: 'Invalid' }]);
  set('KubernetesGateway', front(), 'DELETED');
  expect(failures.failuresByGateway.size).toBe(0);
  failures.set('shop/other', { reason: 'Invalid', message: 'of another term' });
  await run(true);
  expect(failures.failuresByGateway.size).toBe(0);
});

it('the leader periodically compares each Gateway with its objects', async () => {
  vi.useFakeTimers();
  try {
    const { set, run, duty, live, written } = createDuty();
    set('KubernetesGateway', front());
    await run();
    written();
    const deploymentPath = 'deployments/shop/front-istio';
    live.set(deploymentPath, { ...live.get(deploymentPath)!, spec: { replicas: 7 } } as never);
    const unwatch = duty.watch(() => {});
    expect(duty.isDue).toBe(false);
    vi.advanceTimersByTime(30_000);
    expect(duty.isDue).toBe(true);
    await run();
    expect(written()).toEqual([`${deploymentPath} force=true`]);
    unwatch();
    vi.advanceTimersByTime(300_000);
    expect(duty.isDue).toBe(false);
  } finally {
    vi.useRealTimers();
  }
});
