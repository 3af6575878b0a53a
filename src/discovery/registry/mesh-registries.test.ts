import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { givenProxy } from '../../../test/fixtures/given-mesh.ts';
import { type Config, configKeyOf, configKeyText } from '../../model/config/config.ts';
import { configSetOf } from '../../model/config/config-set.ts';
import {
  buildServiceRegistry,
  defaultRegistryOptions,
  type RegistryOptions,
  type ServiceRegistry,
} from '../../model/services/service-registry.ts';
import { type ChangedObject, MeshRegistries } from './mesh-registries.ts';

const object = (kind: string, namespace: string, name: string, spec: unknown, about: Partial<Config> = {}): Config => ({
  ...{ kind, apiVersion: 'v1', name, namespace, labels: {}, annotations: {}, resourceVersion: '1' },
  ...{ creationTimestamp: 0, spec },
  ...about,
});

const label = fc.constantFrom('a', 'b');
const labels = fc.record({ app: label });
const name = fc.constantFrom('one', 'two', 'three');
const namespace = fc.constantFrom('shop', 'bank');
const address = fc.integer({ min: 1, max: 6 }).map((part) => `10.0.0.${part}`);

const kubernetesPort = { name: 'http', port: 80, protocol: 'TCP', targetPort: 'web' };

const service = fc.record({ namespace, name, app: fc.option(label), headless: fc.boolean() }).map((given) =>
  object('Service', given.namespace, given.name, {
    spec: {
      ...{
        type: 'ClusterIP',
        clusterIP: given.headless ? 'None' : '10.9.9.9',
        clusterIPs: [],
        ports: [kubernetesPort],
      },
      ...{ externalName: '', externalIPs: [], internalTrafficPolicy: 'Cluster', publishNotReadyAddresses: false },
      ...(given.app !== null && { selector: { app: given.app } }),
    },
    status: { loadBalancer: { ingress: [] } },
  }),
);

const slice = fc
  .record({ namespace, name, service: name, addresses: fc.array(address), pod: fc.option(name), ready: fc.boolean() })
  .map((given) =>
    object(
      'EndpointSlice',
      given.namespace,
      given.name,
      {
        addressType: 'IPv4',
        ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
        endpoints: given.addresses.map((ip) => ({
          ...{ addresses: [ip], conditions: { ready: given.ready }, nodeName: 'n1' },
          ...(given.pod !== null && { targetRef: { kind: 'Pod', name: given.pod, namespace: '' } }),
        })),
      },
      { labels: { 'kubernetes.io/service-name': given.service } },
    ),
  );

const pod = fc.record({ namespace, name, labels, ip: address, node: fc.constantFrom('n1', 'n2') }).map((given) =>
  object(
    'Pod',
    given.namespace,
    given.name,
    {
      spec: {
        ...{ nodeName: given.node, serviceAccountName: '', hostname: '', subdomain: '' },
        containers: [{ ports: [{ name: 'web', containerPort: 8080, protocol: 'TCP' }] }],
        initContainers: [],
      },
      status: { phase: 'Running', podIP: given.ip, podIPs: [], conditions: [] },
    },
    { labels: given.labels },
  ),
);

const node = fc.record({ name: fc.constantFrom('n1', 'n2'), region: label }).map((given) =>
  object(
    'Node',
    '',
    given.name,
    { status: { addresses: [] } },
    {
      labels: { 'topology.kubernetes.io/region': given.region },
    },
  ),
);

const area = fc
  .record({ name: fc.constantFrom('shop', 'istio-system'), network: fc.option(label), mesh: label })
  .map((given) =>
    object(
      'Namespace',
      '',
      given.name,
      {},
      {
        labels: { mesh: given.mesh, ...(given.network !== null && { 'topology.istio.io/network': given.network }) },
      },
    ),
  );

const serviceEntry = fc
  .record({ namespace, name, host: fc.constantFrom('x.y', 'y.z'), app: fc.option(label), ip: address, age: fc.nat(2) })
  .map(({ app, ...given }) =>
    object(
      'ServiceEntry',
      given.namespace,
      given.name,
      {
        ...{ hosts: [given.host], location: 'MESH_INTERNAL', resolution: 'STATIC' },
        ports: [{ number: 80, name: 'http', protocol: 'HTTP' }],
        ...(app === null ? { endpoints: [{ address: given.ip }] } : { workloadSelector: { labels: { app } } }),
      },
      { creationTimestamp: given.age },
    ),
  );

const workloadEntry = fc
  .record({ namespace, name, labels, ip: address })
  .map((given) => object('WorkloadEntry', given.namespace, given.name, { address: given.ip, labels: given.labels }));

const anyObject = fc.oneof(service, slice, pod, node, area, serviceEntry, workloadEntry);
/** One object that comes or changes, or goes. */
const step = fc.record({ object: anyObject, goes: fc.boolean() });

/** Everything that anybody may ask of registries. */
function known({ services, endpoints, workloads, gateways }: ServiceRegistry): unknown {
  const proxies = [1, 2, 3, 4, 5, 6].map((part) =>
    givenProxy({ ip: `10.0.0.${part}`, namespace: 'shop', labels: { app: 'a' } }),
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
    gateways: gateways.all,
  };
}

describe('registries that are told of changes', () => {
  it.each<[string, Partial<RegistryOptions>]>([
    ['of all namespaces', {}],
    ['of chosen namespaces', { discoverySelectors: [{ matchLabels: { mesh: 'a' } }] }],
  ])('know what registries know that are told of everything at once, %s', (_, about) => {
    const options = { ...defaultRegistryOptions, ...about };
    fc.assert(
      fc.property(fc.array(fc.array(step, { minLength: 1, maxLength: 4 }), { maxLength: 12 }), (batches) => {
        const grown = new MeshRegistries(options);
        grown.load(new Map());
        const objects = new Map<string, Config>();
        for (const batch of batches) {
          const changes: ChangedObject[] = batch.map(({ object, goes }) => {
            const key = configKeyText(configKeyOf(object));
            if (goes) objects.delete(key);
            else objects.set(key, object);
            return { key, event: goes ? 'delete' : 'update' };
          });
          const before = grown.snapshot;
          const remembered = JSON.stringify(known(before));
          grown.apply(changes, new Map(objects));
          expect(JSON.stringify(known(before))).toBe(remembered);
          // What nobody is told of is what it was.
          const { forced, services, endpoints } = grown.take();
          const told = new Set([...services, ...endpoints]);
          const untold = differing(before, grown.snapshot).filter(
            (key) => !told.has(key) && !told.has(key.replace('Endpoints/', 'ServiceEntry/')),
          );
          expect(forced ? [] : untold).toEqual([]);
        }
        const anew = new MeshRegistries(options);
        anew.load(objects);
        expect(known(grown.snapshot)).toEqual(known(anew.snapshot));
        // What the model makes of the same objects without any registry.
        if (options.discoverySelectors.length > 0) return;
        const byModel = buildServiceRegistry(configSetOf([...objects.values()]), options);
        expect(known(grown.snapshot)).toEqual(known(byModel));
      }),
      { numRuns: 300 },
    );
  });
});

/** Keys that a push must name between two moments: of healthy endpoints and of services. */
function differing(before: ServiceRegistry, now: ServiceRegistry): string[] {
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
  const [old, present] = [view(before), view(now)];
  return [...new Set([...old.keys(), ...present.keys()])].filter((key) => old.get(key) !== present.get(key));
}
