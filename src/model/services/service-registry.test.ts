import { describe, expect, it } from 'vitest';
import { givenMesh } from '../../../test/fixtures/given-mesh.ts';

const header = (kind: string, name: string, namespace = 'shop', labels = '{}'): string =>
  `---\napiVersion: networking.istio.io/v1\nkind: ${kind}\nmetadata: {name: ${name}, namespace: ${namespace}, labels: ${labels}}\n`;

const serviceEntry = (spec: string, name = 'se', namespace = 'shop'): string =>
  `${header('ServiceEntry', name, namespace)}spec:\n${spec}`;

const workload = (name: string, spec: string, extraFields = ''): string =>
  `${header('WorkloadEntry', name)}spec: ${spec}\n${extraFields}`;

describe('a service registry of ServiceEntries', () => {
  it('builds a service for each host and address, treating single-address ranges as addresses', () => {
    const { registry } = givenMesh(
      serviceEntry(`
  hosts: [a.b, c.d]
  addresses: [10.0.0.1/32, 10.1.0.0/16, fd00::1/128]
  ports: [{number: 80, name: http, protocol: HTTP}]
  subjectAltNames: [spiffe://x]
  exportTo: ["."]
`),
    );
    expect(registry.services.map(({ hostname, defaultAddress }) => `${hostname} ${defaultAddress}`)).toEqual([
      'a.b 10.0.0.1',
      'a.b 10.1.0.0/16',
      'a.b fd00::1',
      'c.d 10.0.0.1',
      'c.d 10.1.0.0/16',
      'c.d fd00::1',
    ]);
    expect(registry.services[0]).toEqual({
      hostname: 'a.b',
      namespace: 'shop',
      defaultAddress: '10.0.0.1',
      addresses: ['10.0.0.1'],
      ports: [{ name: 'http', number: 80, protocol: 'HTTP' }],
      resolution: 'Passthrough',
      meshExternal: true,
      serviceAccounts: ['spiffe://x'],
      creationTime: expect.any(Number),
      exportTo: new Set(['.']),
      labels: {},
      registry: 'External',
      origin: { kind: 'ServiceEntry', namespace: 'shop', name: 'se' },
    });
  });

  it("merges a WorkloadEntry's labels with its metadata labels, which take precedence", () => {
    const entry = (labels: string, spec: string): string =>
      `${header('WorkloadEntry', 'w', 'shop', labels)}spec: ${spec}\n`;
    const selectingEntry = serviceEntry(
      '  hosts: [a.b]\n  resolution: STATIC\n  ports: [{number: 80, name: http}]\n  workloadSelector: {labels: {app: web}}\n',
    );
    const endpointsFor = (labels: string, spec: string) =>
      givenMesh(selectingEntry + entry(labels, spec))
        .registry.endpoints.get('a.b')
        ?.get('shop') ?? [];
    expect(
      endpointsFor('{app: web, version: v1}', '{address: 10.0.0.1, labels: {version: v2, team: x}}'),
    ).toMatchObject([{ labels: { app: 'web', version: 'v1', team: 'x' } }]);
    expect(endpointsFor('{app: other}', '{address: 10.0.0.1, labels: {app: web}}')).toEqual([]);
    const knownLabels =
      '{app: web, security.istio.io/tlsMode: istio, topology.kubernetes.io/region: r, topology.istio.io/network: n2}';
    expect(endpointsFor(knownLabels, '{address: 10.0.0.1}')).toMatchObject([
      { tlsMode: 'istio', locality: 'r', network: 'n2' },
    ]);
  });

  it('builds one service without an address if no address is specified', () => {
    const { registry } = givenMesh(serviceEntry('  hosts: [a.b]\n  ports: [{number: 1, name: x}]\n'));
    expect(registry.services).toMatchObject([{ defaultAddress: '0.0.0.0', addresses: [] }]);
  });

  it.each([
    ['NONE', 'Passthrough'],
    ['STATIC', 'ClientSideLB'],
    ['DNS', 'DNSLB'],
    ['DNS_ROUND_ROBIN', 'DNSRoundRobinLB'],
  ])('converts resolution %s to %s', (resolution, expected) => {
    const { registry } = givenMesh(
      serviceEntry(`  hosts: [a.b]\n  resolution: ${resolution}\n  ports: [{number: 1, name: x}]\n`),
    );
    expect(registry.services[0]?.resolution).toBe(expected);
  });

  it('determines the port of an endpoint by name, then by target port, then by number', () => {
    const { registry } = givenMesh(
      serviceEntry(`
  hosts: [a.b]
  resolution: STATIC
  ports:
  - {number: 80, name: named, protocol: HTTP}
  - {number: 81, name: targeted, protocol: HTTP, targetPort: 8081}
  - {number: 82, name: plain, protocol: HTTP}
  endpoints:
  - {address: 10.0.0.1, ports: {named: 9000}, labels: {version: v1}, locality: eu/a, weight: 3, serviceAccount: web, network: n}
`),
    );
    const endpoints = registry.endpoints.get('a.b')?.get('shop') ?? [];
    expect(endpoints.map(({ servicePortName, port }) => [servicePortName, port])).toEqual([
      ['named', 9000],
      ['targeted', 8081],
      ['plain', 82],
    ]);
    expect(endpoints[0]).toMatchObject({
      address: '10.0.0.1',
      labels: { version: 'v1' },
      locality: 'eu/a',
      network: 'n',
      weight: 3,
      serviceAccount: 'spiffe://cluster.local/ns/shop/sa/web',
      tlsMode: 'istio',
      health: 'healthy',
      namespace: 'shop',
      clusterId: 'Kubernetes',
    });
  });

  it('gives Unix sockets port 0', () => {
    const { registry } = givenMesh(
      serviceEntry(
        '  hosts: [a.b]\n  resolution: STATIC\n  ports: [{number: 1, name: x}]\n  endpoints: [{address: "unix:///s"}]\n',
      ),
    );
    expect(registry.endpoints.get('a.b')?.get('shop')).toMatchObject([{ address: 'unix:///s', port: 0 }]);
  });

  it('uses a host that DNS resolves as its own endpoint, without mutual TLS', () => {
    const { registry } = givenMesh(
      serviceEntry('  hosts: [a.b, c.d]\n  resolution: DNS\n  ports: [{number: 80, name: x, targetPort: 8080}]\n'),
    );
    expect(registry.endpoints.get('c.d')?.get('shop')).toMatchObject([
      { address: 'c.d', port: 8080, tlsMode: 'disabled' },
    ]);
  });

  it('reads mutual TLS and locality from labels unless other fields specify them', () => {
    const labels =
      '{security.istio.io/tlsMode: istio, topology.kubernetes.io/region: r, topology.istio.io/network: n2}';
    const { registry } = givenMesh(
      serviceEntry(
        `  hosts: [a.b]\n  resolution: STATIC\n  ports: [{number: 1, name: x}]\n  endpoints: [{address: 1.2.3.4, labels: ${labels}}]\n`,
      ),
    );
    expect(registry.endpoints.get('a.b')?.get('shop')).toMatchObject([
      { tlsMode: 'istio', locality: 'r', network: 'n2' },
    ]);
  });

  it('selects WorkloadEntries in its own namespace by workload labels', () => {
    const { registry } = givenMesh(
      serviceEntry(
        '  hosts: [a.b]\n  resolution: STATIC\n  ports: [{number: 80, name: http, protocol: HTTP}]\n  workloadSelector: {labels: {app: web}}\n',
      ) +
        workload('w1', '{address: 10.0.0.1, labels: {app: web, version: v1}, ports: {http: 8080}}') +
        workload('w2', '{address: 10.0.0.2, labels: {app: other}}') +
        workload(
          'w3',
          '{address: 10.0.0.3, labels: {app: web}}',
          'status: {conditions: [{type: Healthy, status: "False"}]}\n',
        ) +
        workload('w4', '{address: 10.0.0.4, labels: {app: web}}').replace('namespace: shop', 'namespace: other'),
    );
    const endpoints = registry.endpoints.get('a.b')?.get('shop') ?? [];
    expect(endpoints.map(({ address, port, workloadName, health }) => [address, port, workloadName, health])).toEqual([
      ['10.0.0.1', 8080, 'w1', 'healthy'],
      ['10.0.0.3', 80, 'w3', 'unhealthy'],
    ]);
  });

  it('merges the endpoints of two objects with equal host and namespace', () => {
    const one = (name: string, ip: string): string =>
      serviceEntry(
        `  hosts: [a.b]\n  resolution: STATIC\n  ports: [{number: 1, name: x}]\n  endpoints: [{address: ${ip}}]\n`,
        name,
      );
    const { registry } = givenMesh(one('a', '1.1.1.1') + one('b', '2.2.2.2'));
    expect(
      registry.endpoints
        .get('a.b')
        ?.get('shop')
        ?.map(({ address }) => address),
    ).toEqual(['1.1.1.1', '2.2.2.2']);
  });

  it('lists services oldest first', () => {
    const aged = (name: string, year: number): string =>
      serviceEntry(`  hosts: [${name}.b]\n  ports: [{number: 1, name: x}]\n`, name).replace(
        'labels: {}',
        `creationTimestamp: ${year}-01-01T00:00:00Z`,
      );
    const { registry } = givenMesh(aged('young', 2024) + aged('old', 2020));
    expect(registry.services.map(({ hostname }) => hostname)).toEqual(['old.b', 'young.b']);
  });

  it('reuses unchanged parts', () => {
    const one = (name: string, ip: string): string =>
      serviceEntry(
        `  hosts: [${name}.b]\n  resolution: STATIC\n  ports: [{number: 1, name: x}]\n  endpoints: [{address: ${ip}}]\n`,
        name,
      );
    const previous = givenMesh(one('a', '1.1.1.1') + one('b', '2.2.2.2'));
    const nextMesh = givenMesh(one('a', '1.1.1.1') + one('b', '2.2.2.3'), { previous });
    expect(nextMesh.registry.endpoints.get('a.b')?.get('shop')).toBe(
      previous.registry.endpoints.get('a.b')?.get('shop'),
    );
    expect(nextMesh.registry.endpoints.get('b.b')?.get('shop')).not.toEqual(
      previous.registry.endpoints.get('b.b')?.get('shop'),
    );
  });
});
