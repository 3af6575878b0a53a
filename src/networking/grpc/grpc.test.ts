import { type Any, anyUnpack } from '@bufbuild/protobuf/wkt';
import { describe, expect, it } from 'vitest';
import { clusterType, endpointType, listenerType, routeType } from '../../../machines/discovery/xds/ads-types.ts';
import { givenMesh, givenShape } from '../../../test/fixtures/given-mesh.ts';
import { type Cluster, Cluster_DiscoveryType, Cluster_LbPolicy } from '../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import type { ClusterLoadAssignment } from '../../gen/envoy/config/endpoint/v3/endpoint_pb.ts';
import type { Listener } from '../../gen/envoy/config/listener/v3/listener_pb.ts';
import type { RouteConfiguration } from '../../gen/envoy/config/route/v3/route_pb.ts';
import { HTTPFaultSchema } from '../../gen/envoy/extensions/filters/http/fault/v3/fault_pb.ts';
import { RBACSchema } from '../../gen/envoy/extensions/filters/http/rbac/v3/rbac_pb.ts';
import { HttpConnectionManagerSchema } from '../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts';
import { WrrLocalitySchema } from '../../gen/envoy/extensions/load_balancing_policies/wrr_locality/v3/wrr_locality_pb.ts';
import {
  DownstreamTlsContextSchema,
  UpstreamTlsContextSchema,
} from '../../gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.ts';
import { grpcGenerators, grpcLimitations } from './index.ts';
import { limitationText } from './limitation.ts';

const host = 'echo.shop.svc.cluster.local';
const cluster = `outbound|7070||${host}`;
const service = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: echo, namespace: shop }
spec:
  hosts: [${host}]
  location: MESH_INTERNAL
  resolution: STATIC
  addresses: [10.96.0.7]
  ports: [{ number: 7070, name: grpc, protocol: GRPC, targetPort: 8080 }]
  subjectAltNames: [spiffe://cluster.local/ns/shop/sa/echo]
  endpoints: [{ address: 10.0.0.1, labels: { version: v1 } }, { address: 10.0.0.2, locality: r/z, labels: { version: v2 } }, { address: 10.0.0.1, labels: { version: v1 } }]
---
`;

const object = (kind: string, spec: object, group = 'networking'): string =>
  `${JSON.stringify({ apiVersion: `${group}.istio.io/v1`, kind, metadata: { name: 'echo', namespace: 'shop' }, spec })}\n---\n`;
const rule = (spec: object): string => object('DestinationRule', { host, ...spec });
const route = (http: object): string =>
  object('VirtualService', { hosts: [host], http: [{ route: [{ destination: { host } }], ...http }] });

function generatorsFor(yaml: string, node: Parameters<typeof givenShape>[0] = {}) {
  const { context } = givenMesh(service + yaml);
  const nodeFields = { namespace: 'shop', ip: '10.0.0.1', ...node };
  const shape = givenShape({ ...nodeFields, metadata: { GENERATOR: 'grpc', ...nodeFields.metadata } }, context);
  const one = <Message>(typeUrl: string, name: string) =>
    grpcGenerators.get(typeUrl)!.build(shape, context, [name])[0]?.message as Message | undefined;
  return {
    listener: (name: string) => one<Listener>(listenerType, name),
    routes: (name = cluster) => one<RouteConfiguration>(routeType, name),
    cluster: (name = cluster) => one<Cluster>(clusterType, name),
    endpoints: (name = cluster) => one<ClusterLoadAssignment>(endpointType, name),
    limitations: (typeUrl: string, name = cluster) =>
      grpcLimitations(typeUrl, shape, context, [name]).map(limitationText),
  };
}

describe('listener of a gRPC client', () => {
  it.each([1_000, 1_000_000])(
    'no listener is built for a host of %d characters, and the reason does not repeat the host',
    (length) => {
      const name = `${'a'.repeat(length)}:7070`;
      expect(generatorsFor('').listener(name)).toBeUndefined();
      const [text = '', ...otherTexts] = generatorsFor('').limitations(listenerType, name);
      expect(otherTexts).toEqual([]);
      expect(text).toMatch(/^target "a{256}": host must have at most 253 characters, got \d+$/);
    },
  );

  it.each([`${host}:7070`, 'echo.shop.svc:7070', 'echo.shop:7070', 'echo:7070', 'echo'])(
    'the target %s has a listener with the same name',
    (name) => {
      const listener = generatorsFor('').listener(name)!;
      expect(listener.name).toBe(name);
      const manager = anyUnpack(listener.apiListener!.apiListener!, HttpConnectionManagerSchema)!;
      expect(manager.routeSpecifier).toMatchObject({ case: 'rds', value: { routeConfigName: cluster } });
      expect(manager.httpFilters.map(({ name: filter }) => filter)).toEqual([
        'envoy.filters.http.fault',
        'envoy.filters.http.router',
      ]);
      expect(listener.filterChains).toEqual([]);
    },
  );

  it.each([
    ['nothing:7070', 'no service nothing is visible to this client'],
    ['echo:1', `${host} has no port 1`],
    ['echo:7070:1', 'target must be a host name with an optional port'],
    ['', 'target must be a host name with an optional port'],
  ])('the target %j has no listener', (name, reason) => {
    expect(generatorsFor('').listener(name)).toBeUndefined();
    expect(generatorsFor('').limitations(listenerType, name)).toEqual([`target ${JSON.stringify(name)}: ${reason}`]);
  });

  it('the target must contain the namespace if the service is in another namespace', () => {
    const bankGenerators = generatorsFor('', { namespace: 'bank' });
    expect(bankGenerators.listener('echo:7070')).toBeUndefined();
    expect(bankGenerators.listener('echo.shop:7070')).toBeDefined();
  });
});

describe('gRPC route configuration of a port', () => {
  it('the route configuration has one virtual host, with the service names with and without port as domains', () => {
    const { name, virtualHosts } = generatorsFor('').routes()!;
    expect(name).toBe(cluster);
    expect(virtualHosts).toHaveLength(1);
    expect(virtualHosts[0]!.domains).toEqual(
      expect.arrayContaining([`${host}:7070`, host, 'echo:7070', 'echo.shop:7070']),
    );
    expect(virtualHosts[0]!.routes[0]).toMatchObject({ action: { value: { clusterSpecifier: { value: cluster } } } });
  });

  it.each([`outbound|7071||${host}`, 'outbound|7070||nothing.test', `outbound|7070|v1|${host}`, '7070', ''])(
    'the name %j has no route configuration',
    (name) => expect(generatorsFor('').routes(name)).toBeUndefined(),
  );

  it('a route has its timeout as max_stream_duration, and only retry conditions that gRPC supports', () => {
    const retries = { attempts: 3, retryOn: 'connect-failure,unavailable,5xx,internal', perTryTimeout: '1s' };
    const mesh = generatorsFor(route({ timeout: '2s', retries }));
    const action = mesh.routes()!.virtualHosts[0]!.routes[0]!.action;
    expect(action.value).toMatchObject({
      maxStreamDuration: { maxStreamDuration: { seconds: 2n } },
      retryPolicy: { retryOn: 'unavailable,internal', numRetries: 3, retryHostPredicate: [] },
    });
    expect(action.value).not.toHaveProperty('timeout');
    expect(mesh.limitations(routeType)).toEqual([
      'VirtualService shop/echo spec.http[0]: retries.perTryTimeout is ignored',
    ]);
  });

  it('a route has no retry policy if gRPC supports none of its conditions', () => {
    const { action } = generatorsFor(route({ retries: { attempts: 3, retryOn: '5xx' } })).routes()!.virtualHosts[0]!
      .routes[0]!;
    expect(action.value).not.toHaveProperty('retryPolicy');
  });

  it.each([
    ['a query parameter', { queryParams: { a: { exact: 'b' } } }, 'gRPC calls have no query parameters'],
    ['a method that no call has', { method: { exact: 'GET' } }, 'the method of gRPC calls is POST'],
    ['a scheme', { scheme: { exact: 'https' } }, 'gRPC cannot check scheme'],
  ])('a route that matches %s is omitted, because gRPC would match all calls', (_, match, reason) => {
    const mesh = generatorsFor(route({ match: [match] }));
    expect(mesh.routes()!.virtualHosts[0]!.routes).toEqual([]);
    expect(mesh.limitations(routeType)).toEqual([
      `VirtualService shop/echo spec.http[0]: the match is left out: ${reason}`,
    ]);
  });

  it('a route is kept if it matches the method POST, which all calls have', () => {
    expect(
      generatorsFor(route({ match: [{ method: { exact: 'POST' } }] })).routes()!.virtualHosts[0]!.routes[0]!.match!
        .headers,
    ).toEqual([]);
  });

  it.each([
    ['mirror', { mirror: { host } }, 'mirroring is ignored'],
    ['rewrite', { rewrite: { uri: '/x' } }, 'rewrite of the path is ignored'],
    ['headers', { headers: { request: { set: { a: 'b' } } } }, 'changes of headers are ignored'],
    ['corsPolicy', { corsPolicy: { allowOrigins: [{ exact: '*' }] } }, 'corsPolicy is ignored'],
    ['redirect', { route: undefined, redirect: { uri: '/x' } }, 'calls fail: gRPC has no redirect'],
    ['directResponse', { route: undefined, directResponse: { status: 503 } }, 'calls fail: gRPC has no directResponse'],
  ])('a route with a feature that gRPC does not support is reported: %s', (_, http, text) => {
    expect(generatorsFor(route(http)).limitations(routeType)).toEqual([
      `VirtualService shop/echo spec.http[0]: ${text}`,
    ]);
  });
});

it.each([
  ['redirect', { route: undefined, redirect: { uri: '/x' } }],
  ['directResponse', { route: undefined, directResponse: { status: 403 } }],
])('calls on a route with %s are aborted with UNAVAILABLE, in a format that all clients accept', (_, http) => {
  const [built] = generatorsFor(route(http)).routes()!.virtualHosts[0]!.routes;
  expect(built!.action).toMatchObject({
    case: 'route',
    value: { clusterSpecifier: { case: 'cluster', value: cluster } },
  });
  const { abort } = anyUnpack(built!.typedPerFilterConfig['envoy.filters.http.fault']!, HTTPFaultSchema)!;
  expect(abort).toMatchObject({ errorType: { case: 'grpcStatus', value: 14 }, percentage: { numerator: 100 } });
});

describe('cluster for gRPC', () => {
  const policies = ({ loadBalancingPolicy }: Cluster): readonly string[] => {
    const [first] = loadBalancingPolicy!.policies;
    const { endpointPickingPolicy } = anyUnpack(first!.typedExtensionConfig!.typedConfig!, WrrLocalitySchema)!;
    return endpointPickingPolicy!.policies.map(
      ({ typedExtensionConfig }) => typedExtensionConfig!.name.split('.').at(-1)!,
    );
  };

  it('the cluster requests endpoints over ADS by its own name, uses plaintext, and has no request limit', () => {
    const { clusterDiscoveryType, edsClusterConfig, transportSocket, circuitBreakers, ...rest } =
      generatorsFor('').cluster()!;
    expect(clusterDiscoveryType).toEqual({ case: 'type', value: Cluster_DiscoveryType.EDS });
    expect(edsClusterConfig).toMatchObject({
      serviceName: cluster,
      edsConfig: { configSourceSpecifier: { case: 'ads' } },
    });
    expect(transportSocket).toBeUndefined();
    expect(circuitBreakers!.thresholds).toMatchObject([{ maxRequests: 4_294_967_295 }]);
    expect(policies(rest as Cluster)).toEqual(['round_robin']);
  });

  it.each([
    ['LEAST_REQUEST', Cluster_LbPolicy.LEAST_REQUEST, ['least_request', 'round_robin']],
    ['ROUND_ROBIN', Cluster_LbPolicy.ROUND_ROBIN, ['round_robin']],
    ['RANDOM', Cluster_LbPolicy.ROUND_ROBIN, ['round_robin']],
  ])(
    'the cluster balances load with %s, followed by a policy that every client supports',
    (simple, fallbackPolicy, list) => {
      const built = generatorsFor(rule({ trafficPolicy: { loadBalancer: { simple } } })).cluster()!;
      expect(built.lbPolicy).toBe(fallbackPolicy);
      expect(policies(built)).toEqual(list);
    },
  );

  it('the cluster uses a hash ring, which Node.js clients support only in the deprecated field', () => {
    const built = generatorsFor(
      rule({ trafficPolicy: { loadBalancer: { consistentHash: { httpHeaderName: 'x' } } } }),
    ).cluster()!;
    expect([built.lbPolicy, built.loadBalancingPolicy]).toEqual([Cluster_LbPolicy.RING_HASH, undefined]);
  });

  it("the cluster uses the bootstrap file's certificates for ISTIO_MUTUAL, in current and deprecated fields", () => {
    const built = generatorsFor(rule({ trafficPolicy: { tls: { mode: 'ISTIO_MUTUAL' } } })).cluster()!;
    const { value } = built.transportSocket!.configType as { value: Any };
    const { commonTlsContext } = anyUnpack(value, UpstreamTlsContextSchema)!;
    expect(built.transportSocket!.name).toBe('envoy.transport_sockets.tls');
    expect(commonTlsContext).toMatchObject({
      tlsCertificateProviderInstance: { instanceName: 'default', certificateName: 'default' },
      tlsCertificateCertificateProviderInstance: { instanceName: 'default', certificateName: 'default' },
      validationContextType: {
        case: 'combinedValidationContext',
        value: {
          defaultValidationContext: {
            caCertificateProviderInstance: { instanceName: 'default', certificateName: 'ROOTCA' },
            matchSubjectAltNames: [{ matchPattern: { value: 'spiffe://cluster.local/ns/shop/sa/echo' } }],
          },
          validationContextCertificateProviderInstance: { instanceName: 'default', certificateName: 'ROOTCA' },
        },
      },
    });
  });

  it.each(['SIMPLE', 'MUTUAL'])(
    'the cluster is omitted for TLS mode %s, because calls would be sent in plaintext',
    (mode) => {
      const files = { clientCertificate: '/a', privateKey: '/b', caCertificates: '/c' };
      const mesh = generatorsFor(rule({ trafficPolicy: { tls: { mode, ...(mode === 'MUTUAL' && files) } } }));
      expect(mesh.cluster()).toBeUndefined();
      expect(mesh.limitations(clusterType)).toEqual([
        `DestinationRule shop/echo: the cluster is not served: gRPC supports tls.mode ISTIO_MUTUAL and DISABLE, got ${mode}`,
      ]);
    },
  );

  it('a subset has a cluster only if a DestinationRule defines it', () => {
    const mesh = generatorsFor(rule({ subsets: [{ name: 'v1', labels: { version: 'v1' } }] }));
    expect(mesh.cluster(`outbound|7070|v1|${host}`)).toBeDefined();
    expect(mesh.cluster(`outbound|7070|v2|${host}`)).toBeUndefined();
  });

  it('settings that gRPC ignores are reported for the cluster', () => {
    const trafficPolicy = {
      outlierDetection: { consecutive5xxErrors: 3 },
      connectionPool: { tcp: { maxConnections: 3 } },
    };
    expect(generatorsFor(rule({ trafficPolicy })).limitations(clusterType)).toEqual([
      'DestinationRule shop/echo: connectionPool.tcp.maxConnections, outlierDetection are ignored',
    ]);
  });
});

it('localities have an ID and a weight, and addresses are unique', () => {
  const { endpoints } = generatorsFor('').endpoints()!;
  const text = endpoints.map(({ locality, loadBalancingWeight, lbEndpoints }) => [
    `${locality!.region}/${locality!.zone}`,
    loadBalancingWeight! > 0,
    lbEndpoints.length,
  ]);
  expect(text).toEqual([
    ['unknown/', true, 1],
    ['r/z', true, 1],
  ]);
});

describe('gRPC endpoints in another network', () => {
  const farCluster = 'outbound|80||far.test';
  const mesh = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: far, namespace: shop }
spec:
  hosts: [far.test]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{ number: 80, name: grpc, protocol: GRPC }]
  endpoints:
    - { address: 10.0.0.1, network: n1, labels: { security.istio.io/tlsMode: istio } }
    - { address: 10.0.0.2, network: n2, labels: { security.istio.io/tlsMode: istio } }
---
apiVersion: v1
kind: Service
metadata: { name: east-west, namespace: istio-system, labels: { topology.istio.io/network: n2 } }
spec: { type: LoadBalancer, clusterIP: 10.1.0.9, ports: [{ name: tls, port: 15443 }] }
status: { loadBalancer: { ingress: [{ ip: 9.9.9.9 }] } }
---
`;
  const mutual = JSON.stringify({
    ...{ apiVersion: 'networking.istio.io/v1', kind: 'DestinationRule', metadata: { name: 'far', namespace: 'shop' } },
    spec: { host: 'far.test', trafficPolicy: { tls: { mode: 'ISTIO_MUTUAL' } } },
  });
  const addresses = (assignment: ClusterLoadAssignment | undefined): unknown[] =>
    assignment!.endpoints.flatMap(({ lbEndpoints }) =>
      lbEndpoints.map(({ hostIdentifier }) => {
        const { address } = (hostIdentifier.value as { address: { address: { value: { address: string } } } }).address;
        return address.value.address;
      }),
    );

  it.each([
    ['without a rule', ''],
    ['with mutual TLS', mutual],
  ])('remote endpoints are omitted and reported, because gateways route by SNI and gRPC sends none: %s', (_, rules) => {
    const built = generatorsFor(mesh + rules, { metadata: { NETWORK: 'n1' } });
    expect(addresses(built.endpoints(farCluster))).toEqual(['10.0.0.1']);
    expect(built.limitations(clusterType, farCluster)).toEqual([
      'endpoints of far.test behind gateways of other networks are left out: gRPC sends no SNI',
    ]);
  });

  it('a client without a network reaches remote endpoints directly', () => {
    const built = generatorsFor(mesh);
    expect(addresses(built.endpoints(farCluster))).toEqual(['10.0.0.1', '10.0.0.2']);
    expect(built.limitations(clusterType, farCluster)).toEqual([]);
  });
});

describe('listener of a gRPC server', () => {
  const name = 'xds.istio.io/grpc/lds/inbound/0.0.0.0:8080';
  const peers = (mode: string): string => object('PeerAuthentication', { mtls: { mode } }, 'security');
  const filtersOf = (listener: Listener) => {
    const { value } = listener.filterChains[0]!.filters[0]!.configType as { value: Any };
    return anyUnpack(value, HttpConnectionManagerSchema)!.httpFilters.map(({ name: filter, configType }) => ({
      filter: filter.replace('envoy.filters.http.', ''),
      rules: filter.includes('rbac') ? anyUnpack(configType.value as never, RBACSchema)!.rules : undefined,
    }));
  };

  it.each([
    [name, '0.0.0.0'],
    ['xds.istio.io/grpc/lds/inbound/[::]:8080', '::'],
  ])('the listener %s has the address in its name and no routes', (requested, address) => {
    const listener = generatorsFor('').listener(requested)!;
    expect(listener.address!.address.value).toMatchObject({ address, portSpecifier: { value: 8080 } });
    expect([listener.listenerFilters, listener.apiListener, listener.useOriginalDst]).toEqual([
      [],
      undefined,
      undefined,
    ]);
    expect(listener.filterChains).toHaveLength(1);
    expect(filtersOf(listener).map(({ filter }) => filter)).toEqual(['router']);
  });

  it('a port that is not a target port of its services has no listener', () => {
    const mesh = generatorsFor('');
    const other = 'xds.istio.io/grpc/lds/inbound/0.0.0.0:7070';
    expect(mesh.listener(other)).toBeUndefined();
    expect(mesh.limitations(listenerType, other)).toEqual(['no service has the target port 7070 of this server']);
  });

  it.each([
    ['STRICT', {}, 'requires'],
    ['DISABLE', {}, 'does not use'],
    ['DISABLE', { 'security.istio.io/tlsMode': 'istio' }, 'does not use'],
    ['PERMISSIVE', {}, 'does not use'],
    ['PERMISSIVE', { 'security.istio.io/tlsMode': 'istio' }, 'requires'],
  ])('in mode $0 with labels $1, the listener $2 mutual TLS', (mode, labels, verb) => {
    const mesh = generatorsFor(peers(mode), { labels });
    const socket = mesh.listener(name)!.filterChains[0]!.transportSocket;
    expect(socket !== undefined).toBe(verb === 'requires');
    if (socket !== undefined) {
      expect(anyUnpack(socket.configType.value as never, DownstreamTlsContextSchema)).toMatchObject({
        requireClientCertificate: true,
      });
    }
    expect(mesh.limitations(listenerType, name).length).toBe(mode === 'PERMISSIVE' ? 1 : 0);
  });

  const policy = (spec: object): string => object('AuthorizationPolicy', spec, 'security');
  const neverPrincipal = { case: 'notId', value: { identifier: { case: 'any' } } };

  it('the listener evaluates DENY before ALLOW', () => {
    const source = [{ source: { namespaces: ['bank'] } }];
    const deny = policy({ action: 'DENY', rules: [{ from: source }] });
    const allow = policy({ action: 'ALLOW', rules: [{ from: source }] }).replace('"echo"', '"allow"');
    const filters = filtersOf(generatorsFor(allow + deny).listener(name)!);
    expect(filters.map(({ filter }) => filter)).toEqual(['rbac.deny', 'rbac.allow', 'router']);
  });

  it('a rule that requires a token allows no calls, because gRPC servers do not validate tokens', () => {
    const rules = [{ from: [{ source: { requestPrincipals: ['*'] } }] }];
    const [filter] = filtersOf(generatorsFor(policy({ action: 'ALLOW', rules })).listener(name)!);
    const [one] = Object.values(filter!.rules!.policies);
    expect(JSON.stringify(one!.principals)).not.toMatch(/etadata/);
    expect(one!.principals[0]!.identifier).toMatchObject({
      case: 'andIds',
      value: { ids: [{ identifier: neverPrincipal }, { identifier: neverPrincipal }] },
    });
  });

  it.each([
    ['ALLOW', 'notRule'],
    ['DENY', 'any'],
  ])('a rule with action %s and a path template fails closed', (action, expected) => {
    const mesh = generatorsFor(policy({ action, rules: [{ to: [{ operation: { paths: ['/a/{*}'] } }] }] }));
    const [filter] = filtersOf(mesh.listener(name)!);
    expect(Object.values(filter!.rules!.policies)[0]!.permissions[0]!.rule.case).toBe(expected);
    expect(mesh.limitations(listenerType, name).join()).toContain('gRPC servers cannot check path templates');
  });

  it('a CUSTOM policy denies all calls', () => {
    const mesh = generatorsFor(policy({ action: 'CUSTOM', provider: { name: 'other' }, rules: [{}] }));
    expect(filtersOf(mesh.listener(name)!)[0]).toMatchObject({ filter: 'rbac.allow', rules: { policies: {} } });
    expect(mesh.limitations(listenerType, name).join()).toContain('all calls are denied');
  });
});
