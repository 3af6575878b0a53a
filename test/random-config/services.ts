/** Random ServiceEntries, DestinationRules and Sidecars. */
import { cidr, duration, headerName, hosts, labels, type MeshVocabulary, subsets } from './values.ts';

const protocols = [
  'HTTP',
  'HTTP',
  'HTTP2',
  'GRPC',
  'GRPC-Web',
  'TCP',
  'TLS',
  'HTTPS',
  'MONGO',
  'REDIS',
  'MYSQL',
  undefined,
] as const;

export function serviceEntry(world: MeshVocabulary, index: number): object {
  const { draw, servicePorts } = world;
  const host = draw.pick(hosts);
  const isWild = host.startsWith('*');
  const resolution = draw.pick(
    isWild ? ['NONE', 'NONE', 'STATIC', 'DYNAMIC_DNS'] : ['STATIC', 'STATIC', 'DNS', 'DNS_ROUND_ROBIN', 'NONE'],
  );
  const isDns = resolution.startsWith('DNS');
  const ports = draw.some(servicePorts, 1, 3).map((number, at) => {
    const protocol = resolution === 'DYNAMIC_DNS' ? draw.pick(['HTTP', 'TLS']) : draw.pick(protocols);
    return {
      number,
      name: `port-${at}`,
      ...(protocol && { protocol }),
      ...draw.maybe('targetPort', 0.3, () => draw.int(1, 65535)),
    };
  });
  const maxAddresses = resolution === 'DNS_ROUND_ROBIN' ? 1 : 3;
  const drawnAddresses = [`127.0.1.${10 + index}`];
  const addresses = draw.pick([
    drawnAddresses,
    [`127.0.1.${20 + index}`, `127.0.2.${index + 1}`],
    isDns ? drawnAddresses : [cidr(draw)],
  ]);
  return {
    hosts: [host],
    ports,
    resolution,
    location: draw.pick(['MESH_INTERNAL', 'MESH_EXTERNAL']),
    ...(resolution !== 'DYNAMIC_DNS' && draw.chance(0.4) && { addresses }),
    ...((resolution === 'STATIC' || (isDns && draw.chance(0.4))) && {
      endpoints: draw.list(1, maxAddresses, () => endpoint(world, isDns)),
    }),
    ...draw.maybe('exportTo', 0.1, () => draw.pick([['.'], ['*'], ['stage']])),
    ...draw.maybe('subjectAltNames', 0.1, () => ['spiffe://cluster.local/ns/shop/sa/cart']),
  };
}

function endpoint(world: MeshVocabulary, isDns: boolean): object {
  const { draw } = world;
  const address = draw.pick(
    isDns ? ['localhost', '127.0.0.1', 'backend.invalid'] : ['127.0.0.1', '10.1.1.1', '10.1.1.2', '2001:db8::1'],
  );
  return {
    address,
    labels: { version: draw.pick(subsets) },
    ...draw.maybe('ports', 0.4, () => ({ 'port-0': draw.int(1, 65535) })),
    ...draw.maybe('weight', 0.3, () => draw.pick([1, 10, 100])),
    ...draw.maybe('locality', 0.4, () => draw.pick(['us/a', 'us/b/c', 'eu'])),
    ...draw.maybe('network', 0.1, () => 'other'),
  };
}

export function destinationRule(world: MeshVocabulary): object {
  const { draw, servicePorts } = world;
  const wholePolicy = (): object => ({
    ...policy(world),
    ...draw.maybe('portLevelSettings', 0.3, () => [{ port: { number: draw.pick(servicePorts) }, ...policy(world) }]),
    ...draw.maybe('tunnel', 0.1, () => ({
      protocol: draw.pick(['CONNECT', 'POST']),
      targetHost: 'far.test',
      targetPort: 443,
    })),
    ...draw.maybe('proxyProtocol', 0.1, () => ({ version: draw.pick(['V1', 'V2']) })),
  });
  const subset = (name: string): object => ({
    name,
    labels: { version: name },
    ...draw.maybe('trafficPolicy', 0.4, () => policy(world)),
  });
  return {
    host: draw.pick([...hosts, 'unknown.test']),
    ...draw.maybe('trafficPolicy', 0.8, wholePolicy),
    ...draw.maybe('subsets', 0.7, () => draw.some(subsets, 1, 3).map(subset)),
    ...draw.maybe('exportTo', 0.1, () => draw.pick([['.'], ['*']])),
    ...draw.maybe('workloadSelector', 0.1, () => ({ matchLabels: labels(draw) })),
  };
}

/** Has at least one field. */
function policy(world: MeshVocabulary): object {
  const { draw } = world;
  return {
    ...draw.one<object>(
      () => ({ loadBalancer: loadBalancer(world) }),
      () => ({ connectionPool: connectionPool(world) }),
      () => ({ tls: clientTls(world) }),
    ),
    ...draw.maybe('outlierDetection', 0.3, () => outlierDetection(world)),
    ...draw.maybe('connectionPool', 0.2, () => connectionPool(world)),
  };
}

function outlierDetection({ draw }: MeshVocabulary): object {
  return {
    ...draw.maybe('consecutive5xxErrors', 0.5, () => draw.pick([0, 1, 5])),
    ...draw.maybe('consecutiveGatewayErrors', 0.3, () => draw.pick([0, 2])),
    ...draw.maybe('interval', 0.5, () => duration(draw)),
    ...draw.maybe('baseEjectionTime', 0.5, () => duration(draw)),
    ...draw.maybe('maxEjectionPercent', 0.5, () => draw.pick([0, 50, 100])),
    ...draw.maybe('minHealthPercent', 0.3, () => draw.pick([0, 30, 100])),
    ...draw.maybe('splitExternalLocalOriginErrors', 0.2, () => true),
  };
}

function loadBalancer({ draw }: MeshVocabulary): object {
  const key = (): object =>
    draw.one<object>(
      () => ({ httpHeaderName: headerName(draw) }),
      () => ({ httpCookie: { name: 'c', path: '/', ttl: draw.pick(['0s', '10s']) } }),
      () => ({ useSourceIp: true }),
      () => ({ httpQueryParameterName: 'q' }),
    );
  const table = (): object =>
    draw.pick([
      {},
      { ringHash: { minimumRingSize: draw.pick([1, 1024, 8192]) } },
      { maglev: { tableSize: draw.pick([2, 17, 65537]) } },
      { minimumRingSize: 64 },
    ]);
  const localityLbSetting = (): object =>
    draw.pick<object>([
      { enabled: false },
      { enabled: true, failoverPriority: ['version', 'app=web'] },
      { distribute: [{ from: 'us/a/*', to: { 'us/a/*': 80, 'eu/*': 20 } }] },
      { failover: [{ from: 'us', to: 'eu' }] },
    ]);
  const simple = ['ROUND_ROBIN', 'LEAST_REQUEST', 'LEAST_CONN', 'RANDOM', 'PASSTHROUGH', 'UNSPECIFIED'];
  return {
    ...(draw.chance(0.5) ? { simple: draw.pick(simple) } : { consistentHash: { ...key(), ...table() } }),
    ...draw.maybe('localityLbSetting', 0.3, localityLbSetting),
    ...draw.maybe('warmup', 0.15, () => ({
      duration: '90s',
      ...draw.maybe('aggression', 0.5, () => draw.pick([1, 1.5])),
      ...draw.maybe('minimumPercent', 0.5, () => draw.pick([0, 10, 100])),
    })),
  };
}

function connectionPool({ draw }: MeshVocabulary): object {
  const count = (): number => draw.pick([1, 100, 1_000_000, 500_000_000]);
  const tcp = (): object => ({
    ...draw.maybe('maxConnections', 0.5, count),
    ...draw.maybe('connectTimeout', 0.5, () => draw.pick(['1ms', '0.5s', '1h'])),
    ...draw.maybe('tcpKeepalive', 0.3, () => ({ probes: 3, time: '60s', interval: '10s' })),
    ...draw.maybe('maxConnectionDuration', 0.2, () => duration(draw)),
    ...draw.maybe('idleTimeout', 0.2, () => duration(draw)),
  });
  const http = (): object => ({
    ...draw.maybe('http1MaxPendingRequests', 0.4, count),
    ...draw.maybe('http2MaxRequests', 0.4, count),
    ...draw.maybe('maxRequestsPerConnection', 0.4, count),
    ...draw.maybe('maxRetries', 0.4, count),
    ...draw.maybe('idleTimeout', 0.4, () => duration(draw)),
    ...draw.maybe('h2UpgradePolicy', 0.3, () => draw.pick(['UPGRADE', 'DO_NOT_UPGRADE', 'DEFAULT'])),
    ...draw.maybe('useClientProtocol', 0.2, () => true),
    ...draw.maybe('maxConcurrentStreams', 0.2, count),
  });
  return draw.one<object>(
    () => ({ tcp: tcp() }),
    () => ({ http: http() }),
    () => ({ tcp: tcp(), http: http() }),
  );
}

function clientTls({ draw, files }: MeshVocabulary): object {
  const extraTlsFields = {
    ...draw.maybe('subjectAltNames', 0.4, () => ['cart.shop.test', 'spiffe://cluster.local/ns/shop/sa/cart']),
    ...draw.maybe('sni', 0.4, () => 'cart.shop.test'),
  };
  const mutual = { clientCertificate: files.certificate, privateKey: files.key, caCertificates: files.ca };
  return draw.pick<object>([
    { mode: 'DISABLE' },
    { mode: 'SIMPLE', ...extraTlsFields },
    { mode: 'SIMPLE', ...extraTlsFields, caCertificates: files.ca },
    { mode: 'SIMPLE', sni: 'cart.shop.test', insecureSkipVerify: true },
    { mode: 'MUTUAL', ...mutual, ...extraTlsFields },
    { mode: 'ISTIO_MUTUAL' },
  ]);
}

export function sidecar(world: MeshVocabulary): object {
  const { draw, servicePorts } = world;
  const visible = (): string[] =>
    draw.some(['*/*', './*', 'shop/*', '~/*', `*/${draw.pick(hosts)}`, 'istio-system/*'], 1, 2);
  const drawnPorts = draw.some(servicePorts, 1, 2).map((number, index) => ({
    port: {
      number,
      protocol: draw.pick(['HTTP', 'TCP', 'GRPC', 'MONGO', 'TLS', 'HTTP_PROXY']),
      name: `egress-${index}`,
    },
    ...draw.maybe('bind', 0.4, () => draw.pick(['127.0.0.1', '127.0.3.1'])),
    ...draw.maybe('captureMode', 0.3, () => draw.pick(['NONE', 'DEFAULT', 'IPTABLES'])),
    hosts: visible(),
  }));
  const ingress = (): object => ({
    port: { number: draw.pick(servicePorts), protocol: draw.pick(['HTTP', 'TCP', 'GRPC', 'HTTPS']), name: 'in' },
    ...draw.maybe('bind', 0.5, () => '127.0.4.1'),
    defaultEndpoint: draw.pick(['127.0.0.1:9000', 'unix:///tmp/nothing.sock', '0.0.0.0:9000']),
    ...draw.maybe('connectionPool', 0.2, () => connectionPool(world)),
  });
  const egressProxy = { host: 'cart.shop.test', port: { number: servicePorts[0] } };
  return {
    ...draw.maybe('workloadSelector', 0.4, () => ({ labels: labels(draw) })),
    egress: [...(draw.chance(0.4) ? drawnPorts : []), { hosts: visible() }],
    ...draw.maybe('ingress', 0.4, () => [ingress()]),
    ...draw.maybe('outboundTrafficPolicy', 0.5, () =>
      draw.pick<object>([
        { mode: 'REGISTRY_ONLY' },
        { mode: 'ALLOW_ANY' },
        { mode: 'ALLOW_ANY', egressProxy },
        { mode: 'ALLOW_ANY_DYNAMIC_DNS' },
      ]),
    ),
    ...draw.maybe('inboundConnectionPool', 0.1, () => connectionPool(world)),
  };
}
