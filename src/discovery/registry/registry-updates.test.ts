import { describe, expect, it } from 'vitest';
import { configKeyText } from '../../model/config/config.ts';
import { readConfigFile } from '../../model/config/config-file.ts';
import { defaultRegistryOptions } from '../../model/services/service-registry.ts';
import { MemoryRegistry } from './memory-registry.ts';
import { MeshRegistries } from './mesh-registries.ts';

interface Entry {
  readonly host?: string;
  readonly resolution?: string;
  readonly port?: number;
  readonly extraYaml?: string;
}

const entry = (
  name: string,
  { host = `${name}.b`, resolution = 'STATIC', port = 80, extraYaml = '' }: Entry = {},
): string => `---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ${name}, namespace: shop}
spec:
  hosts: [${host}]
  resolution: ${resolution}
  ports: [{number: ${port}, name: http, protocol: HTTP}]
  ${extraYaml}
`;

const workload = (address: string): string => `---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: w, namespace: shop}
spec: {address: ${address}, labels: {app: web}}
`;

const at = (address: string): string => `endpoints: [{address: ${address}}]`;

const headless = (protocol: string, address: string): string => `---
apiVersion: v1
kind: Service
metadata: {name: db, namespace: shop}
spec: {clusterIP: None, ports: [{name: ${protocol}, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: db-1, namespace: shop, labels: {kubernetes.io/service-name: db}}
addressType: IPv4
ports: [{name: ${protocol}, port: 80}]
endpoints: [{addresses: [${address}]}]
`;

/** A Kubernetes service with a cluster IP and one endpoint. */
const clustered = (address: string, annotations = ''): string => `---
apiVersion: v1
kind: Service
metadata: {name: db, namespace: shop, annotations: {${annotations}}}
spec: {clusterIP: 10.9.0.1, ports: [{name: http, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: db-1, namespace: shop, labels: {kubernetes.io/service-name: db}}
addressType: IPv4
ports: [{name: http, port: 80}]
endpoints: [{addresses: [${address}]}]
`;

const pod = (label: string, ip = '10.0.0.1'): string => `---
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: shop, labels: {app: ${label}}}
spec: {nodeName: n}
status: {phase: Running, podIP: ${ip}}
`;

function registriesOf(): { load(yaml: string): string[]; readonly mesh: MeshRegistries } {
  const mesh = new MeshRegistries(defaultRegistryOptions);
  return {
    mesh,
    load: (yaml) => {
      const { configs, problems } = readConfigFile('x.yaml', yaml, { creationTimestamp: 1 });
      if (problems.some(({ severity }) => severity === 'error')) throw new Error(JSON.stringify(problems));
      mesh.load(new Map(configs.map((config) => [configKeyText(config), config])));
      const { forced, services, endpoints, proxies } = mesh.takePendingPush();
      return [...(forced ? ['everything'] : []), ...services, ...endpoints, ...proxies];
    },
  };
}

/** Keys in the push for a change from `previous` to `after`. */
function changes(previous: string, next: string): string[] {
  const registries = registriesOf();
  registries.load(previous);
  return registries.load(next);
}

describe('a push of registry changes', () => {
  it('is empty if nothing differs', () => {
    expect(changes(entry('a', { extraYaml: at('1.1.1.1') }), entry('a', { extraYaml: at('1.1.1.1') }))).toEqual([]);
  });

  it('contains only endpoints if only static endpoints differ', () => {
    expect(changes(entry('a', { extraYaml: at('1.1.1.1') }), entry('a', { extraYaml: at('2.2.2.2') }))).toEqual([
      'Endpoints/shop/a.b',
    ]);
  });

  it('contains the service if endpoints resolved by DNS differ, because clusters contain them', () => {
    const dns = (address: string): string => entry('a', { resolution: 'DNS', extraYaml: at(address) });
    expect(changes(dns('x.y'), dns('z.y'))).toEqual(['ServiceEntry/shop/a.b', 'ServiceEntry/shop/a']);
  });

  it.each([
    ['a new service', '', entry('a')],
    ['a removed service', entry('a'), ''],
    ['a changed port', entry('a'), entry('a', { port: 81 })],
  ])('contains the service and its object for %s', (_, previous, next) => {
    expect(changes(previous + entry('z'), next + entry('z'))).toEqual(['ServiceEntry/shop/a.b', 'ServiceEntry/shop/a']);
  });

  it('contains the endpoints that a WorkloadEntry changes, and nothing if no service selects the WorkloadEntry', () => {
    const selectingEntry = entry('a', { extraYaml: 'workloadSelector: {labels: {app: web}}' });
    expect(changes(selectingEntry + workload('1.1.1.1'), selectingEntry + workload('1.1.1.2'))).toEqual([
      'Endpoints/shop/a.b',
    ]);
    expect(changes(entry('a') + workload('1.1.1.1'), entry('a') + workload('1.1.1.2'))).toEqual([]);
  });

  it('contains the service if only its selector differs', () => {
    const selectingEntry = (app: string): string =>
      entry('a', { extraYaml: `workloadSelector: {labels: {app: ${app}}}` });
    expect(changes(selectingEntry('x'), selectingEntry('y'))).toEqual(['ServiceEntry/shop/a.b']);
  });

  it('contains the service if pods of a headless service with a TCP port change, because each pod has a listener', () => {
    expect(changes(headless('tcp', '10.0.0.1'), headless('tcp', '10.0.0.2'))).toEqual([
      'ServiceEntry/shop/db.shop.svc.cluster.local',
    ]);
  });

  it('contains only the DNS name and endpoints if pods of a headless service with HTTP ports change', () => {
    expect(changes(headless('http', '10.0.0.1'), headless('http', '10.0.0.2'))).toEqual([
      'DNSName/shop/db.shop.svc.cluster.local',
      'Endpoints/shop/db.shop.svc.cluster.local',
    ]);
  });

  it('contains the service if its first pod accepts mutual TLS, because this changes its clusters', () => {
    const [service = ''] = headless('http', '').split('---\napiVersion: discovery');
    const selectingService = service.replace('clusterIP', 'selector: {app: web}, clusterIP');
    const first = workload('10.0.0.1').replace('labels', 'serviceAccount: sa, labels');
    expect(changes(selectingService, selectingService + first)).toEqual([
      'ServiceEntry/shop/db.shop.svc.cluster.local',
    ]);
  });

  it.each([
    ['the service if its clusters contain the endpoints', 'DNS', ['ServiceEntry/shop/HOST', 'ServiceEntry/shop/other']],
    [
      'the service if its clusters depend on the endpoints',
      'NONE',
      ['ServiceEntry/shop/HOST', 'ServiceEntry/shop/other'],
    ],
    ['only endpoints if EDS contains them', 'STATIC', ['Endpoints/shop/HOST']],
  ])('contains, if a ServiceEntry has the same host as a Kubernetes service, %s', (_, resolution, changedNames) => {
    const host = 'db.shop.svc.cluster.local';
    const other = entry('other', { host, resolution, port: 443 });
    const keys = changedNames.map((key) => key.replace('HOST', host));
    expect(changes(other + clustered('10.0.0.1'), other + clustered('10.0.0.2'))).toEqual(keys);
  });

  it('contains the endpoints of an invisible service if a visible one has the same host', () => {
    const [unseen, host] = ['networking.istio.io/exportTo: "~"', 'db.shop.svc.cluster.local'];
    const other = entry('other', { host });
    expect(changes(clustered('10.0.0.1', unseen), clustered('10.0.0.2', unseen))).toEqual([]);
    expect(changes(other + clustered('10.0.0.1', unseen), other + clustered('10.0.0.2', unseen))).toEqual([
      `Endpoints/shop/${host}`,
    ]);
  });

  it('is empty for endpoints of an invisible service', () => {
    const hidden = (address: string): string => entry('a', { extraYaml: `exportTo: ["~"]\n  ${at(address)}` });
    expect(changes(hidden('1.1.1.1'), hidden('1.1.1.2'))).toEqual([]);
  });

  it("contains the proxy whose pod's labels change", () => {
    expect(changes(pod('a'), pod('b'))).toEqual(['Proxy/Kubernetes/10.0.0.1']);
    expect(changes(pod('a'), pod('a'))).toEqual([]);
  });

  it('contains everything if a registry is removed', () => {
    const registries = registriesOf();
    registries.load(entry('a', { extraYaml: at('1.1.1.1') }));
    const service = { ...registries.mesh.snapshot.services[0]!, registry: 'Kubernetes' };
    const [endpoint] = registries.mesh.snapshot.endpoints.get('a.b')!.get('shop')!;
    const withdraw = registries.mesh.offer([
      {
        ...{ provider: 'Kubernetes', clusterId: 'remote' },
        create: (updates) => {
          const remote = new MemoryRegistry({ provider: 'Kubernetes', cluster: 'remote' }, updates);
          remote.putService(service, [{ ...endpoint!, address: '9.9.9.9' }]);
          return remote;
        },
      },
    ]);
    const stop = registries.mesh.run('Kubernetes/remote', { onSynced() {}, onChanged() {}, onFailed() {} });
    registries.mesh.refresh();
    const addresses = (): unknown =>
      registries.mesh.snapshot.endpoints
        .get('a.b')
        ?.get('shop')
        ?.map(({ address }) => address);
    expect(addresses()).toEqual(['1.1.1.1', '9.9.9.9']);
    registries.mesh.takePendingPush();
    stop();
    registries.mesh.removeOtherRegistries(
      withdraw.map(({ registry }) => registry).filter((name) => name !== 'Kubernetes/remote'),
    );
    expect(registries.mesh.takePendingPush().forced).toBe(true);
    expect(addresses()).toEqual(['1.1.1.1']);
    expect(registries.mesh.snapshot.services).toHaveLength(1);
  });
});

describe('the registries of a mesh', () => {
  it('select workloads from each other', () => {
    const registries = registriesOf();
    const selectingEntry = entry('a', { extraYaml: 'workloadSelector: {labels: {app: web}}' });
    const service = `---
apiVersion: v1
kind: Service
metadata: {name: db, namespace: shop}
spec: {clusterIP: 10.9.0.1, selector: {app: web}, ports: [{name: http, port: 80}]}
`;
    registries.load(selectingEntry + service + pod('web') + workload('10.1.0.1'));
    const addresses = (host: string): unknown =>
      registries.mesh.snapshot.endpoints
        .get(host)
        ?.get('shop')
        ?.map(({ address }) => address);
    expect(addresses('a.b')).toEqual(['10.0.0.1', '10.1.0.1']);
    expect(addresses('db.shop.svc.cluster.local')).toEqual(['10.1.0.1']);
    expect(registries.load(selectingEntry + service + pod('other'))).toEqual(
      expect.arrayContaining(['Endpoints/shop/a.b', 'Endpoints/shop/db.shop.svc.cluster.local']),
    );
    expect(addresses('a.b')).toEqual([]);
  });

  it('are rebuilt and push everything when the settings change', () => {
    const registries = registriesOf();
    registries.load(entry('a', { extraYaml: 'endpoints: [{address: 1.1.1.1, serviceAccount: x}]' }));
    const identity = (): unknown => registries.mesh.snapshot.endpoints.get('a.b')?.get('shop')?.[0]?.serviceAccount;
    registries.mesh.configure({ ...defaultRegistryOptions });
    expect(registries.mesh.takePendingPush().forced).toBe(false);
    registries.mesh.configure({ ...defaultRegistryOptions, trustDomain: 'td' });
    expect([registries.mesh.takePendingPush().forced, identity()]).toEqual([true, 'spiffe://td/ns/shop/sa/x']);
  });

  it('are those of the flag, starting with Kubernetes', () => {
    const { registries } = new MeshRegistries(defaultRegistryOptions, { names: ['Memory', 'Mock'] });
    expect(registries.map(({ provider, clusterId }) => `${provider}/${clusterId}`)).toEqual([
      'Kubernetes/Kubernetes',
      'External/Kubernetes',
      'Memory/Kubernetes',
      'Mock/mockAdapter1',
      'Mock/mockAdapter2',
    ]);
  });

  it('resolve the host names of network gateways', () => {
    let changeCount = 0;
    const networks = {
      networks: { west: { endpoints: [], gateways: [{ address: 'gw.example.com', port: 15443 }] } },
    };
    const mesh = new MeshRegistries({ ...defaultRegistryOptions, networks }, { gatewaysResolved: () => changeCount++ });
    mesh.load(new Map());
    expect(mesh.snapshot.gateways.allGateways).toEqual([]);
    mesh.takePendingPush();
    mesh.gatewayNames.setAddresses('gw.example.com', ['7.7.7.7']);
    expect(mesh.snapshot.gateways.gatewaysTo('west', 'x')).toMatchObject([{ address: '7.7.7.7', port: 15443 }]);
    expect([changeCount, mesh.takePendingPush().forced]).toEqual([1, true]);
    mesh.stop();
  });
});
