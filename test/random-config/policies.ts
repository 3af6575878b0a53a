/** Random Gateways, and policies of security, telemetry and patches. */
import { cidr, host, hosts, labels, type MeshVocabulary, percent, text } from './values.ts';

export function gateway(world: MeshVocabulary): object {
  return { selector: { istio: 'edge' }, servers: world.draw.list(1, 3, (index) => server(world, index)) };
}

function server(world: MeshVocabulary, index: number): object {
  const { draw, gatewayPorts } = world;
  const number = draw.pick(gatewayPorts);
  const serverHosts = draw.some([...hosts, '*', 'shop/*', './cart.shop.test', '*/pay.shop.test', '*.test'], 1, 3);
  const port = (protocol: string): object => ({ number, protocol, name: `server-${index}` });
  return draw.one<object>(
    () => ({ port: port('HTTP'), hosts: serverHosts, ...draw.maybe('tls', 0.2, () => ({ httpsRedirect: true })) }),
    () => ({ port: port(draw.pick(['HTTP2', 'GRPC'])), hosts: serverHosts }),
    () => ({ port: port('HTTPS'), hosts: serverHosts, tls: serverTls(world) }),
    () => ({
      port: port('TLS'),
      hosts: serverHosts,
      tls: draw.pick([{ mode: 'PASSTHROUGH' }, { mode: 'AUTO_PASSTHROUGH' }, serverTls(world)]),
    }),
    () => ({ port: port(draw.pick(['TCP', 'MONGO'])), hosts: ['*'] }),
  );
}

function serverTls({ draw, files }: MeshVocabulary): object {
  const certificatePair = { serverCertificate: files.certificate, privateKey: files.key };
  return {
    ...draw.pick<object>([
      { mode: 'SIMPLE', ...certificatePair },
      { mode: 'SIMPLE', credentialName: 'missing' },
      { mode: 'MUTUAL', ...certificatePair, caCertificates: files.ca },
      { mode: 'OPTIONAL_MUTUAL', ...certificatePair, caCertificates: files.ca },
    ]),
    ...draw.maybe('minProtocolVersion', 0.3, () => draw.pick(['TLSV1_2', 'TLSV1_3', 'TLS_AUTO', 'TLSV1_0'])),
    ...draw.maybe('maxProtocolVersion', 0.2, () => draw.pick(['TLSV1_2', 'TLSV1_3'])),
    ...draw.maybe('cipherSuites', 0.2, () => ['ECDHE-ECDSA-AES256-GCM-SHA384', 'ECDHE-RSA-AES128-GCM-SHA256']),
  };
}

export function peerAuthentication({ draw, servicePorts }: MeshVocabulary): object {
  const mode = (): object => ({ mode: draw.pick(['STRICT', 'PERMISSIVE', 'DISABLE', 'UNSET']) });
  if (draw.chance(0.5)) return { mtls: mode() };
  const portLevelMtls = (): object => ({ [String(draw.pick(servicePorts))]: mode() });
  return {
    selector: { matchLabels: { app: 'web' } },
    mtls: mode(),
    ...draw.maybe('portLevelMtls', 0.5, portLevelMtls),
  };
}

const conditionKeys: readonly (readonly [string, readonly string[]])[] = [
  ['request.headers[x-user]', ['a', 'a*', '*']],
  ['source.ip', ['10.0.0.0/8', '::1']],
  ['source.namespace', ['shop', 'sta*']],
  ['destination.port', ['80', '443']],
  ['destination.ip', ['10.1.1.1']],
  ['request.auth.claims[groups]', ['admin', '*']],
  ['request.auth.claims[a][b]', ['x']],
  ['connection.sni', ['cart.shop.test', '*.test']],
  ['source.principal', ['cluster.local/ns/shop/sa/web']],
  ['request.auth.principal', ['issuer-0.test/*']],
  ['request.auth.audiences', ['a']],
  ['experimental.envoy.filters.network.mysql_proxy[db.table]', ['[update]']],
];

/** Half of them apply to connections only, without methods, paths and claims. */
export function authorizationPolicy({ draw, servicePorts }: MeshVocabulary): object {
  const maybeNot = (name: string, values: () => readonly string[]): object =>
    draw.maybe(draw.chance(0.25) ? `not${name[0]!.toUpperCase()}${name.slice(1)}` : name, 0.4, values);
  const source = (): object => ({
    source: {
      namespaces: draw.some(['shop', 'sta*', '*'], 1, 2),
      ...maybeNot('principals', () =>
        draw.some(['cluster.local/ns/shop/sa/web', '*', 'cluster.local/*', '*/sa/web'], 1, 2),
      ),
      ...maybeNot('requestPrincipals', () => draw.some(['issuer-0.test/*', '*'], 1, 2)),
      ...maybeNot('ipBlocks', () => draw.list(1, 2, () => cidr(draw))),
      ...maybeNot('remoteIpBlocks', () => draw.list(1, 2, () => cidr(draw))),
    },
  });
  const operation = (): object => ({
    operation: {
      ports: [String(draw.pick(servicePorts))],
      ...maybeNot('hosts', () => draw.list(1, 2, () => host(draw))),
      ...maybeNot('methods', () => draw.some(['GET', 'POST', 'P*', '*'], 1, 2)),
      ...maybeNot('paths', () => draw.some(['/admin*', '*/info', '/a/{*}/b', '/x/{**}', '/', '*'], 1, 2)),
    },
  });
  const condition = (): object => {
    const [key, values] = draw.pick(conditionKeys);
    return { key, [draw.pick(['values', 'notValues'])]: draw.some(values, 1, 2) };
  };
  const action = draw.pick(['ALLOW', 'DENY', 'AUDIT']);
  return {
    ...draw.maybe('selector', 0.4, () => ({ matchLabels: draw.pick<object>([{ app: 'web' }, { istio: 'edge' }]) })),
    action,
    rules: draw.list(action === 'ALLOW' ? 0 : 1, 3, () => ({
      ...draw.maybe('from', 0.6, () => draw.list(1, 2, source)),
      ...draw.maybe('to', 0.6, () => draw.list(1, 2, operation)),
      ...draw.maybe('when', 0.4, () => draw.list(1, 2, condition)),
    })),
  };
}

/** A public key on the curve P-256. */
const key = {
  kty: 'EC',
  crv: 'P-256',
  x: 'MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4',
  y: '4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM',
};

export function requestAuthentication({ draw }: MeshVocabulary): object {
  const rule = (index: number): object => ({
    issuer: `issuer-${index}.test`,
    jwks: JSON.stringify({ keys: [{ ...key, kid: '1' }] }),
    ...draw.maybe('audiences', 0.3, () => ['a', 'b']),
    ...draw.maybe('fromHeaders', 0.3, () => [{ name: 'x-token', ...draw.maybe('prefix', 0.5, () => 'Token ') }]),
    ...draw.maybe('fromParams', 0.2, () => ['token']),
    ...draw.maybe('fromCookies', 0.2, () => ['session']),
    ...draw.maybe('outputPayloadToHeader', 0.2, () => 'x-payload'),
    ...draw.maybe('outputClaimToHeaders', 0.2, () => [{ header: 'x-claim', claim: 'sub' }]),
    ...draw.maybe('forwardOriginalToken', 0.3, () => draw.chance(0.5)),
  });
  return {
    ...draw.maybe('selector', 0.5, () => ({ matchLabels: draw.pick<object>([{ app: 'web' }, { istio: 'edge' }]) })),
    jwtRules: draw.list(1, 2, rule),
  };
}

export function telemetry({ draw }: MeshVocabulary): object {
  const expressions = [
    'response.code >= 400',
    "request.path.startsWith('/a')",
    'connection.mtls',
    "request.headers['x-a'] == 'b'",
  ];
  const logging = (): object => ({
    ...draw.maybe('match', 0.4, () => ({ mode: draw.pick(['CLIENT', 'SERVER', 'CLIENT_AND_SERVER']) })),
    ...draw.maybe('disabled', 0.3, () => draw.chance(0.5)),
    ...draw.maybe('providers', 0.6, () => [{ name: 'envoy' }]),
    ...draw.maybe('filter', 0.4, () => ({ expression: draw.pick(expressions) })),
  });
  const tracing = (): object => ({
    randomSamplingPercentage: percent(draw).value,
    ...draw.maybe('customTags', 0.4, () => ({ a: { literal: { value: text(draw) } }, b: { header: { name: 'x-b' } } })),
  });
  return {
    ...draw.maybe('selector', 0.4, () => ({ matchLabels: labels(draw) })),
    ...draw.maybe('accessLogging', 0.7, () => [logging()]),
    ...draw.maybe('tracing', 0.4, () => [tracing()]),
  };
}

const manager = 'envoy.filters.network.http_connection_manager';
const typed = (name: string, extraFields: object): object => ({
  '@type': `type.googleapis.com/envoy.extensions.filters.${name}`,
  ...extraFields,
});
const lua = {
  name: 'lua',
  typed_config: typed('http.lua.v3.Lua', {
    default_source_code: { inline_string: 'function envoy_on_request(h) end' },
  }),
};
/** Some are invalid, because Envoy does not accept each of them. */
const pathTemplates = [
  '/a/*',
  '/**',
  '/{a}/{b=**}',
  '/{a}.x',
  '/{a=b/*}/c',
  '/a*',
  '/{a}/{a}',
  '/**/*',
  'a',
  '/a b',
  '/{a}{b}',
];
const denial = (template: string): object => {
  const uriTemplate = {
    name: 'envoy.path.match.uri_template.uri_template_matcher',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.path.match.uri_template.v3.UriTemplateMatchConfig',
      path_template: template,
    },
  };
  const policies = { odd: { permissions: [{ uri_template: uriTemplate }], principals: [{ any: true }] } };
  return { name: 'denial', typed_config: typed('http.rbac.v3.RBAC', { rules: { action: 'DENY', policies } }) };
};
const managerPatch = { server_name: 'patched', max_request_headers_kb: 96 };

/** Only uses extensions of a stock Envoy. */
export function envoyFilter({ draw, servicePorts }: MeshVocabulary): object {
  const context = draw.pick(['ANY', 'SIDECAR_OUTBOUND', 'SIDECAR_INBOUND', 'GATEWAY']);
  const patch = (applyTo: string, match: object, operation: string, value?: object): object => ({
    applyTo,
    match: { context, ...match },
    patch: { operation, ...(value && { value }) },
  });
  const inManager = (extraFields: object = {}): object => ({
    listener: { filterChain: { filter: { name: manager, ...extraFields } } },
  });
  const patches = [
    patch('HTTP_FILTER', inManager({ subFilter: { name: 'envoy.filters.http.router' } }), 'INSERT_BEFORE', lua),
    patch('HTTP_FILTER', inManager(), draw.pick(['INSERT_FIRST', 'ADD']), lua),
    patch('HTTP_FILTER', inManager(), 'INSERT_FIRST', denial(draw.pick(pathTemplates))),
    patch('NETWORK_FILTER', inManager(), 'MERGE', {
      name: manager,
      typed_config: typed('network.http_connection_manager.v3.HttpConnectionManager', managerPatch),
    }),
    patch(
      'CLUSTER',
      draw.maybe('cluster', 0.5, () => ({ service: draw.pick(hosts) })),
      'MERGE',
      { connect_timeout: '3s', per_connection_buffer_limit_bytes: 65536 },
    ),
    patch('CLUSTER', { cluster: { portNumber: draw.pick(servicePorts) } }, 'REMOVE'),
    patch('CLUSTER', {}, 'ADD', { name: 'added', type: 'STATIC', connect_timeout: '1s' }),
    patch(
      'VIRTUAL_HOST',
      draw.maybe('routeConfiguration', 0.5, () => ({ portNumber: draw.pick(servicePorts) })),
      'MERGE',
      { include_request_attempt_count: true },
    ),
    patch('HTTP_ROUTE', {}, 'MERGE', { response_headers_to_add: [{ header: { key: 'x-patched', value: 'yes' } }] }),
    patch('ROUTE_CONFIGURATION', {}, 'MERGE', { request_headers_to_remove: ['x-secret'] }),
    patch('LISTENER', {}, 'MERGE', { per_connection_buffer_limit_bytes: 32768 }),
    patch('FILTER_CHAIN', {}, 'MERGE', { transport_socket_connect_timeout: '10s' }),
  ];
  return {
    ...draw.maybe('workloadSelector', 0.3, () => ({ labels: labels(draw) })),
    ...draw.maybe('priority', 0.3, () => draw.int(-5, 5)),
    configPatches: draw.some(patches, 1, 3),
  };
}
