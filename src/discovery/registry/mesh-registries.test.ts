import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { givenProxy } from '../../../test/fixtures/given-mesh.ts';
import { type Config, configKeyText } from '../../model/config/config.ts';
import { configSetOf } from '../../model/config/config-set.ts';
import {
  buildServiceRegistry,
  defaultRegistryOptions,
  type RegistryOptions,
  type ServiceRegistry,
} from '../../model/services/service-registry.ts';
import type { FollowedObjects } from './followed-objects.ts';
import { type ChangedConfigObject, MeshRegistries } from './mesh-registries.ts';

const object = (
  kind: string,
  namespace: string,
  name: string,
  spec: unknown,
  overrides: Partial<Config> = {},
): Config => ({
  ...{ kind, apiVersion: 'v1', name, namespace, labels: {}, annotations: {}, resourceVersion: '1' },
  ...{ creationTimestamp: 0, spec },
  ...overrides,
});

const label = fc.constantFrom('a', 'b');
const labels = fc.record({ app: label });
const name = fc.constantFrom('one', 'two', 'three');
const namespace = fc.constantFrom('shop', 'bank');
const address = fc.integer({ min: 1, max: 6 }).map((octet) => `10.0.0.${octet}`);

const kubernetesPort = { name: 'http', port: 80, protocol: 'TCP', targetPort: 'web' };

const service = fc.record({ namespace, name, app: fc.option(label), headless: fc.boolean() }).map((fields) =>
  object('Service', fields.namespace, fields.name, {
    spec: {
      ...{
        type: 'ClusterIP',
        clusterIP: fields.headless ? 'None' : '10.9.9.9',
        clusterIPs: [],
        ports: [kubernetesPort],
      },
      ...{ externalName: '', externalIPs: [], internalTrafficPolicy: 'Cluster', publishNotReadyAddresses: false },
      ...(fields.app !== null && { selector: { app: fields.app } }),
    },
    status: { loadBalancer: { ingress: [] } },
  }),
);

const slice = fc
  .record({ namespace, name, service: name, addresses: fc.array(address), pod: fc.option(name), ready: fc.boolean() })
  .map((fields) =>
    object(
      'EndpointSlice',
      fields.namespace,
      fields.name,
      {
        addressType: 'IPv4',
        ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
        endpoints: fields.addresses.map((ip) => ({
          ...{ addresses: [ip], conditions: { ready: fields.ready }, nodeName: 'n1' },
          ...(fields.pod !== null && { targetRef: { kind: 'Pod', name: fields.pod, namespace: '' } }),
        })),
      },
      { labels: { 'kubernetes.io/service-name': fields.service } },
    ),
  );

const pod = fc.record({ namespace, name, labels, ip: address, node: fc.constantFrom('n1', 'n2') }).map((fields) =>
  object(
    'Pod',
    fields.namespace,
    fields.name,
    {
      spec: {
        ...{ nodeName: fields.node, serviceAccountName: '', hostname: '', subdomain: '' },
        containers: [{ ports: [{ name: 'web', containerPort: 8080, protocol: 'TCP' }] }],
        initContainers: [],
      },
      status: { phase: 'Running', podIP: fields.ip, podIPs: [], conditions: [] },
    },
    { labels: fields.labels },
  ),
);

const node = fc.record({ name: fc.constantFrom('n1', 'n2'), region: label }).map((fields) =>
  object(
    'Node',
    '',
    fields.name,
    { status: { addresses: [] } },
    {
      labels: { 'topology.kubernetes.io/region': fields.region },
    },
  ),
);

const area = fc
  .record({ name: fc.constantFrom('shop', 'istio-system'), network: fc.option(label), mesh: label })
  .map((fields) =>
    object(
      'Namespace',
      '',
      fields.name,
      {},
      {
        labels: { mesh: fields.mesh, ...(fields.network !== null && { 'topology.istio.io/network': fields.network }) },
      },
    ),
  );

const serviceEntry = fc
  .record({ namespace, name, host: fc.constantFrom('x.y', 'y.z'), app: fc.option(label), ip: address, age: fc.nat(2) })
  .map(({ app, ...fields }) =>
    object(
      'ServiceEntry',
      fields.namespace,
      fields.name,
      {
        ...{ hosts: [fields.host], location: 'MESH_INTERNAL', resolution: 'STATIC' },
        ports: [{ number: 80, name: 'http', protocol: 'HTTP' }],
        ...(app === null ? { endpoints: [{ address: fields.ip }] } : { workloadSelector: { labels: { app } } }),
      },
      { creationTimestamp: fields.age },
    ),
  );

const workloadEntry = fc
  .record({ namespace, name, labels, ip: address })
  .map((fields) =>
    object('WorkloadEntry', fields.namespace, fields.name, { address: fields.ip, labels: fields.labels }),
  );

const anyObject = fc.oneof(service, slice, pod, node, area, serviceEntry, workloadEntry);
/** Adds, changes or deletes an object. */
const step = fc.record({ object: anyObject, isDeleted: fc.boolean() });

/** All results of queries to a registry. */
function queryAll({ services, endpoints, workloads, gateways }: ServiceRegistry): unknown {
  const proxies = [1, 2, 3, 4, 5, 6].map((octet) =>
    givenProxy({ ip: `10.0.0.${octet}`, namespace: 'shop', labels: { app: 'a' } }),
  );
  return {
    services: services.map(({ exportTo, ...service }) => ({ ...service, exportTo: [...exportTo] })),
    endpoints: [...endpoints]
      .map(([host, lists]) => [host, [...lists].filter(([, list]) => list.length > 0).sort()])
      .filter(([, lists]) => lists!.length > 0)
      .sort(),
    targets: proxies.map((proxy) =>
      workloads
        .targetsOf(proxy)
        .map((ref) => JSON.stringify(ref))
        .toSorted(),
    ),
    workloads: proxies.map((proxy) => workloads.workloadOf(proxy)),
    gateways: gateways.allGateways,
  };
}

describe('registries that receive changes incrementally', () => {
  it.each<[string, Partial<RegistryOptions>]>([
    ['all namespaces', {}],
    ['selected namespaces', { discoverySelectors: [{ matchLabels: { mesh: 'a' } }] }],
  ])('equal registries that receive everything together, with %s', (_, overrides) => {
    const options = { ...defaultRegistryOptions, ...overrides };
    fc.assert(
      fc.property(fc.array(fc.array(step, { minLength: 1, maxLength: 4 }), { maxLength: 12 }), (batches) => {
        const incremental = new MeshRegistries(options);
        incremental.load(new Map());
        const objects = new Map<string, Config>();
        for (const batch of batches) {
          const changes: ChangedConfigObject[] = batch.map(({ object, isDeleted }) => {
            const key = configKeyText(object);
            if (isDeleted) objects.delete(key);
            else objects.set(key, object);
            return { key, event: isDeleted ? 'delete' : 'update' };
          });
          const previous = incremental.snapshot;
          const previousQueries = JSON.stringify(queryAll(previous));
          incremental.apply(changes, new Map(objects));
          expect(JSON.stringify(queryAll(previous))).toBe(previousQueries);
          // The push contains all changes.
          const { forced, services, endpoints } = incremental.takePendingPush();
          const reportedKeys = new Set([...services, ...endpoints]);
          const untold = differingKeys(previous, incremental.snapshot).filter(
            (key) => !reportedKeys.has(key) && !reportedKeys.has(key.replace('Endpoints/', 'ServiceEntry/')),
          );
          expect(forced ? [] : untold).toEqual([]);
        }
        const rebuilt = new MeshRegistries(options);
        rebuilt.load(objects);
        expect(queryAll(incremental.snapshot)).toEqual(queryAll(rebuilt.snapshot));
        // The model has the expected state for the same objects, without a registry.
        if (options.discoverySelectors.length > 0) return;
        const rebuiltRegistry = buildServiceRegistry(configSetOf([...objects.values()]), options);
        expect(queryAll(incremental.snapshot)).toEqual(queryAll(rebuiltRegistry));
      }),
      { numRuns: 300 },
    );
  });
});

/** Objects of a watched cluster, set by the test. */
class GivenCluster implements FollowedObjects {
  readonly objects = new Map<string, Config>();
  readonly #unreadKeys = new Set<string>();
  readonly #listeners: (() => void)[] = [];

  put(key: string, config: Config | undefined): void {
    if (config === undefined) this.objects.delete(key);
    else this.objects.set(key, config);
    this.#unreadKeys.add(key);
    for (const listener of this.#listeners) listener();
  }

  onChanged(listener: () => void): void {
    this.#listeners.push(listener);
  }

  *readInSteps() {
    const changes = [...this.#unreadKeys].map((key) => ({ key, current: this.objects.get(key) }));
    this.#unreadKeys.clear();
    yield;
    return { changes, problems: [], recovered: [] };
  }

  *readAll() {
    yield;
    return [...this.objects.values()];
  }

  get(key: string): Config | undefined {
    return this.objects.get(key);
  }
}

const clusterKinds: ReadonlySet<string> = new Set(['EndpointSlice', 'Pod', 'Node']);

describe('registries of a watched cluster', () => {
  it('equal registries that read all objects from configuration, and configuration takes precedence', () => {
    const options = { ...defaultRegistryOptions };
    // Low, so that some endpoints often exceed the limit.
    const limits = { maxEndpointsPerNamespace: 4 };
    const move = fc.record({ object: anyObject, goes: fc.boolean(), isInFile: fc.boolean(), remakes: fc.nat(9) });
    fc.assert(
      fc.property(fc.array(fc.array(move, { minLength: 1, maxLength: 4 }), { maxLength: 12 }), (batches) => {
        const cluster = new GivenCluster();
        const incremental = new MeshRegistries(options, { cluster, ...limits });
        incremental.load(new Map());
        const configuredObjects = new Map<string, Config>();
        for (const batch of batches) {
          const changes: ChangedConfigObject[] = [];
          for (const { object, goes, isInFile, remakes } of batch) {
            const key = configKeyText(object);
            if (clusterKinds.has(object.kind) && !isInFile) cluster.put(key, goes ? undefined : object);
            else {
              if (goes) configuredObjects.delete(key);
              else configuredObjects.set(key, object);
              changes.push({ key, event: goes ? 'delete' : 'update' });
            }
            if (remakes === 0) incremental.rebuild();
          }
          incremental.apply(changes, new Map(configuredObjects));
        }
        const rebuilt = new MeshRegistries(options, limits);
        rebuilt.load(new Map([...cluster.objects, ...configuredObjects]));
        expect(queryAll(incremental.snapshot)).toEqual(queryAll(rebuilt.snapshot));
        expect(incremental.objects.limitedCount).toBe(rebuilt.objects.limitedCount);
        const names = ({ pods, nodes }: MeshRegistries['workloads']) => [...pods, ...nodes].map(configKeyText).sort();
        expect(names(incremental.workloads)).toEqual(names(rebuilt.workloads));
      }),
      { numRuns: 300 },
    );
  });

  it('restore the endpoints of an unchanged slice when it is within the limit again', () => {
    const cluster = new GivenCluster();
    const incremental = new MeshRegistries(defaultRegistryOptions, { cluster, maxEndpointsPerNamespace: 3 });
    const web = object('Service', 'shop', 'web', {
      spec: {
        ...{ type: 'ClusterIP', clusterIP: '10.9.9.9', clusterIPs: [], ports: [kubernetesPort], externalName: '' },
        ...{ externalIPs: [], internalTrafficPolicy: 'Cluster', publishNotReadyAddresses: false },
      },
      status: { loadBalancer: { ingress: [] } },
    });
    const configuredObjects = new Map([['Service/shop/web', web]]);
    const sliceOf = (name: string, age: number, addresses: readonly string[]) =>
      object(
        'EndpointSlice',
        'shop',
        name,
        {
          ...{ addressType: 'IPv4', ports: [{ name: 'http', port: 80, protocol: 'TCP' }] },
          endpoints: addresses.map((address) => ({ addresses: [address], conditions: {} })),
        },
        { labels: { 'kubernetes.io/service-name': 'web' }, creationTimestamp: age },
      );
    const addresses = () =>
      (incremental.snapshot.endpoints.get('web.shop.svc.cluster.local')?.get('shop') ?? []).map(
        ({ address }) => address,
      );
    incremental.load(configuredObjects);
    cluster.put('EndpointSlice/shop/old', sliceOf('old', 1, ['10.0.0.1', '10.0.0.2']));
    cluster.put('EndpointSlice/shop/young', sliceOf('young', 2, ['10.0.0.3', '10.0.0.4']));
    incremental.apply([], configuredObjects);
    expect(addresses()).toEqual(['10.0.0.1', '10.0.0.2']);
    cluster.put('EndpointSlice/shop/old', sliceOf('old', 1, ['10.0.0.1']));
    incremental.apply([], configuredObjects);
    expect(addresses()).toEqual(['10.0.0.1', '10.0.0.3', '10.0.0.4']);
  });

  it('report changes and each limited object once, including objects that a slice of the cluster puts above the limit', () => {
    const cluster = new GivenCluster();
    const incremental = new MeshRegistries(defaultRegistryOptions, { cluster, maxEndpointsPerNamespace: 2 });
    const entry = object(
      'ServiceEntry',
      'shop',
      'young',
      {
        ...{ hosts: ['x.y'], location: 'MESH_INTERNAL', resolution: 'STATIC', endpoints: [{ address: '10.0.0.1' }] },
        ports: [{ number: 80, name: 'http', protocol: 'HTTP' }],
      },
      { creationTimestamp: 9 },
    );
    const configuredObjects = new Map([['ServiceEntry/shop/young', entry]]);
    const endpoints = () => incremental.snapshot.endpoints.get('x.y')?.get('shop')?.length ?? 0;
    incremental.load(configuredObjects);
    incremental.objects.drainReport();
    expect(endpoints()).toBe(1);
    const slice = (count: number) =>
      object('EndpointSlice', 'shop', 'web-1', {
        ...{ addressType: 'IPv4', ports: [{ name: 'http', port: 80, protocol: 'TCP' }] },
        endpoints: Array.from({ length: count }, (_, index) => ({ addresses: [`10.0.1.${index}`], conditions: {} })),
      });
    cluster.put('EndpointSlice/shop/web-1', slice(2));
    incremental.apply([], configuredObjects);
    expect(endpoints()).toBe(0);
    const { problems, events, limits } = incremental.objects.drainReport();
    expect(problems).toMatchObject([{ code: 'LIMIT_EXCEEDED', object: 'ServiceEntry shop/young' }]);
    expect(events).toEqual([{ key: 'EndpointSlice/shop/web-1', event: 'add' }]);
    expect(limits.map(([key, limitedProblem]) => [key, limitedProblem !== undefined])).toEqual([
      ['ServiceEntry/shop/young', true],
    ]);
    incremental.rebuild();
    expect([endpoints(), incremental.objects.drainReport()]).toEqual([
      0,
      { problems: [], recovered: [], events: [], limits: [] },
    ]);
    cluster.put('EndpointSlice/shop/web-1', slice(1));
    incremental.apply([], configuredObjects);
    expect(endpoints()).toBe(1);
    expect(incremental.objects.drainReport()).toMatchObject({
      problems: [],
      limits: [['ServiceEntry/shop/young', undefined]],
    });
  });
});

/** Keys that a push between two states must contain: services and healthy endpoints. */
function differingKeys(previous: ServiceRegistry, now: ServiceRegistry): string[] {
  const view = ({ services, endpoints }: ServiceRegistry): Map<string, string> => {
    const texts = new Map<string, string>();
    for (const service of services) {
      const key = `ServiceEntry/${service.namespace}/${service.hostname}`;
      texts.set(key, `${texts.get(key) ?? ''}${JSON.stringify(service)}`);
      const list = endpoints.get(service.hostname)?.get(service.namespace) ?? [];
      if (service.resolution !== 'ClientSideLB') continue;
      texts.set(
        `Endpoints/${service.namespace}/${service.hostname}`,
        JSON.stringify(
          list
            .filter(({ health }) => health === 'healthy')
            .map((endpoint) => JSON.stringify(endpoint))
            .sort(),
        ),
      );
    }
    return texts;
  };
  const [previousView, present] = [view(previous), view(now)];
  return [...new Set([...previousView.keys(), ...present.keys()])].filter(
    (key) => previousView.get(key) !== present.get(key),
  );
}
