import { describe, expect, it } from 'vitest';
import { createAuthority } from '../../../test/certs/authority.ts';
import { GivenWorld, givenObject } from '../../../test/fixtures/given-world.ts';
import type { Config } from '../../model/config/config.ts';
import { clusterType, routeType } from '../index.ts';
import { buildClusters } from './build.ts';

const authority = createAuthority();
const host = 'outbound|80||web.shop.svc.cluster.local';
const service = givenObject('Service', 'shop', 'web', {
  spec: {
    type: 'ClusterIP',
    clusterIP: '10.0.0.1',
    clusterIPs: ['10.0.0.1'],
    externalIPs: [],
    ports: [
      { name: 'http', port: 80, protocol: 'TCP' },
      { name: 'admin', port: 81, protocol: 'TCP' },
    ],
  },
  status: { loadBalancer: { ingress: [] } },
});
const configMap = (certificate: string, name = 'ca'): Config =>
  givenObject('ConfigMap', 'shop', name, { data: { 'ca.crt': certificate }, binaryData: {} });

interface Written {
  readonly name?: string;
  readonly age?: number;
  readonly section?: string;
  readonly validation?: object;
}

function policy({ name = 'tls', age = 0, section, validation = {} }: Written = {}): Config {
  const target = { group: '', kind: 'Service', name: 'web', ...(section && { sectionName: section }) };
  const spec = {
    targetRefs: [target],
    validation: {
      ...{
        hostname: 'web.test',
        subjectAltNames: [],
        caCertificateRefs: [{ group: '', kind: 'ConfigMap', name: 'ca' }],
      },
      ...validation,
    },
    options: {},
  };
  return givenObject('BackendTLSPolicy', 'shop', name, spec, age);
}

function socketOf(
  objects: readonly Config[],
  { cluster = host, type = 'router' as 'router' | 'sidecar' } = {},
): string {
  const node = new GivenWorld([service, ...objects]).connect('10.9.0.1', { namespace: 'shop', type });
  const clusterResource = buildClusters(node.shape, node.context).find(({ name }) => name === cluster)!;
  const { transportSocket } = clusterResource.message as {
    transportSocket?: { typedConfig: unknown; configType?: { value?: { value: Uint8Array } } };
  };
  if (transportSocket === undefined) return 'plaintext';
  return Buffer.from(transportSocket.configType!.value!.value).toString('latin1');
}

const system = { wellKnownCACertificates: 'System', caCertificateRefs: [] };

describe('cluster of a gateway for a Service with a BackendTLSPolicy', () => {
  it('the gateway uses TLS with the SNI and CA certificates from the policy', () => {
    const socket = socketOf([policy(), configMap(authority.certificate)]);
    expect(socket).toContain('web.test');
    expect(socket).toContain(authority.certificate);
  });

  it('the gateway trusts the system roots and accepts the names from the policy', () => {
    const subjectAltNames = [{ type: 'URI', uri: 'spiffe://a/b' }];
    const socket = socketOf([policy({ validation: { ...system, subjectAltNames } })]);
    expect(socket).toContain('ca-certificates.crt');
    expect(socket).toContain('spiffe://a/b');
  });

  const refusingHash = '0'.repeat(64);
  it.each<[string, readonly Config[]]>([
    ['does not exist', [policy()]],
    ['has no certificate', [policy(), configMap('nonsense')]],
    [
      'has an unsupported kind',
      [policy({ validation: { caCertificateRefs: [{ group: '', kind: 'Secret', name: 'ca' }] } })],
    ],
    [
      'is an unsupported well-known name',
      [policy({ validation: { wellKnownCACertificates: 'example.com/other', caCertificateRefs: [] } })],
    ],
  ])(
    "the gateway fails all connections, without falling back to plaintext, if the policy's CA reference %s",
    (_, objects) => {
      expect(socketOf(objects)).toContain(refusingHash);
    },
  );

  it('a policy for a named port applies only to that port, and takes precedence over one for the Service', () => {
    const other = 'outbound|81||web.shop.svc.cluster.local';
    expect(socketOf([policy({ section: 'http', validation: system })], { cluster: other })).not.toContain('web.test');
    const bothPolicies = [
      policy({ validation: system }),
      policy({ name: 'p', age: 9, section: 'admin', validation: { ...system, hostname: 'admin.test' } }),
    ];
    expect(socketOf(bothPolicies, { cluster: other })).toContain('admin.test');
    expect(socketOf(bothPolicies)).toContain('web.test');
  });

  it('the oldest policy applies, or the first by name if several have the same age', () => {
    const policyNamed = (name: string, age: number) =>
      policy({ name, age, validation: { ...system, hostname: `${name}.test` } });
    expect(socketOf([policyNamed('a', 5), policyNamed('b', 1)])).toContain('b.test');
    expect(socketOf([policyNamed('b', 1), policyNamed('a', 1)])).toContain('a.test');
  });

  it('a policy overrides the TLS settings of a DestinationRule at gateways, but not at sidecars', () => {
    const rule = givenObject('DestinationRule', 'shop', 'web', {
      host: 'web.shop.svc.cluster.local',
      trafficPolicy: { tls: { mode: 'DISABLE' } },
    });
    expect(socketOf([rule, policy({ validation: system })])).toContain('web.test');
    expect(socketOf([rule, policy({ validation: system })], { type: 'sidecar' })).toBe('plaintext');
  });
});

describe('changes of a BackendTLSPolicy', () => {
  const secondAuthority = createAuthority('second');
  const routerNode = { namespace: 'shop', type: 'router' } as const;

  it("a gateway's clusters depend only on the policy and its ConfigMap", () => {
    const world = new GivenWorld([service]);
    const [gateway, sidecar] = [
      world.connect('10.9.0.1', routerNode),
      world.connect('10.9.0.2', { namespace: 'shop' }),
    ];
    const version = () => gateway.get(clusterType, '*')!.resources.get(host)!.version;
    const versions = [version()];
    const changes: [Config, readonly string[]][] = [
      [policy(), [clusterType]],
      [configMap(authority.certificate), [clusterType]],
      [configMap(secondAuthority.certificate), [clusterType]],
    ];
    for (const [object, types] of changes) {
      const change = world.put(object);
      expect(gateway.typesToPush(change, [clusterType])).toEqual(types);
      expect(sidecar.typesToPush(change, [clusterType])).toEqual([]);
      versions.push(version());
    }
    expect(new Set(versions).size).toBe(4);
    expect(gateway.typesToPush(world.put(configMap('x', 'other')), [clusterType])).toEqual([]);
    expect(gateway.typesToPush(world.change({ 'BackendTLSPolicy/shop/tls': undefined }), [clusterType])).toEqual([
      clusterType,
    ]);
    expect(version()).toBe(versions[0]);
  });
});

describe('BackendTLSPolicy for an ExternalName Service', () => {
  const gatewayNode = { namespace: 'shop', type: 'router', labels: { istio: 'gateway' } } as const;
  const alias = givenObject('Service', 'shop', 'front', {
    spec: {
      ...{ type: 'ExternalName', externalName: 'web.shop.svc.cluster.local', externalIPs: [], clusterIPs: [] },
      ports: [{ name: 'named', port: 80, protocol: 'TCP' }],
    },
    status: { loadBalancer: { ingress: [] } },
  });
  const aliasCluster = 'outbound|80||front.shop.svc.cluster.local';
  const policyOf = (section?: string): Config => {
    const target = { group: '', kind: 'Service', name: 'front', ...(section && { sectionName: section }) };
    const validation = {
      hostname: 'front.test',
      wellKnownCACertificates: 'System',
      caCertificateRefs: [],
      subjectAltNames: [],
    };
    return givenObject('BackendTLSPolicy', 'shop', 'tls', { targetRefs: [target], validation, options: {} });
  };
  const routing = [
    givenObject('Gateway', 'shop', 'edge', {
      selector: { istio: 'gateway' },
      servers: [{ port: { number: 8080, name: 'http', protocol: 'HTTP' }, hosts: ['*'] }],
    }),
    givenObject('VirtualService', 'shop', 'edge', {
      ...{ hosts: ['*'], gateways: ['edge'] },
      http: [{ route: [{ destination: { host: 'front', port: { number: 80 } } }] }],
    }),
  ];

  it('a gateway applies the policy only to the alias, at the named port', () => {
    for (const section of [undefined, 'named']) {
      expect(socketOf([alias, policyOf(section)], { cluster: aliasCluster })).toContain('front.test');
      expect(socketOf([alias, policyOf(section)])).toBe('plaintext');
    }
    expect(socketOf([alias, policy({ validation: system }), policyOf('other')], { cluster: aliasCluster })).toContain(
      'web.test',
    );
  });

  it('a gateway never uses plaintext while the policy is created or deleted, because the routes change with it', () => {
    const world = new GivenWorld([service, alias, ...routing]);
    const gateway = world.connect('10.9.0.1', gatewayNode);
    const route = (): string => {
      const { sotwFrame, tailChunks } = gateway.get(routeType, ['http.8080'])!.resources.get('http.8080')!;
      return Buffer.concat([sotwFrame, ...tailChunks]).toString('latin1');
    };
    expect(route()).toContain(host);
    const pushedTypes = (change: ReturnType<GivenWorld['put']>) =>
      gateway.typesToPush(change, [clusterType, routeType]);
    expect(pushedTypes(world.put(policyOf()))).toEqual([clusterType, routeType]);
    expect(route()).toContain(aliasCluster);
    expect(pushedTypes(world.change({ 'BackendTLSPolicy/shop/tls': undefined }))).toEqual([clusterType, routeType]);
    expect(route()).toContain(host);
  });
});
