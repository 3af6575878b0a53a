import { describe, expect, it } from 'vitest';
import { givenMesh, givenProxy } from '../../../../test/fixtures/given-mesh.ts';
import type { Endpoint, Service } from '../service.ts';

const document = (kind: string, name: string, body: string, metadata = ''): string =>
  `---\napiVersion: ${kind === 'EndpointSlice' ? 'discovery.k8s.io/v1' : 'v1'}\nkind: ${kind}\nmetadata: {name: ${name}${metadata}}\n${body}\n`;
const inShop = ', namespace: shop';

const service = (spec: string, metadata = ''): string =>
  document('Service', 'web', `spec: {ports: [{name: http, port: 80, targetPort: web}], ${spec}}`, inShop + metadata);
const selectingSpec = 'clusterIP: 10.9.0.1, selector: {app: web}';

const pod = (name: string, ip: string, { labels = 'app: web', phase = 'Running', spec = '' } = {}): string =>
  document(
    'Pod',
    name,
    `spec: {nodeName: n1, serviceAccountName: sa-web, containers: [{ports: [{name: web, containerPort: 8080}]}]${spec}}
status: {phase: ${phase}, podIP: ${ip}}`,
    `${inShop}, labels: {${labels}}`,
  );

const slice = (endpoints: string, { name = 'web-1', metadata = '', addressType = 'IPv4' } = {}): string =>
  document(
    'EndpointSlice',
    name,
    `addressType: ${addressType}\nports: [{name: http, port: 8080}]\nendpoints: [${endpoints}]`,
    `${inShop}, labels: {kubernetes.io/service-name: web${metadata}}`,
  );
const at = (ip: string, extraFields = ''): string => `{addresses: [${ip}]${extraFields}}`;
const toPod = (name: string): string => `, targetRef: {kind: Pod, name: ${name}, namespace: shop}`;

const node = document(
  'Node',
  'n1',
  'status: {addresses: [{type: ExternalIP, address: 5.5.5.5}, {type: InternalIP, address: 10.0.0.9}]}',
  ', labels: {topology.kubernetes.io/region: eu, topology.kubernetes.io/zone: eu-1, topology.istio.io/subzone: rack, disk: ssd}',
);

const host = 'web.shop.svc.cluster.local';
const serviceOf = (yaml: string, meshConfig?: string): Service | undefined =>
  givenMesh(yaml, meshConfig === undefined ? {} : { meshConfig }).registry.services.find(
    (one) => one.hostname === host,
  );
const endpointsOf = (yaml: string): readonly Endpoint[] =>
  givenMesh(yaml).registry.endpoints.get(host)?.get('shop') ?? [];
const addresses = (yaml: string): string[] => endpointsOf(yaml).map(({ address, health }) => `${address} ${health}`);

describe('services of a cluster', () => {
  it('have host names from name, namespace and domain, and the endpoints of their slices', () => {
    expect(serviceOf(service(selectingSpec))).toMatchObject({
      ...{
        hostname: host,
        namespace: 'shop',
        defaultAddress: '10.9.0.1',
        addresses: ['10.9.0.1'],
        registry: 'Kubernetes',
      },
      ...{ resolution: 'ClientSideLB', meshExternal: false, clusterVIPs: { Kubernetes: ['10.9.0.1'] } },
      ports: [{ name: 'http', number: 80, protocol: 'HTTP' }],
      origin: { kind: 'Service', namespace: 'shop', name: 'web' },
      attributes: { type: 'ClusterIP', selector: { app: 'web' } },
    });
  });

  it('are headless if they have no virtual IP', () => {
    const headless = serviceOf(service('clusterIP: None, selector: {app: web}'));
    expect(headless).toMatchObject({ resolution: 'Passthrough', defaultAddress: '0.0.0.0', addresses: [] });
  });

  it('are aliases if they have an external name', () => {
    expect(serviceOf(service('type: ExternalName, externalName: a.example.com'))).toMatchObject({
      ...{ resolution: 'Alias', attributes: { externalName: 'a.example.com' } },
    });
  });

  it('have addresses of both IP families', () => {
    expect(serviceOf(service('clusterIP: 10.9.0.1, clusterIPs: [10.9.0.1, "fd00::1"]'))?.addresses).toEqual([
      '10.9.0.1',
      'fd00::1',
    ]);
  });

  it('are visible as their annotation specifies', () => {
    const exportedService = service(selectingSpec, ', annotations: {networking.istio.io/exportTo: " ., bank ,"}');
    expect(serviceOf(exportedService)?.exportTo).toEqual(new Set(['.', 'bank']));
  });

  it('have the service accounts in their annotations', () => {
    const annotations = `, annotations: {alpha.istio.io/kubernetes-serviceaccounts: "a,b", alpha.istio.io/canonical-serviceaccounts: spiffe://x/y}`;
    expect(serviceOf(service(selectingSpec, annotations))?.serviceAccounts).toEqual([
      'spiffe://x/y',
      'spiffe://cluster.local/ns/shop/sa/a',
      'spiffe://cluster.local/ns/shop/sa/b',
    ]);
  });

  it('are reachable externally at node ports of the nodes selected by an annotation', () => {
    const yaml = `---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop, annotations: {traffic.istio.io/nodeSelector: '{"disk":"ssd"}'}}
spec: {type: NodePort, clusterIP: 10.9.0.1, ports: [{name: http, port: 80, nodePort: 30080}]}
`;
    expect(serviceOf(yaml + node)?.attributes).toMatchObject({
      externalAddresses: { Kubernetes: ['5.5.5.5'] },
      externalPorts: { Kubernetes: { 80: 30080 } },
    });
    expect(serviceOf(yaml + node.replace('disk: ssd', 'disk: hdd'))?.attributes?.externalAddresses).toEqual({
      Kubernetes: [],
    });
  });

  it('are reachable externally at load balancer IPs or names and at external IPs', () => {
    const yaml = `${service('type: LoadBalancer, clusterIP: 10.9.0.1, externalIPs: [9.9.9.9]')}status: {loadBalancer: {ingress: [{ip: 7.7.7.7}, {hostname: lb.example.com}]}}\n`;
    expect(serviceOf(yaml)?.attributes?.externalAddresses).toEqual({
      Kubernetes: ['7.7.7.7', 'lb.example.com', '9.9.9.9'],
    });
  });

  it('have the traffic distribution in their spec', () => {
    const spec = `${selectingSpec}, internalTrafficPolicy: Local, trafficDistribution: PreferClose, publishNotReadyAddresses: true`;
    expect(serviceOf(service(spec))?.attributes).toMatchObject({
      ...{ nodeLocal: true, trafficDistribution: 'PreferSameZone', publishNotReadyAddresses: true },
    });
  });

  it('are omitted if no discovery selector selects their namespace', () => {
    const area = document('Namespace', 'shop', '', ', labels: {mesh: "on"}');
    const selectors = (value: string): string => `discoverySelectors: [{matchLabels: {mesh: "${value}"}}]`;
    expect(serviceOf(service(selectingSpec) + area, selectors('on'))).toBeDefined();
    expect(serviceOf(service(selectingSpec) + area, selectors('off'))).toBeUndefined();
    expect(
      serviceOf(
        service(selectingSpec),
        'discoverySelectors: [{matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [shop]}]}]',
      ),
    ).toBeDefined();
  });
});

describe('endpoints of a cluster', () => {
  it('have the properties of their pod and its node', () => {
    const yaml =
      service(selectingSpec) +
      pod('web-5d9c-x', '10.0.0.1', { labels: 'app: web, pod-template-hash: 5d9c, security.istio.io/tlsMode: istio' }) +
      node +
      slice(at('10.0.0.1', toPod('web-5d9c-x')));
    expect(endpointsOf(yaml)).toMatchObject([
      {
        ...{ address: '10.0.0.1', port: 8080, servicePortName: 'http', namespace: 'shop', workloadName: 'web' },
        ...{ serviceAccount: 'spiffe://cluster.local/ns/shop/sa/sa-web', locality: 'eu/eu-1/rack', nodeName: 'n1' },
        ...{ tlsMode: 'istio', clusterId: 'Kubernetes', health: 'healthy', network: '' },
        labels: {
          ...{ app: 'web', 'topology.kubernetes.io/region': 'eu', 'topology.kubernetes.io/zone': 'eu-1' },
          ...{
            'topology.istio.io/subzone': 'rack',
            'topology.istio.io/cluster': 'Kubernetes',
            'kubernetes.io/hostname': 'n1',
          },
        },
      },
    ]);
  });

  it('are assigned to their pod by address if the slice does not reference it', () => {
    const [endpoint] = endpointsOf(service(selectingSpec) + pod('web-0', '10.0.0.1') + slice(at('10.0.0.1')));
    expect(endpoint?.serviceAccount).toContain('sa-web');
  });

  it('are omitted until a referenced pod is known', () => {
    const previous = givenMesh(service(selectingSpec) + slice(at('10.0.0.1', toPod('web-0'))));
    expect(previous.registry.endpoints.get(host)?.get('shop') ?? []).toEqual([]);
    const nextMesh = givenMesh(
      service(selectingSpec) + slice(at('10.0.0.1', toPod('web-0'))) + pod('web-0', '10.0.0.1'),
      {
        previous,
      },
    );
    expect(nextMesh.registry.endpoints.get(host)?.get('shop')).toHaveLength(1);
  });

  it('are omitted for terminated pods', () => {
    expect(
      addresses(
        service(selectingSpec) +
          pod('web-0', '10.0.0.1', { phase: 'Succeeded' }) +
          slice(at('10.0.0.1', toPod('web-0'))),
      ),
    ).toEqual([]);
  });

  it.each([
    ['{}', 'healthy'],
    ['{ready: true}', 'healthy'],
    ['{ready: false}', 'unhealthy'],
    ['{ready: false, serving: true, terminating: true}', 'terminating'],
    ['{ready: false, serving: false, terminating: true}', 'terminating'],
  ])('have with the conditions %s the health %s', (conditions, health) => {
    expect(addresses(service(selectingSpec) + slice(at('10.0.0.1', `, conditions: ${conditions}`)))).toEqual([
      `10.0.0.1 ${health}`,
    ]);
  });

  it('drain if the service has persistent sessions, and are published while unready if configured', () => {
    const draining = slice(at('10.0.0.1', ', conditions: {ready: false, serving: true, terminating: true}'));
    expect(addresses(service(selectingSpec, ', labels: {istio.io/persistent-session: x}') + draining)).toEqual([
      '10.0.0.1 draining',
    ]);
    const unready = slice(at('10.0.0.1', ', conditions: {ready: false}'));
    expect(addresses(service(`${selectingSpec}, publishNotReadyAddresses: true`) + unready)).toEqual([
      '10.0.0.1 healthy',
    ]);
  });

  it('are merged from several slices without duplicates', () => {
    const overlappingSlices =
      slice(`${at('10.0.0.1')}, ${at('10.0.0.2')}`) + slice(`${at('10.0.0.2')}, ${at('10.0.0.3')}`, { name: 'web-2' });
    expect(addresses(service(selectingSpec) + overlappingSlices)).toEqual([
      '10.0.0.1 healthy',
      '10.0.0.2 healthy',
      '10.0.0.3 healthy',
    ]);
  });

  it('are not taken from slices with host names or from slices of multi-cluster services', () => {
    const names = slice(at('a.example.com'), { addressType: 'FQDN' });
    const multicluster = slice(at('10.0.0.1'), {
      name: 'x',
      metadata: ', multicluster.kubernetes.io/service-name: web',
    });
    expect(addresses(service(selectingSpec) + names + multicluster)).toEqual([]);
  });

  it('are taken from Endpoints if there are no EndpointSlices', () => {
    const endpoints = document(
      'Endpoints',
      'web',
      'subsets: [{addresses: [{ip: 10.0.0.1}], notReadyAddresses: [{ip: 10.0.0.2}], ports: [{name: http, port: 8080}]}]',
      inShop,
    );
    expect(addresses(service(selectingSpec) + endpoints)).toEqual(['10.0.0.1 healthy', '10.0.0.2 unhealthy']);
    expect(addresses(service(selectingSpec) + endpoints + slice(at('10.0.0.3')))).toEqual(['10.0.0.3 healthy']);
  });

  it('count once if several slices contain them, and are ready if any of these slices reports so', () => {
    const [notReady, now] = [at('10.0.0.1', ', conditions: {ready: false, terminating: true}'), at('10.0.0.1')];
    const of = (...slices: readonly string[]): string[] =>
      addresses(service(selectingSpec) + slices.map((one, index) => slice(one, { name: `web-${index}` })).join(''));
    expect(of(notReady, now)).toEqual(['10.0.0.1 healthy']);
    expect(of(now, notReady)).toEqual(['10.0.0.1 healthy']);
  });

  it('are used without pod properties if the service has no selector', () => {
    const [endpoint] = endpointsOf(service('clusterIP: 10.9.0.1') + pod('web-0', '10.0.0.1') + slice(at('10.0.0.1')));
    expect(endpoint).toMatchObject({ address: '10.0.0.1', serviceAccount: '', labels: {}, tlsMode: 'disabled' });
  });

  it('have the network of their pod or of the system namespace', () => {
    const system = document('Namespace', 'istio-system', '', ', labels: {topology.istio.io/network: east}');
    const mesh = service(selectingSpec) + slice(at('10.0.0.1'));
    expect(endpointsOf(mesh + pod('web-0', '10.0.0.1') + system)[0]?.network).toBe('east');
    const labelled = pod('web-0', '10.0.0.1', { labels: 'app: web, topology.istio.io/network: west' });
    expect(endpointsOf(mesh + labelled + system)[0]).toMatchObject({
      network: 'west',
      labels: { 'topology.istio.io/network': 'west' },
    });
  });

  it("have the locality in the pod's label, or else of the node", () => {
    const labelled = pod('web-0', '10.0.0.1', { labels: 'app: web, istio-locality: us.us-2' });
    expect(endpointsOf(service(selectingSpec) + labelled + node + slice(at('10.0.0.1')))[0]?.locality).toBe('us/us-2');
  });
});

describe('workloads that both Kubernetes and Istio objects select', () => {
  const entry = (labels = 'app: web'): string =>
    `---\napiVersion: networking.istio.io/v1\nkind: WorkloadEntry\nmetadata: {name: vm, namespace: shop}\nspec: {address: 10.1.0.1, labels: {${labels}}, ports: {web: 9090}, serviceAccount: vm}\n`;
  const serviceEntry = `---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: se, namespace: shop}
spec:
  hosts: [se.example.com]
  resolution: STATIC
  ports: [{number: 80, name: web, protocol: HTTP}]
  workloadSelector: {labels: {app: web}}
`;

  it('serve a Kubernetes Service that selects a WorkloadEntry', () => {
    expect(endpointsOf(service(selectingSpec) + entry())).toMatchObject([
      { address: '10.1.0.1', port: 9090, serviceAccount: 'spiffe://cluster.local/ns/shop/sa/vm', tlsMode: 'istio' },
    ]);
    expect(endpointsOf(service(selectingSpec) + entry('app: other'))).toEqual([]);
  });

  it("serve a ServiceEntry that selects a pod as long as the pod's labels match", () => {
    const of = (mesh: ReturnType<typeof givenMesh>): unknown =>
      mesh.registry.endpoints
        .get('se.example.com')
        ?.get('shop')
        ?.map(({ address, port }) => `${address}:${port}`) ?? [];
    const previous = givenMesh(serviceEntry + pod('web-0', '10.0.0.1') + entry());
    expect(of(previous)).toEqual(['10.0.0.1:8080', '10.1.0.1:9090']);
    const nextMesh = givenMesh(serviceEntry + pod('web-0', '10.0.0.1', { labels: 'app: x' }) + entry(), {
      previous,
    });
    expect(of(nextMesh)).toEqual(['10.1.0.1:9090']);
  });

  it('ignore a reported property that is an object with its own `toString`', () => {
    const objectStatus = '{toString: 1, valueOf: 1}';
    const unhealthy = `${entry()}status: {conditions: [{type: Healthy, status: ${objectStatus}}]}\n`;
    expect(endpointsOf(service(selectingSpec) + unhealthy)).toMatchObject([{ health: 'healthy' }]);
    const metadata = {
      POD_PORTS: [{ name: 'web', containerPort: 7070, protocol: { toString: 1 } }, { name: { toString: 1 } }],
    };
    const proxy = { ...givenProxy({ namespace: 'shop', labels: { app: 'web' }, metadata }), clusterId: 'Kubernetes' };
    const targets = givenMesh(service(selectingSpec)).context.serviceTargetsOf(proxy);
    expect(targets.map(({ targetPort }) => targetPort)).toEqual([7070]);
  });

  it('serve a ServiceEntry until they are deleted, and a Service as its slices specify', () => {
    const ending = pod('web-0', '10.0.0.1').replace(inShop, `${inShop}, deletionTimestamp: "2026-01-01T00:00:00Z"`);
    const mesh = (web: string, last?: ReturnType<typeof givenMesh>) =>
      givenMesh(
        serviceEntry + service(selectingSpec) + slice(at('10.0.0.1', toPod('web-0'))) + web,
        last ? { previous: last } : {},
      );
    const healthOf = ({ registry }: ReturnType<typeof givenMesh>): unknown =>
      ['se.example.com', host].map((name) =>
        registry.endpoints
          .get(name)
          ?.get('shop')
          ?.map(({ health }) => health),
      );
    const previous = mesh(pod('web-0', '10.0.0.1'));
    expect(healthOf(previous)).toEqual([['healthy'], ['healthy']]);
    expect(healthOf(mesh(ending, previous))).toEqual([['unhealthy'], ['healthy']]);
  });

  it("are found for a proxy by pod name, or else by address, or else by the proxy's metadata", () => {
    const mesh = givenMesh(service(selectingSpec) + pod('web-0', '10.0.0.1') + entry() + node);
    const servedTargets = (proxyFields: object, ip: string): unknown =>
      mesh.context
        .serviceTargetsOf({
          ...givenProxy({ ip, namespace: 'shop' }),
          clusterId: 'Kubernetes',
          name: 'x.shop',
          ...proxyFields,
        })
        .map((target) => `${target.service.hostname} ${target.port.number} ${target.targetPort}`);
    expect(servedTargets({ name: 'web-0.shop' }, '10.5.5.5')).toEqual([`${host} 80 8080`]);
    expect(servedTargets({}, '10.0.0.1')).toEqual([`${host} 80 8080`]);
    expect(servedTargets({}, '10.1.0.1')).toEqual([`${host} 80 9090`]);
    const reportedNode = { labels: { app: 'web' }, metadata: { POD_PORTS: '[{"name":"web","containerPort":7070}]' } };
    expect(servedTargets(reportedNode, '10.6.6.6')).toEqual([`${host} 80 7070`]);
    expect(servedTargets({ clusterId: 'other' }, '10.0.0.1')).toEqual([]);
    const proxy = { ...givenProxy({ ip: '10.0.0.1', namespace: 'shop' }), name: 'web-0.shop' };
    expect(mesh.context.workloadOf(proxy)).toEqual({ labels: { app: 'web' }, locality: 'eu/eu-1/rack' });
  });

  it('resolve a named target port to the first TCP port with this name, in containers before sidecar containers', () => {
    const port = (name: string, number: number, protocol = 'TCP'): string =>
      `{name: ${name}, containerPort: ${number}, protocol: ${protocol}}`;
    const servedTargets = (...[containers, initContainers = '']: [string, string?]): unknown => {
      const spec = `containers: [${containers}], initContainers: [${initContainers}]`;
      const web = document(
        'Pod',
        'web-0',
        `spec: {${spec}}\nstatus: {phase: Running, podIP: 10.0.0.1}`,
        `${inShop}, labels: {app: web}`,
      );
      const proxy = { ...givenProxy({ ip: '10.0.0.1', namespace: 'shop' }), name: 'web-0.shop' };
      const { context } = givenMesh(service(selectingSpec) + web);
      return context.serviceTargetsOf(proxy).map(({ targetPort }) => targetPort);
    };
    expect(servedTargets(`{ports: [${port('web', 1)}]}, {ports: [${port('web', 2)}]}`)).toEqual([1]);
    expect(servedTargets(`{ports: [${port('web', 1, 'UDP')}]}, {ports: [${port('web', 2)}]}`)).toEqual([2]);
    expect(
      servedTargets('', `{ports: [${port('web', 1)}]}, {restartPolicy: Always, ports: [${port('web', 2)}]}`),
    ).toEqual([2]);
    expect(
      servedTargets(`{ports: [${port('web', 1)}]}`, `{restartPolicy: Always, ports: [${port('web', 2)}]}`),
    ).toEqual([1]);
  });

  it('do not serve a port with an undeclared name such as `constructor`', () => {
    const constructorPort = service(selectingSpec)
      .replace('name: http', 'name: constructor')
      .replace('targetPort: web', 'targetPort: valueof');
    expect(endpointsOf(constructorPort + entry())).toEqual([]);
    expect(endpointsOf(constructorPort.replace('valueof', 'constructor') + entry())).toEqual([]);
    const { registry } = givenMesh(serviceEntry.replace('name: web', 'name: constructor') + entry());
    expect(registry.endpoints.get('se.example.com')?.get('shop')).toMatchObject([{ port: 80 }]);
    const proxy = { ...givenProxy({ namespace: 'shop', labels: { app: 'web' } }), clusterId: 'Kubernetes' };
    expect(
      givenMesh(service(selectingSpec).replace('targetPort: web', 'targetPort: constructor')).context.serviceTargetsOf(
        proxy,
      ),
    ).toEqual([]);
  });

  it('are network gateways if their service has the label', () => {
    const gateway = (labels: string): string =>
      `${service('type: LoadBalancer, clusterIP: 10.9.0.1', `, labels: {${labels}}`)}status: {loadBalancer: {ingress: [{ip: 7.7.7.7}]}}\n`;
    expect(givenMesh(gateway('topology.istio.io/network: west')).registry.gateways.allGateways).toEqual([
      { network: 'west', cluster: 'Kubernetes', address: '7.7.7.7', port: 15443 },
    ]);
    expect(
      givenMesh(
        gateway('topology.istio.io/network: west, networking.istio.io/gatewayPort: "15000"'),
      ).registry.gateways.gatewaysTo('west', 'any'),
    ).toMatchObject([{ port: 15000 }]);
  });
});
