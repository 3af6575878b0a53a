import { describe, it } from 'vitest';
import {
  ContractWorld,
  type GivenEndpoint,
  type GivenService,
  type RegistryDriver,
  registryContract,
} from '../../../test/fixtures/registry-contract.ts';
import type { Config } from '../../model/config/config.ts';
import { parseConfigKey } from '../../model/config/config.ts';
import { readConfigFile } from '../../model/config/config-file.ts';
import type { ConfigObjectChange } from '../../model/services/registry-delta.ts';
import type { Endpoint, Service } from '../../model/services/service.ts';
import { defaultRegistryOptions } from '../../model/services/service-registry.ts';
import { AggregateRegistry } from './aggregate-registry.ts';
import { KubernetesRegistry } from './kubernetes-registry.ts';
import { MemoryRegistry } from './memory-registry.ts';
import type { ObjectRegistry } from './object-registry.ts';
import type { RegistryUpdates } from './registry-updates.ts';
import { ServiceEntryRegistry } from './service-entry-registry.ts';

const text = (value: unknown): string => JSON.stringify(value);

/** Passes the differences between two states of a directory to a registry. */
class ObjectsDriver {
  readonly registry: ObjectRegistry;
  #objects = new Map<string, Config>();
  readonly #documents = new Map<string, string>();
  readonly #write: (service: GivenService, endpoints: readonly GivenEndpoint[]) => Record<string, string>;

  constructor(
    registry: ObjectRegistry,
    write: (service: GivenService, endpoints: readonly GivenEndpoint[]) => Record<string, string>,
  ) {
    this.registry = registry;
    this.#write = write;
  }

  put(service: GivenService, endpoints: readonly GivenEndpoint[]): void {
    for (const key of this.#documents.keys()) if (key.startsWith(`${service.name} `)) this.#documents.delete(key);
    for (const [key, document] of Object.entries(this.#write(service, endpoints))) {
      this.#documents.set(`${service.name} ${key}`, document);
    }
    this.#notify();
  }

  remove(name: string): void {
    for (const key of this.#documents.keys()) if (key.startsWith(`${name} `)) this.#documents.delete(key);
    this.#notify();
  }

  repeat(): void {
    this.registry.objectsChanged([...this.#objects].map(([key, current]) => ({ key: parseConfigKey(key), current })));
  }

  #notify(): void {
    const { configs, problems } = readConfigFile('x.yaml', [...this.#documents.values()].join('\n---\n'), {
      creationTimestamp: 1,
    });
    if (problems.length > 0) throw new Error(text(problems));
    const now = new Map(configs.map((config) => [`${config.kind}/${config.namespace}/${config.name}`, config]));
    const removedKeys = [...this.#objects.keys()].filter((key) => !now.has(key));
    const changes: ConfigObjectChange<Config>[] = [
      ...removedKeys.map((key) => ({ key: parseConfigKey(key), current: undefined })),
      ...[...now].map(([key, current]) => ({ key: parseConfigKey(key), current })),
    ];
    this.#objects = now;
    this.registry.objectsChanged(changes);
  }
}

function serviceEntryDriver(updates: RegistryUpdates): RegistryDriver {
  const write = ({ name, labels = {} }: GivenService, endpoints: readonly GivenEndpoint[]): Record<string, string> => ({
    entry: text({
      apiVersion: 'networking.istio.io/v1',
      kind: 'ServiceEntry',
      metadata: { name, namespace: 'shop', labels },
      spec: {
        hosts: [`${name}.example.com`],
        resolution: 'STATIC',
        ports: [{ number: 80, name: 'http', protocol: 'HTTP', targetPort: 8080 }],
        workloadSelector: { labels: { app: name } },
      },
    }),
    ...Object.fromEntries(
      endpoints.map(({ address, serviceAccount, healthy = true }, index) => [
        `workload ${address}`,
        text({
          apiVersion: 'networking.istio.io/v1',
          kind: 'WorkloadEntry',
          metadata: { name: `${name}-${index}`, namespace: 'shop' },
          spec: { address, labels: { app: name }, ...(serviceAccount && { serviceAccount }) },
          status: { conditions: [{ type: 'Healthy', status: healthy ? 'True' : 'False' }] },
        }),
      ]),
    ),
  });
  const driver = new ObjectsDriver(new ServiceEntryRegistry(defaultRegistryOptions, updates), write);
  return Object.assign(driver, { hostOf: (name: string) => `${name}.example.com` });
}

function kubernetesDriver(updates: RegistryUpdates): RegistryDriver {
  const write = ({ name, labels = {} }: GivenService, endpoints: readonly GivenEndpoint[]): Record<string, string> => {
    const pods = endpoints.map(({ address, serviceAccount = 'default' }, index) => {
      const metadata = { name: `${name}-${index}`, namespace: 'shop', labels: { app: name } };
      const spec = {
        serviceAccountName: serviceAccount,
        containers: [{ ports: [{ name: 'web', containerPort: 8080 }] }],
      };
      return text({ apiVersion: 'v1', kind: 'Pod', metadata, spec, status: { phase: 'Running', podIP: address } });
    });
    const slice = {
      metadata: { name: `${name}-x`, namespace: 'shop', labels: { 'kubernetes.io/service-name': name } },
      addressType: 'IPv4',
      ports: [{ name: 'http', port: 8080 }],
      endpoints: endpoints.map(({ address, healthy = true }, index) => ({
        addresses: [address],
        conditions: { ready: healthy },
        targetRef: { kind: 'Pod', name: `${name}-${index}`, namespace: 'shop' },
      })),
    };
    const spec = {
      selector: { app: name },
      clusterIP: '10.255.0.1',
      ports: [{ name: 'http', port: 80, targetPort: 'web' }],
    };
    return {
      service: text({ apiVersion: 'v1', kind: 'Service', metadata: { name, namespace: 'shop', labels }, spec }),
      slice: text({ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', ...slice }),
      ...Object.fromEntries(pods.map((pod, index) => [`pod ${index}`, pod])),
    };
  };
  const driver = new ObjectsDriver(new KubernetesRegistry(defaultRegistryOptions, updates), write);
  return Object.assign(driver, { hostOf: (name: string) => `${name}.shop.svc.cluster.local` });
}

function memoryDriver(updates: RegistryUpdates, provider = 'Memory'): RegistryDriver {
  const registry = new MemoryRegistry({ provider, cluster: 'c1' }, updates);
  const hostOf = (name: string): string => `${name}.example.com`;
  const serviceOf = ({ name, labels = {} }: GivenService): Service => ({
    ...{ hostname: hostOf(name), namespace: 'shop', defaultAddress: '0.0.0.0', addresses: [], labels },
    ...{ resolution: 'ClientSideLB', meshExternal: false, serviceAccounts: [], creationTime: 0, registry: provider },
    ...{ ports: [{ name: 'http', number: 80, protocol: 'HTTP' }], exportTo: new Set(['*']) },
    origin: { kind: provider, namespace: 'shop', name },
  });
  const endpointOf = ({ address, serviceAccount = '', healthy = true }: GivenEndpoint): Endpoint => ({
    ...{ address, port: 8080, servicePortName: 'http', labels: {}, serviceAccount, network: '', locality: '' },
    ...{ clusterId: 'c1', weight: 0, tlsMode: 'disabled', namespace: 'shop', workloadName: '' },
    health: healthy ? 'healthy' : 'unhealthy',
  });
  let last = (): void => {};
  return {
    registry,
    hostOf,
    put: (service, endpoints) => {
      last = () => registry.putService(serviceOf(service), endpoints.map(endpointOf));
      last();
    },
    repeat: () => last(),
    remove: (name) => registry.removeService({ hostname: hostOf(name), namespace: 'shop' }),
  };
}

/** Tests one of several registries, which must not affect each other. */
function aggregateDriver(updates: RegistryUpdates): RegistryDriver {
  const aggregate = new AggregateRegistry('c1', updates);
  const driver = memoryDriver(updates, 'Kubernetes');
  for (const cluster of ['mockAdapter1', 'mockAdapter2']) {
    aggregate.addRegistry(new MemoryRegistry({ provider: 'Mock', cluster }, updates));
  }
  aggregate.addRegistry(driver.registry);
  return { ...driver, registry: aggregate };
}

const implementations: Readonly<Record<string, (updates: RegistryUpdates) => RegistryDriver>> = {
  'a registry in memory': memoryDriver,
  'the registry of ServiceEntries': serviceEntryDriver,
  "the registry of a cluster's objects": kubernetesDriver,
  'an aggregate of registries': aggregateDriver,
};

for (const [name, makeDriver] of Object.entries(implementations)) {
  describe(name, () => {
    for (const { title, run } of registryContract) it(title, () => run(new ContractWorld(makeDriver)));
  });
}
