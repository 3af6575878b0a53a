import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createAuthority } from '../../../test/certs/authority.ts';
import {
  type ComputedChange,
  type GivenNodeOptions,
  GivenWorld,
  givenObject,
} from '../../../test/fixtures/given-world.ts';
import { sized } from '../../../test/harness/size-of-run.ts';
import { type Config, configKeyText } from '../../model/config/config.ts';
import {
  clusterType,
  endpointType,
  extensionType,
  listenerType,
  nameTableType,
  routeType,
  secretType,
} from '../../networking/index.ts';
import type { ResourceChange } from '../xds/resource-source.ts';
import type { MeshNode } from './mesh-resources.ts';

const numRuns = Number(process.env.PROPERTY_RUNS ?? sized({ short: 10, full: 300 }));

const watched = [clusterType, endpointType, listenerType, routeType, secretType, extensionType, nameTableType];
const namespaces = ['a', 'b', 'istio-system'];
const nearHost = 'near.a.svc.cluster.local';
/** Without Kubernetes, the short name `s` matches one of the last two hosts, depending on which exists. */
const hosts = [
  'x.test',
  'y.test',
  'z.test',
  'w.x.test',
  '*.x.test',
  'db.test',
  's.a',
  's.a.svc.cluster.local',
  nearHost,
];
const subsets = ['', 'v1'];
const ports = [80, 443, 9000];

const anyNamespace = fc.constantFrom(...namespaces);
const anyHost = fc.constantFrom(...hosts);
const plainHost = fc.constantFrom(...hosts.filter((host) => !host.startsWith('*')), 's', 's', 'alias');
/** Most objects are public. Some are exported to their own namespace, another one, several, or none. */
const exportTo = fc.constantFrom(undefined, ['*'], ['.'], ['b'], ['a', 'istio-system'], ['~']);
const defined = <T extends object>(spec: T): object =>
  Object.fromEntries(Object.entries(spec).filter(([, value]) => value !== undefined));

/** Uses few names, so that objects interact, for example by the same host, conflicts or delegates. */
const serviceEntry = fc
  .record({
    namespace: anyNamespace,
    host: anyHost,
    exportTo,
    resolution: fc.constantFrom('STATIC', 'DNS', 'NONE'),
    protocol: fc.constantFrom('HTTP', 'TCP', 'TLS', 'unsupported'),
    lookedUp: fc.boolean(),
    addresses: fc.constantFrom([], ['10.5.0.1'], ['10.5.0.2', '10.5.0.3']),
    endpoints: fc.subarray(['10.9.0.1', '10.9.0.2', '10.9.0.4', '10.1.0.1', '10.1.0.2']),
    port: fc.constantFrom(...ports),
    labels: fc.constantFrom({}, { version: 'v1' }, { version: 'v1', 'security.istio.io/tlsMode': 'istio' }),
    age: fc.constantFrom(0, 5),
  })
  .map(({ namespace, host, age, endpoints, port, protocol, lookedUp, labels, resolution, ...spec }) =>
    givenObject(
      'ServiceEntry',
      namespace,
      host.replace('*', 'any'),
      defined({
        ...spec,
        hosts: [host],
        resolution: host.startsWith('*') ? (lookedUp ? 'DYNAMIC_DNS' : 'NONE') : resolution,
        location: 'MESH_INTERNAL',
        ports: [{ number: port, name: 'p', protocol }],
        endpoints: endpoints.map((address, index) => ({
          address,
          labels: index === 0 ? labels : {},
          locality: `r${index}`,
        })),
      }),
      age,
    ),
  );

/** A service with locality load balancing or sessions. */
const nearService = fc
  .record({
    internalTrafficPolicy: fc.constantFrom('Cluster', 'Local'),
    trafficDistribution: fc.constantFrom(undefined, 'PreferClose', 'PreferSameNode'),
    labels: fc.constantFrom({}, { 'istio.io/persistent-session': 'true' }),
  })
  .map(({ labels, ...fields }) => {
    const ports = [{ name: 'p', port: 80, protocol: 'TCP', targetPort: 80 }];
    const ownSpec = { type: 'ClusterIP', clusterIP: '10.6.0.1', clusterIPs: [], ports, externalIPs: [] };
    const spec = defined({ ...ownSpec, ...fields, publishNotReadyAddresses: false });
    const built = givenObject('Service', 'a', 'near', { spec, status: { loadBalancer: { ingress: [] } } });
    return { ...built, labels, resourceVersion: `${built.resourceVersion}${JSON.stringify(labels)}` };
  });

const condition = fc.constantFrom(
  { ready: true },
  { ready: false },
  { ready: false, serving: true, terminating: true },
  { ready: false, serving: false, terminating: true },
);
const nearSlice = fc
  .record({ first: condition, second: condition, both: fc.boolean() })
  .map(({ first, second, both }) => {
    const endpoints = [
      { addresses: ['10.9.0.1'], conditions: first, nodeName: 'node-1' },
      { addresses: ['10.1.0.1'], conditions: second, nodeName: 'node-2' },
    ];
    const ports = [{ name: 'p', port: 80, protocol: 'TCP' }];
    const spec = { addressType: 'IPv4', ports, endpoints: endpoints.slice(0, both ? 2 : 1) };
    const built = givenObject('EndpointSlice', 'a', 'near-1', spec);
    return { ...built, labels: { 'kubernetes.io/service-name': 'near' } };
  });

/** An alias, whose target can be an alias too. */
const alias = fc
  .record({
    namespace: fc.constantFrom('a', 'b'),
    name: fc.constantFrom('s', 'alias'),
    externalName: fc.constantFrom('x.test', 'y.test', nearHost, 's.a.svc.cluster.local', 'alias.a.svc.cluster.local'),
  })
  .map(({ namespace, name, externalName }) => {
    const ownSpec = { type: 'ExternalName', externalName, clusterIP: '', clusterIPs: [], ports: [], externalIPs: [] };
    const spec = { ...ownSpec, internalTrafficPolicy: 'Cluster', publishNotReadyAddresses: false };
    return givenObject('Service', namespace, name, { spec, status: { loadBalancer: { ingress: [] } } });
  });

const virtualService = fc
  .record({
    namespace: anyNamespace,
    name: fc.constantFrom('one', 'two', 'three'),
    host: fc.option(anyHost, { nil: undefined }),
    to: plainHost,
    subset: fc.constantFrom(...subsets),
    delegate: fc.option(fc.constantFrom('one', 'two', 'three'), { nil: undefined }),
    exportTo,
    /** Matches some clients or ports, so that the next route applies to others. */
    asks: fc.constantFrom(
      {},
      {},
      { sourceLabels: { app: 'web' } },
      { sourceLabels: { app: 'none' } },
      { sourceNamespace: 'a' },
      { port: 80 },
    ),
    tcp: fc.boolean(),
    timeoutMs: fc.constantFrom(1000, 2000),
    age: fc.constantFrom(0, 5),
  })
  .map(({ namespace, name, host, to, subset, delegate, asks, tcp, timeoutMs, age, ...fields }) => {
    const route = [{ destination: defined({ host: to, subset: subset || undefined }) }];
    const match = Object.keys(asks).length > 0 ? [asks] : undefined;
    const leads = delegate !== undefined && host !== undefined;
    const http = [defined({ match, ...(leads ? { delegate: { name: delegate } } : { timeoutMs, route }) })];
    const routes = tcp && host !== undefined ? { tcp: [{ route }] } : { http };
    const spec = defined({ ...fields, hosts: host === undefined ? [] : [host], ...routes });
    return givenObject('VirtualService', namespace, name, spec, age);
  });

const destinationRule = fc
  .record({
    namespace: anyNamespace,
    name: fc.constantFrom('one', 'two'),
    host: fc.constantFrom(...hosts, '*.test', 's'),
    exportTo,
    workloadSelector: fc.constantFrom(undefined, { labels: { app: 'web' } }),
    requests: fc.constantFrom(1, 2),
    sticky: fc.boolean(),
    withSubset: fc.boolean(),
    age: fc.constantFrom(0, 5),
  })
  .map(({ namespace, name, requests, sticky, withSubset, age, ...fields }) => {
    const connectionPool = { http: { http2MaxRequests: requests }, tcp: { idleTimeoutMs: requests * 1000 } };
    const loadBalancer = sticky ? { consistentHash: { useSourceIp: true } } : undefined;
    const spec = defined({
      ...fields,
      trafficPolicy: defined({
        connectionPool,
        loadBalancer,
        outlierDetection: sticky ? { minHealthPercent: requests * 50 - 50 } : undefined,
      }),
      subsets: withSubset ? [{ name: 'v1', labels: { version: 'v1' } }] : undefined,
    });
    return givenObject('DestinationRule', namespace, name, spec, age);
  });

const sidecar = fc
  .record({
    namespace: anyNamespace,
    name: fc.constantFrom('default', 'other'),
    hosts: fc.subarray(['./*', '*/x.test', '*/*.test', 'a/*', 'b/y.test', '~/*', '*/*'], { minLength: 1 }),
    workloadSelector: fc.constantFrom(undefined, undefined, { labels: { app: 'web' } }),
    port: fc.constantFrom(undefined, { number: 80, name: 'http', protocol: 'HTTP' }),
    forward: fc.boolean(),
    policy: fc.constantFrom(undefined, 'REGISTRY_ONLY', 'ALLOW_ANY', 'ALLOW_ANY_DYNAMIC_DNS'),
  })
  .map(({ namespace, name, hosts: imported, workloadSelector, port, forward, policy }) => {
    const ownSpec = { port: { number: 8080, name: 'http', protocol: 'HTTP' }, defaultEndpoint: '0.0.0.0:8081' };
    const egress = [defined({ hosts: imported, port, captureMode: 'DEFAULT' })];
    const ingress = forward ? [{ ...ownSpec, captureMode: 'DEFAULT' }] : undefined;
    const egressProxy = { host: 's', port: { number: 80 } };
    const outboundTrafficPolicy = policy && defined({ mode: policy, ...(policy === 'ALLOW_ANY' && { egressProxy }) });
    return givenObject(
      'Sidecar',
      namespace,
      name,
      defined({ workloadSelector, egress, ingress, outboundTrafficPolicy }),
    );
  });

const gateway = fc
  .record({ namespace: anyNamespace, port: fc.constantFrom(80, 8080), host: fc.constantFrom('*/*', 'a/x.test') })
  .map(({ namespace, port, host }) => {
    const servers = [{ port: { number: port, name: 'http', protocol: 'HTTP' }, hosts: [host] }];
    return givenObject('Gateway', namespace, 'gw', { selector: {}, servers });
  });

/** Gateways with servers for services that may not exist, some with TLS. */
const gatewayOfServices = fc
  .record({
    namespace: anyNamespace,
    services: fc.constantFrom('x.test', 'y.test,z.test'),
    mode: fc.constantFrom('SIMPLE', 'MUTUAL', 'ISTIO_MUTUAL'),
  })
  .map(({ namespace, services, mode }) => {
    const tls = mode === 'ISTIO_MUTUAL' ? { mode } : { mode, credentialName: 'web' };
    const servers = [
      { port: { number: 80, name: 'http', protocol: 'HTTP' }, hosts: ['*/*'] },
      { port: { number: 443, name: 'https', protocol: 'HTTPS' }, hosts: ['*/*'], tls },
    ];
    const built = givenObject('Gateway', namespace, 'of-services', { selector: {}, servers });
    const annotations = { 'internal.istio.io/gateway-service': services };
    return { ...built, annotations, resourceVersion: `${built.resourceVersion}${services}` };
  });

const authority = createAuthority();
const certificates = [authority.issue(['x.test']), authority.issue(['y.test'])] as const;
/** Kubernetes Gateway, whose listeners depend on the existence of the Service. */
const kubernetesGateway = fc
  .record({
    namespace: fc.constantFrom('a', 'istio-system'),
    hostname: fc.constantFrom(undefined, '*.test', 'x.test'),
    secure: fc.boolean(),
    connections: fc.subarray(['TCP', 'Passthrough', 'Terminate']),
    from: fc.constantFrom('Same', 'All'),
    addresses: fc.constantFrom([], [{ type: 'Hostname', value: 'near' }]),
    gatewayClassName: fc.constantFrom('istio', 'istio', 'other'),
    certificateOf: fc.constantFrom(undefined, 'a'),
  })
  .map(({ namespace, hostname, secure, connections, from, certificateOf, ...fields }) => {
    const allowedRoutes = { namespaces: { from } };
    const certificateRefs = [defined({ group: '', kind: 'Secret', name: 'web', namespace: certificateOf })];
    const tls = { mode: 'Terminate', certificateRefs, options: {} };
    const plain = defined({ name: 'plain', port: 80, protocol: 'HTTP', hostname, allowedRoutes });
    const tcpListeners = {
      TCP: { name: 't', port: 9000, protocol: 'TCP', allowedRoutes },
      Passthrough: { name: 'p', port: 443, protocol: 'TLS', tls: { ...tls, mode: 'Passthrough' }, allowedRoutes },
      Terminate: { name: 'e', port: 443, protocol: 'TLS', hostname: 'w.x.test', tls, allowedRoutes },
    };
    const listeners = [
      plain,
      ...(secure ? [{ name: 's', port: 443, protocol: 'HTTPS', tls, allowedRoutes }] : []),
      ...connections.map((one) => tcpListeners[one as keyof typeof tcpListeners]),
    ];
    return givenObject('KubernetesGateway', namespace, 'front', { ...fields, listeners });
  });

const route = fc
  .record({
    kind: fc.constantFrom('HTTPRoute', 'HTTPRoute', 'GRPCRoute', 'TLSRoute', 'TCPRoute'),
    namespace: fc.constantFrom('a', 'istio-system'),
    name: fc.constantFrom('one', 'two'),
    parent: fc.constantFrom('Gateway', 'Service'),
    port: fc.constantFrom(undefined, 80),
    hostnames: fc.subarray(['x.test', '*.x.test', 'w.x.test']),
    path: fc.constantFrom('/', '/a', '/a/b'),
    backend: fc.constantFrom('near', 's', 'gone'),
    weight: fc.constantFrom(0, 1, 2),
    age: fc.constantFrom(0, 5),
  })
  .map(({ kind, namespace, name, parent, port, hostnames, path, backend, weight, age }) => {
    const gateway = { group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'front', namespace: 'a' };
    const serviceParent = defined({ group: '', kind: 'Service', name: 'near', namespace: 'a', port });
    const matches = [{ path: { type: 'PathPrefix', value: path }, headers: [], queryParams: [] }];
    const core = { group: '', kind: 'Service', namespace: 'a', filters: [] };
    const backendRefs = [
      { ...core, name: backend, port: 80, weight },
      { ...core, name: 'near', port: 80, weight: 1 },
    ];
    const isConnectionRoute = kind === 'TLSRoute' || kind === 'TCPRoute';
    const rules = [{ matches: isConnectionRoute ? [] : matches, filters: [], backendRefs }];
    const parentRefs = [parent === 'Gateway' ? gateway : serviceParent];
    return givenObject(
      kind,
      namespace,
      name,
      { parentRefs, hostnames: kind === 'TCPRoute' ? [] : hostnames, rules },
      age,
    );
  });

const granted = [
  ...(['HTTPRoute', 'TCPRoute'] as const).map((kind) => ({ kind, to: { group: '', kind: 'Service' } })),
  { kind: 'Gateway', to: { group: '', kind: 'Secret' } },
  { kind: 'Gateway', to: { group: '', kind: 'Secret', name: 'web' } },
];
const referenceGrant = fc.constantFrom(...granted).map(({ kind, to }) => {
  const from = [{ group: 'gateway.networking.k8s.io', kind, namespace: 'istio-system' }];
  return givenObject('ReferenceGrant', 'a', 'grant', { from, to: [to] });
});

/** Policies whose CA certificates may not exist, and whose target can be an alias. A rejected policy denies requests to its targets. */
const backendTlsPolicy = fc
  .record({
    name: fc.constantFrom('one', 'two'),
    targets: fc.subarray(['near', 's', 'alias'], { minLength: 1 }),
    sectionName: fc.constantFrom(undefined, undefined, 'p', 'other'),
    authorities: fc.constantFrom('ca', 'web', 'System'),
    hostname: fc.constantFrom('one.test', 'two.test'),
    isRefused: fc.constantFrom(false, false, false, true),
    age: fc.constantFrom(0, 5),
  })
  .map(({ name, targets, sectionName, authorities, hostname, isRefused, age }) => {
    const isSystem = authorities === 'System';
    const spec = {
      targetRefs: targets.map((target) => defined({ group: '', kind: 'Service', name: target, sectionName })),
      validation: defined({
        ...{ hostname, subjectAltNames: [], wellKnownCACertificates: isSystem ? 'System' : undefined },
        caCertificateRefs: isSystem ? [] : [{ group: '', kind: 'ConfigMap', name: authorities }],
      }),
      options: {},
    };
    const policy = givenObject('BackendTLSPolicy', 'a', name, spec, age);
    if (!isRefused) return policy;
    const standsFor = { kind: 'BackendTLSPolicy', objectName: '', isScopeKnown: true, effect: '', effectInRoot: '' };
    return { ...policy, standsFor, resourceVersion: `refused ${policy.resourceVersion}` };
  });

const credential = fc
  .record({
    namespace: fc.constantFrom('a', 'istio-system'),
    name: fc.constantFrom('web', 'web-cacert', 'ca'),
    pair: fc.constantFrom(undefined, ...certificates),
    roots: fc.constantFrom(undefined, authority.certificate, 'nonsense'),
    configMap: fc.boolean(),
  })
  .map(({ namespace, name, pair, roots, configMap }) => {
    const rootData = defined({ 'ca.crt': roots });
    if (configMap) return givenObject('ConfigMap', namespace, name, { data: rootData, binaryData: {} });
    const pairData = pair ? { 'tls.crt': pair.certificate, 'tls.key': pair.privateKey } : {};
    return givenObject('Secret', namespace, name, {
      type: 'Opaque',
      data: {},
      stringData: { ...pairData, ...rootData },
    });
  });

const peerMode = fc.constantFrom('UNSET', 'DISABLE', 'PERMISSIVE', 'STRICT');
const peerAuthentication = fc
  .record({
    namespace: anyNamespace,
    name: fc.constantFrom('one', 'two'),
    selector: fc.constantFrom(undefined, { version: 'v1' }, { app: 'web' }),
    mtls: peerMode,
    ofPort: peerMode,
    age: fc.constantFrom(0, 5),
  })
  .map(({ namespace, name, selector, mtls, ofPort, age }) => {
    const portLevelMtls = selector && { 80: ofPort };
    return givenObject('PeerAuthentication', namespace, name, defined({ selector, mtls, portLevelMtls }), age);
  });

const scope = { namespace: anyNamespace, name: fc.constantFrom('one', 'two'), age: fc.constantFrom(0, 5) };
/** Target of a policy: namespace, workload or gateway. */
const policyTarget = fc.constantFrom(
  {},
  { selector: { app: 'web' } },
  { targetRefs: [{ group: 'networking.istio.io', kind: 'Gateway', name: 'gw' }] },
);
const authorizationPolicy = fc
  .record({
    ...scope,
    held: policyTarget,
    // The extension provider of CUSTOM does not exist, so all requests are denied.
    action: fc.constantFrom({ action: 'ALLOW' }, { action: 'DENY' }, { action: 'CUSTOM', provider: 'nobody' }),
    to: fc.constantFrom(undefined, [{ methods: ['GET'] }], [{ ports: ['80'] }]),
    dryRun: fc.boolean(),
  })
  .map(({ namespace, name, age, held, action, to, dryRun }) => {
    const built = givenObject(
      'AuthorizationPolicy',
      namespace,
      name,
      { ...held, ...action, rules: [defined({ to })] },
      age,
    );
    return dryRun
      ? { ...built, annotations: { 'istio.io/dry-run': 'true' }, resourceVersion: `${built.resourceVersion}d` }
      : built;
  });

const requestAuthentication = fc
  .record({
    ...scope,
    held: policyTarget,
    issuers: fc.subarray(['https://one.test', 'https://two.test'], { minLength: 1 }),
    keys: fc.nat(2),
  })
  .map(({ namespace, name, age, held, issuers, keys }) => {
    const jwtRules = issuers.map((issuer) => defined({ issuer, jwks: keys === 0 ? undefined : `{"keys":[${keys}]}` }));
    return givenObject('RequestAuthentication', namespace, name, { ...held, jwtRules }, age);
  });

const lua = {
  name: 'lua',
  typed_config: {
    '@type': 'type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua',
    default_source_code: { inline_string: '' },
  },
};
const headers = { request_headers_to_add: [{ header: { key: 'x', value: 'y' } }] };
const patchedThings = [
  { applyTo: 'CLUSTER', of: { cluster: { service: 'x.test' } }, operation: 'MERGE', value: { connect_timeout: '9s' } },
  { applyTo: 'CLUSTER', of: {}, operation: 'ADD', value: { name: 'outbound|80||y.test', type: 'STATIC' } },
  { applyTo: 'CLUSTER', of: { cluster: { portNumber: 9000 } }, operation: 'REMOVE' },
  { applyTo: 'HTTP_FILTER', of: {}, operation: 'INSERT_FIRST', value: lua },
  { applyTo: 'EXTENSION_CONFIG', of: {}, operation: 'ADD', value: { ...lua, name: 'later' } },
  { applyTo: 'LISTENER', of: { listener: { portNumber: 80 } }, operation: 'REMOVE' },
  { applyTo: 'FILTER_CHAIN', of: {}, operation: 'MERGE', value: { transport_socket_connect_timeout: '3s' } },
  {
    applyTo: 'ROUTE_CONFIGURATION',
    of: { routeConfiguration: { gateway: 'a/gw' } },
    operation: 'MERGE',
    value: headers,
  },
  {
    applyTo: 'VIRTUAL_HOST',
    of: { routeConfiguration: { vhost: { domainName: 'x.test' } } },
    operation: 'MERGE',
    value: headers,
  },
  { applyTo: 'HTTP_ROUTE', of: { routeConfiguration: { portNumber: 80 } }, operation: 'MERGE', value: headers },
] as const;
const envoyFilter = fc
  .record({
    namespace: anyNamespace,
    name: fc.constantFrom('one', 'two'),
    things: fc.subarray([...patchedThings], { minLength: 1, maxLength: 2 }),
    context: fc.constantFrom('ANY', 'SIDECAR_INBOUND', 'SIDECAR_OUTBOUND', 'GATEWAY'),
    proxy: fc.constantFrom(undefined, { proxyVersion: '^1[.]30' }, { metadata: { TEAM: 'blue' } }),
    workloadSelector: fc.constantFrom(undefined, { app: 'web' }),
    priority: fc.constantFrom(0, 1),
    age: fc.constantFrom(0, 5),
  })
  .map(({ namespace, name, things, context, proxy, workloadSelector, priority, age }) => {
    const configPatches = things.map(({ of, ...patch }) => ({ ...patch, match: defined({ context, proxy, ...of }) }));
    return givenObject('EnvoyFilter', namespace, name, defined({ configPatches, workloadSelector, priority }), age);
  });

const telemetry = fc
  .record({
    ...scope,
    held: policyTarget,
    disabled: fc.boolean(),
    provider: fc.constantFrom(undefined, ['envoy'], ['nobody']),
    mode: fc.constantFrom('CLIENT', 'SERVER', 'CLIENT_AND_SERVER'),
  })
  .map(({ namespace, name, age, held, disabled, provider, mode }) => {
    const accessLogging = [defined({ disabled, providers: provider, match: { mode } })];
    return givenObject('Telemetry', namespace, name, { ...held, accessLogging }, age);
  });

const wasmPlugin = fc
  .record({
    ...scope,
    held: policyTarget,
    // URLs of a service that may exist, or an unknown one.
    url: fc.constantFrom('http://x.test:80/a.wasm', 'oci://x.test/a', 'file:///a.wasm'),
    phase: fc.constantFrom(undefined, 'AUTHN'),
    type: fc.constantFrom('HTTP', 'NETWORK'),
    ports: fc.constantFrom(undefined, [{ number: 80 }]),
    pluginConfig: fc.constantFrom(undefined, { a: 1 }),
  })
  .map(({ namespace, name, age, held, ports, ...spec }) => {
    const match = ports && [{ ports }];
    return givenObject(
      'WasmPlugin',
      namespace,
      name,
      defined({ ...held, ...spec, match, sha256: 'a'.repeat(64) }),
      age,
    );
  });

const objects = fc.oneof(
  { weight: 5, arbitrary: serviceEntry },
  { weight: 1, arbitrary: alias },
  { weight: 1, arbitrary: nearService },
  { weight: 2, arbitrary: nearSlice },
  { weight: 4, arbitrary: virtualService },
  { weight: 4, arbitrary: destinationRule },
  { weight: 5, arbitrary: sidecar },
  { weight: 1, arbitrary: gateway },
  { weight: 1, arbitrary: gatewayOfServices },
  { weight: 2, arbitrary: credential },
  { weight: 1, arbitrary: peerAuthentication },
  { weight: 2, arbitrary: authorizationPolicy },
  { weight: 1, arbitrary: requestAuthentication },
  { weight: 2, arbitrary: envoyFilter },
  { weight: 1, arbitrary: telemetry },
  { weight: 2, arbitrary: wasmPlugin },
  { weight: 3, arbitrary: kubernetesGateway },
  { weight: 6, arbitrary: route },
  { weight: 3, arbitrary: backendTlsPolicy },
  { weight: 1, arbitrary: referenceGrant },
);
/** Objects that make a host resolve differently in some namespaces. */
const meantDifferently = fc.oneof(
  { weight: 6, arbitrary: serviceEntry },
  { weight: 3, arbitrary: alias },
  { weight: 6, arbitrary: destinationRule },
  { weight: 1, arbitrary: sidecar },
  { weight: 1, arbitrary: virtualService },
  { weight: 1, arbitrary: envoyFilter },
  { weight: 1, arbitrary: peerAuthentication },
);
/** Routes of gateways, of which some apply only to certain clients. */
const boundVirtualService = fc
  .record({
    routed: virtualService,
    gateways: fc.subarray(['a/gw', 'istio-system/gw', 'a/of-services', 'mesh'], { minLength: 1 }),
    host: fc.constantFrom('x.test', 'y.test', '*.test'),
    sourceNamespace: fc.constantFrom(undefined, undefined, 'a', 'b'),
  })
  .map(({ routed, gateways, host, sourceNamespace }): Config => {
    const { http, ...spec } = routed.spec as { http?: readonly object[] };
    const match = sourceNamespace && [{ sourceNamespace }];
    const ownSpec = {
      ...spec,
      hosts: [host],
      gateways,
      ...(http && { http: http.map((one) => ({ ...one, ...(match && { match }) })) }),
    };
    return givenObject('VirtualService', routed.namespace, routed.name, ownSpec, routed.creationTimestamp);
  });
/** Objects with an effect on routes of gateways. */
const routerObjects = fc.oneof(
  { weight: 6, arbitrary: boundVirtualService },
  { weight: 3, arbitrary: gateway },
  { weight: 1, arbitrary: gatewayOfServices },
  { weight: 4, arbitrary: serviceEntry },
  { weight: 1, arbitrary: alias },
  { weight: 4, arbitrary: destinationRule },
  { weight: 1, arbitrary: envoyFilter },
);
/** Objects with an effect on TLS from gateways to Services. */
const backendObjects = fc.oneof(
  { weight: 6, arbitrary: backendTlsPolicy },
  { weight: 3, arbitrary: credential.filter(({ kind, name }) => kind === 'ConfigMap' && name === 'ca') },
  { weight: 2, arbitrary: nearService },
  { weight: 2, arbitrary: alias },
  { weight: 2, arbitrary: boundVirtualService },
  { weight: 1, arbitrary: gateway },
);
/** Mostly services, because other objects can change the effect of rules. */
const serviceOfMany = fc.oneof({ weight: 12, arbitrary: serviceEntry }, { weight: 1, arbitrary: sidecar });

/** A change of an existing object, by its index in the list of all added objects. The spec is unchanged. */
interface MetadataChange {
  readonly objectIndex: number;
  readonly metadata: Partial<Pick<Config, 'creationTimestamp' | 'labels' | 'annotations' | 'generation' | 'uid'>>;
}

/** Changes that are applied together. Removals are indexes in the list of all added objects. */
interface Step {
  readonly puts: readonly Config[];
  readonly removals: readonly number[];
  readonly metadataChanges: readonly MetadataChange[];
}

const metadataChange: fc.Arbitrary<MetadataChange> = fc.record({
  objectIndex: fc.nat(20),
  metadata: fc.oneof(
    { weight: 3, arbitrary: fc.record({ creationTimestamp: fc.constantFrom(0, 3, 5, 9) }) },
    fc.record({ labels: fc.constantFrom({}, { app: 'web' }, { version: 'v1' }, { 'topology.istio.io/network': 'n' }) }),
    fc.record({ annotations: fc.constantFrom({}, { note: 'x' }, { 'networking.istio.io/exportTo': '.' }) }),
    fc.record({ generation: fc.constantFrom(1, 2), uid: fc.constantFrom('one', 'two') }),
  ),
});

const stepOf = (put: fc.Arbitrary<Config>): fc.Arbitrary<Step> =>
  fc.record({
    puts: fc.array(put, { maxLength: 2 }),
    removals: fc.array(fc.nat(20), { maxLength: 1 }),
    metadataChanges: fc.array(metadataChange, { maxLength: 1 }),
  });

/** The version of an object covers only labels and annotations of its metadata (config-file.ts). */
function withMetadata(config: Config, metadata: MetadataChange['metadata']): Config {
  const changedConfig = { ...config, ...metadata };
  const { spec, labels, annotations } = changedConfig;
  return { ...changedConfig, resourceVersion: JSON.stringify([spec, labels, annotations]) };
}

const clients: readonly Client[] = [
  {
    ip: '10.9.0.1',
    namespace: 'a',
    labels: { app: 'web' },
    metadata: { ISTIO_VERSION: '1.30.0', NODE_NAME: 'node-1' },
  },
  { ip: '10.9.0.2', namespace: 'a', locality: 'r1', metadata: { TEAM: 'blue' } },
  { ip: '10.9.0.3', namespace: 'b', metadata: { INTERCEPTION_MODE: 'NONE' } },
  {
    ip: '10.9.0.6',
    namespace: 'a',
    metadata: { INSTANCE_IPS: '10.9.0.6,fd00::6', DNS_CAPTURE: 'true', NODE_NAME: 'node-2' },
  },
  { ip: '10.9.0.4', namespace: 'istio-system', type: 'router', secrets: true },
  {
    ip: '10.9.0.7',
    namespace: 'a',
    type: 'router',
    secrets: true,
    labels: { 'gateway.networking.k8s.io/gateway-name': 'front' },
  },
  {
    ip: '10.9.0.5',
    namespace: 'a',
    type: 'router',
    secrets: true,
    metadata: { WORKLOAD_CERTIFICATES: 'true' },
  },
];

type Client = { readonly ip: string } & GivenNodeOptions;

/** Most resources are equal for all of these gateways, or for those of a namespace. */
const routers: readonly Client[] = [
  { ip: '10.9.0.4', namespace: 'istio-system' },
  { ip: '10.9.0.10', namespace: 'istio-system', labels: { app: 'web' } },
  { ip: '10.9.0.11', namespace: 'a', labels: { app: 'other' } },
  { ip: '10.9.0.12', namespace: 'a', labels: { app: 'web' }, metadata: { UNPRIVILEGED_POD: 'true' } },
  { ip: '10.9.0.13', namespace: 'b', labels: { app: 'web' }, metadata: { TEAM: 'blue' } },
  { ip: '10.9.0.1', namespace: 'b', metadata: { WORKLOAD_CERTIFICATES: 'true' } },
].map((fields) => ({ type: 'router', ...fields }));

/** Assignments, including those of aliases by target. */
const assignments = [...hosts, 'alias.a.svc.cluster.local|x.test', 's.a.svc.cluster.local|y.test'].flatMap((host) =>
  ports.flatMap((port) => subsets.map((subset) => `outbound|${port}|${subset}|${host}`)),
);
const routes = [
  ...ports.map(String),
  ...['8080', 'http.80', 'http.443', 'http.8080', 'http.9000', 'x.test:80', 'nonsense'],
  ...namespaces.map((namespace) => `https.443.https.of-services.${namespace}`),
  'https.443.default.front-istio-autogenerated-k8s-gateway-s.a',
];

const secrets = [
  'kubernetes://web',
  'kubernetes://web-cacert',
  'kubernetes://a/ca',
  'kubernetes://a/web',
  'configmap://ca-cacert',
];

const extensions = [
  'later',
  'nonsense',
  ...namespaces.flatMap((namespace) => [`${namespace}.one`, `${namespace}.two`]),
];

type State = Readonly<Record<string, readonly (readonly [string, string])[]>>;

/** Prepares long lists in pieces, like a stream. */
function resourcesOf(node: MeshNode, type: string, names: readonly string[] | '*') {
  const preparation = type === secretType ? undefined : node.prepare(type, names);
  while (preparation?.runStep());
  return (preparation?.result() ?? node.get(type, names))!.resources;
}

/** Versions of a node's resources by name. */
function stateOfTypes(node: MeshNode, types: readonly string[]): State {
  return Object.fromEntries(
    types.map((type) => {
      const namesByType: Readonly<Record<string, readonly string[]>> = {
        [endpointType]: assignments,
        [routeType]: routes,
        [secretType]: secrets,
        [extensionType]: extensions,
      };
      const names = namesByType[type] ?? '*';
      const all = [...resourcesOf(node, type, names)].map(([name, { version }]) => [name, version] as const);
      // The order of named resources is undefined.
      return [type, names === '*' ? all : all.sort(([a], [b]) => (a < b ? -1 : 1))];
    }),
  );
}

/** In a layered list, common resources precede others. */
function inAnyOrder(state: State): State {
  const sortedByName = (list: State[string]) => list.toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(Object.entries(state).map(([type, list]) => [type, sortedByName(list)]));
}

/** Names that have different versions, or are in only one of the lists. */
function differingNames(a: State[string], b: State[string]): string[] {
  const [previous, next] = [new Map(a), new Map(b)];
  return [...new Set([...previous.keys(), ...next.keys()])].filter((name) => previous.get(name) !== next.get(name));
}

/** Cluster of an assignment. For an alias, the assignment also contains the target, `outbound|80||alias.test|target.test`. */
function clusterOf(assignment: string): string {
  return assignment.split('|').slice(0, 4).join('|');
}

function connectAll(world: GivenWorld, all: readonly Client[] = clients): MeshNode[] {
  return all.map(({ ip, ...fields }) => world.connect(ip, fields));
}

interface KeepingUp {
  readonly registries?: readonly string[] | undefined;
  readonly allClients?: readonly Client[];
  readonly types?: readonly string[];
  readonly maxChangesAtOnce?: number | undefined;
}

/**
 * Adds and removes objects step by step. After each step, each proxy must have the same resources as after a complete build, and must have received a
 * push of each changed type.
 */
function expectToKeepUp(
  start: readonly Config[],
  steps: readonly Step[],
  { registries, allClients = clients, types = watched, maxChangesAtOnce }: KeepingUp = {},
): void {
  const worldOf = (objects: Iterable<Config>) =>
    new GivenWorld([...objects], undefined, registries, {}, '', maxChangesAtOnce);
  // Without a cache, each proxy's lists are built completely.
  const unsharedWorldOf = (objects: Iterable<Config>) => new GivenWorld([...objects], 0, registries);
  const present = new Map(start.map((object) => [configKeyText(object), object]));
  const world = worldOf(present.values());
  const nodes = connectAll(world, allClients);
  let lastStates = nodes.map((node) => stateOfTypes(node, types));
  // Streams without subscriptions. The `late` ones are not even notified of changes.
  const [idle, lateNodes] = [connectAll(world, allClients), connectAll(world, allClients)];
  const changes: ResourceChange[] = [];
  const everPut = [...present.keys()];
  for (const step of steps) {
    const edits = editsOf(step, present, everPut);
    const change = world.change(edits);
    changes.push(change);
    for (const node of idle) expect(node.typesToPush(change, [])).toEqual([]);
    const freshStates = connectAll(worldOf(present.values()), allClients).map((node) => stateOfTypes(node, types));
    lastStates = nodes.map((node, index) => {
      const pushedTypes = node.typesToPush(change, types);
      const now = stateOfTypes(node, types);
      expect(now, `node ${index} after ${Object.keys(edits)}`).toEqual(freshStates[index]);
      for (const type of types) {
        if (pushedTypes.includes(type)) continue;
        const changedNames = differingNames(lastStates[index]![type]!, now[type]!);
        // Envoy requests endpoints of new and changed clusters, and none without a cluster.
        const changedClusters =
          type === endpointType ? differingNames(lastStates[index]![clusterType]!, now[clusterType]!) : [];
        const clusters = new Set(
          [lastStates[index]!, now].flatMap((state) => (state[clusterType] ?? []).map(([name]) => name)),
        );
        const isInChangedCluster = (name: string): boolean =>
          changedClusters.includes(clusterOf(name)) || (type === endpointType && !clusters.has(clusterOf(name)));
        expect(
          changedNames.filter((name) => !isInChangedCluster(name)),
          `${type} of node ${index}, not pushed after ${Object.keys(edits)}`,
        ).toEqual([]);
      }
      return now;
    });
  }
  expect(lastStates.map(inAnyOrder)).toEqual(
    connectAll(unsharedWorldOf(present.values()), allClients).map((node) => inAnyOrder(stateOfTypes(node, types))),
  );
  for (const node of lateNodes) node.typesToPush(changes.at(-1)!, types);
  expect(idle.map((node) => stateOfTypes(node, types))).toEqual(lastStates);
  expect(lateNodes.map((node) => stateOfTypes(node, types))).toEqual(lastStates);
}

/**
 * Computes services before it publishes the changes of an earlier step, as the program does after changes in quick succession. The context then
 * contains objects and services that its push does not name. Proxies receive only pushed types.
 */
function expectToCatchUp(
  start: readonly Config[],
  steps: readonly Step[],
  lags: readonly number[],
  maxChangesAtOnce: number | undefined,
): void {
  const present = new Map(start.map((object) => [configKeyText(object), object]));
  const world = new GivenWorld([...present.values()], undefined, undefined, {}, '', maxChangesAtOnce);
  const nodes = connectAll(world);
  const lastStates = nodes.map((node) => ({ ...stateOfTypes(node, watched) }));
  const everPut = [...present.keys()];
  const pendingChanges: ComputedChange[] = [];
  const publishOne = (): void => {
    const change = world.publish(pendingChanges.shift()!);
    for (const [index, node] of nodes.entries()) {
      const pushedTypes = node.typesToPush(change, watched);
      // Endpoints are sent again with changed clusters.
      const types = pushedTypes.includes(clusterType) ? [...new Set([...pushedTypes, endpointType])] : pushedTypes;
      Object.assign(lastStates[index]!, stateOfTypes(node, types));
    }
  };
  for (const [index, step] of steps.entries()) {
    pendingChanges.push(world.compute(editsOf(step, present, everPut)));
    while (pendingChanges.length > lags[index % lags.length]!) publishOne();
  }
  while (pendingChanges.length > 0) publishOne();
  const freshNodes = connectAll(new GivenWorld([...present.values()]));
  for (const [index, node] of freshNodes.entries())
    expect(inAnyOrder(lastStates[index]!), `node ${index}`).toEqual(inAnyOrder(stateOfTypes(node, watched)));
}

/** Applies a step to the present objects. */
function editsOf(
  { puts, removals, metadataChanges }: Step,
  present: Map<string, Config>,
  everPut: string[],
): Record<string, Config | undefined> {
  const edits: Record<string, Config | undefined> = {};
  for (const index of removals) {
    const key = everPut[index];
    if (key !== undefined && present.delete(key)) edits[key] = undefined;
  }
  for (const object of puts) {
    const key = configKeyText(object);
    present.set(key, object);
    everPut.push(key);
    edits[key] = object;
  }
  for (const { objectIndex, metadata } of metadataChanges) {
    const key = everPut[objectIndex];
    const object = key === undefined ? undefined : present.get(key);
    if (object === undefined) continue;
    const changedObject = withMetadata(object, metadata);
    present.set(key!, changedObject);
    edits[key!] = changedObject;
  }
  return edits;
}

describe('incremental push contexts and caches', () => {
  it('give each proxy the same resources as a full build, and push to each affected proxy', () => {
    fc.assert(
      fc.property(
        fc.array(objects, { maxLength: 10 }),
        fc.array(stepOf(objects), { minLength: 1, maxLength: 6 }),
        fc.constantFrom(undefined, []),
        fc.constantFrom(undefined, 0),
        (start, steps, registries, maxChangesAtOnce) => expectToKeepUp(start, steps, { registries, maxChangesAtOnce }),
      ),
      { numRuns },
    );
  });

  it('give each proxy all resources after later pushes, even if a context contains more changes than its push names', () => {
    fc.assert(
      fc.property(
        fc.array(objects, { maxLength: 10 }),
        fc.array(stepOf(objects), { minLength: 2, maxLength: 6 }),
        fc.array(fc.nat(2), { minLength: 1, maxLength: 3 }),
        fc.constantFrom(undefined, 0),
        expectToCatchUp,
      ),
      { numRuns },
    );
  });

  it('give each proxy the same resources as a full build if only DestinationRules change', () => {
    fc.assert(
      fc.property(
        fc.array(serviceOfMany, { minLength: 4, maxLength: 10 }),
        fc.array(stepOf(destinationRule), { minLength: 2, maxLength: 6 }),
        (start, steps) => expectToKeepUp(start, steps),
      ),
      // A run takes as long as two runs of the other tests.
      { numRuns: Math.ceil(numRuns / 2) },
    );
  });

  it('give gateways that share routes the same resources as a full build', () => {
    fc.assert(
      fc.property(
        fc.array(routerObjects, { minLength: 4, maxLength: 12 }),
        fc.array(stepOf(routerObjects), { minLength: 1, maxLength: 4 }),
        (start, steps) => expectToKeepUp(start, steps, { allClients: routers, types: [listenerType, routeType] }),
      ),
      { numRuns },
    );
  });

  it('give gateways with BackendTLSPolicies the same resources as a full build', () => {
    const types = [clusterType, endpointType, listenerType, routeType];
    fc.assert(
      fc.property(
        fc.tuple(nearService, gateway),
        fc.array(backendObjects, { minLength: 2, maxLength: 6 }),
        fc.array(stepOf(backendObjects), { minLength: 1, maxLength: 5 }),
        (first, otherObjects, steps) =>
          expectToKeepUp([...first, ...otherObjects], steps, { allClients: routers, types }),
      ),
      { numRuns: Math.ceil(numRuns / 2) },
    );
  });

  it('give each proxy the same shared and separate resources as a build without sharing', () => {
    const comparedTypes = [clusterType, endpointType];
    fc.assert(
      fc.property(fc.array(meantDifferently, { minLength: 4, maxLength: 14 }), (all) => {
        const states = [60_000, 0].map((maxEntries) => {
          const world = new GivenWorld([...all], maxEntries);
          return [...connectAll(world), world.connect('10.9.0.8', { namespace: 'b', labels: { app: 'web' } })].map(
            (node) => inAnyOrder(stateOfTypes(node, comparedTypes)),
          );
        });
        expect(states[0]).toEqual(states[1]);
      }),
      { numRuns },
    );
  });
});
