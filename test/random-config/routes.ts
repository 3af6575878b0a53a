/** Random VirtualServices. */
import {
  cidr,
  destination,
  destinations,
  duration,
  headerName,
  host,
  hosts,
  labels,
  type MeshVocabulary,
  namespaces,
  path,
  percent,
  regex,
  stringMatch,
  text,
} from './values.ts';

export function virtualService(world: MeshVocabulary): object {
  const { draw } = world;
  const routeHosts = draw.some(hosts, 1, 2);
  const gateways = draw.pick([['mesh'], ['front'], ['front', 'mesh'], undefined]);
  return {
    hosts: routeHosts,
    ...(gateways && { gateways }),
    ...draw.one<object>(
      () => ({ http: draw.list(1, 5, () => httpRoute(world)) }),
      () => ({ http: draw.list(1, 3, () => httpRoute(world)) }),
      () => ({ http: draw.list(1, 3, () => httpRoute(world)) }),
      () => ({ tcp: draw.list(1, 2, () => tcpRoute(world)) }),
      () => ({ tls: draw.list(1, 2, () => tlsRoute(world, routeHosts)) }),
    ),
    ...draw.maybe('exportTo', 0.1, () => draw.pick([['.'], ['*'], ['shop']])),
  };
}

/** A delegate VirtualService, to which a root delegates. */
export function delegate(world: MeshVocabulary): object {
  return { http: world.draw.list(1, 2, () => httpRoute(world)) };
}

function httpRoute(world: MeshVocabulary): object {
  const { draw } = world;
  const isDirectResponse = draw.chance(0.25);
  return {
    ...draw.maybe('name', 0.3, () => draw.pick(['main', 'a b', 'x'.repeat(100)])),
    ...draw.maybe('match', 0.7, () => draw.list(1, 3, () => httpMatch(world))),
    ...(isDirectResponse ? directResponseAction(world) : forwarded(world)),
    ...draw.maybe('headers', 0.3, () => headers(world)),
    ...draw.maybe('corsPolicy', 0.2, () => cors(world)),
    ...(isDirectResponse ? {} : draw.maybe('fault', 0.2, () => fault(world))),
  };
}

function directResponseAction({ draw }: MeshVocabulary): object {
  const body = (): object => draw.pick([{ string: text(draw) }, { bytes: 'aGk=' }]);
  const target = {
    ...draw.maybe('uri', 0.6, () => draw.pick(['/new', '%PREFIX()%/x', '/x?y=1', '/%20'])),
    ...draw.maybe('scheme', 0.3, () => draw.pick(['https', 'http'])),
    ...draw.maybe('redirectCode', 0.5, () => draw.pick([301, 302, 303, 307, 308])),
    ...draw.pick([{}, { port: 8443 }, { derivePort: 'FROM_PROTOCOL_DEFAULT' }, { derivePort: 'FROM_REQUEST_PORT' }]),
  };
  return draw.one<object>(
    () => ({ redirect: { authority: draw.pick(['other.test', 'other.test:8443']), ...target } }),
    () => ({ directResponse: { status: draw.pick([200, 204, 418, 503, 599]), ...draw.maybe('body', 0.6, body) } }),
  );
}

function forwarded(world: MeshVocabulary): object {
  const { draw } = world;
  const retries = (): object => ({
    attempts: draw.pick([1, 3, 10]),
    ...draw.maybe('perTryTimeout', 0.5, () => duration(draw)),
    ...draw.maybe('retryOn', 0.6, () =>
      draw.pick([
        '5xx',
        'gateway-error,reset',
        '503',
        'connect-failure,refused-stream,unavailable,cancelled,503',
        'retriable-status-codes,429',
      ]),
    ),
    ...draw.maybe('retryRemoteLocalities', 0.3, () => draw.chance(0.5)),
    ...draw.maybe('retryIgnorePreviousHosts', 0.2, () => draw.chance(0.5)),
    ...draw.maybe('backoff', 0.2, () => duration(draw)),
  });
  const mirror = (): object => ({
    destination: destination(world),
    ...draw.maybe('percentage', 0.5, () => percent(draw)),
  });
  return {
    route: destinations(world).map((one) => ({ ...one, ...draw.maybe('headers', 0.2, () => headers(world)) })),
    ...draw.maybe('timeout', 0.3, () => (draw.chance(0.2) ? '0s' : duration(draw))),
    ...draw.maybe('retries', 0.4, () => (draw.chance(0.2) ? { attempts: 0 } : retries())),
    ...draw.maybe('rewrite', 0.3, () => rewrite(world)),
    ...draw.pick([{}, {}, {}, { mirror: destination(world) }, { mirrors: draw.list(1, 2, mirror) }]),
  };
}

function rewrite({ draw }: MeshVocabulary): object {
  return draw.one<object>(
    () => ({ uri: path(draw) }),
    () => ({ authority: draw.pick(['other.test', 'other.test:81']) }),
    () => ({ uri: path(draw), authority: 'other.test' }),
    () => ({ uriRegexRewrite: { match: regex(draw), rewrite: draw.pick(['/new', '\\1', '/a\\0', '/x']) } }),
  );
}

function httpMatch(world: MeshVocabulary): object {
  const { draw, servicePorts } = world;
  const value = (): object => (draw.chance(0.1) ? {} : stringMatch(draw, text));
  return {
    ...draw.maybe('uri', 0.7, () => stringMatch(draw)),
    ...draw.maybe('ignoreUriCase', 0.2, () => draw.chance(0.5)),
    ...draw.maybe('method', 0.2, () => ({ exact: draw.pick(['GET', 'POST', 'PURGE']) })),
    ...draw.maybe('scheme', 0.1, () => ({ exact: 'https' })),
    ...draw.maybe('authority', 0.2, () => stringMatch(draw, host)),
    ...draw.maybe('headers', 0.3, () => Object.fromEntries(draw.list(1, 2, () => [headerName(draw), value()]))),
    ...draw.maybe('withoutHeaders', 0.2, () => ({ [headerName(draw)]: value() })),
    ...draw.maybe('queryParams', 0.2, () => ({ [draw.pick(['q', 'a b', 'ümlaut', 'q[]'])]: value() })),
    ...draw.maybe('port', 0.1, () => draw.pick(servicePorts)),
    ...draw.maybe('sourceLabels', 0.15, () => labels(draw)),
    ...draw.maybe('sourceNamespace', 0.1, () => draw.pick(namespaces)),
    ...draw.maybe('gateways', 0.1, () => draw.pick([['front'], ['mesh']])),
    ...draw.maybe('statPrefix', 0.1, () => 'prefix'),
  };
}

function headers({ draw }: MeshVocabulary): object {
  const name = (): string => draw.pick(['x-a', 'x-b', 'X-Mixed', 'Host', ':authority', 'x-c']);
  const values = (): object => Object.fromEntries(draw.list(1, 2, () => [name(), text(draw)]));
  const operations = (): object => ({
    ...draw.maybe('set', 0.5, values),
    ...draw.maybe('add', 0.5, values),
    ...draw.maybe('remove', 0.4, () => draw.some(['x-d', 'cookie', 'Server', ':path', 'host'], 1, 2)),
  });
  return { ...draw.maybe('request', 0.7, operations), ...draw.maybe('response', 0.7, operations) };
}

function cors({ draw }: MeshVocabulary): object {
  const origin = (): string => draw.pick(['https://a.test', '*', 'null']);
  return {
    ...draw.maybe('allowOrigins', 0.9, () => draw.list(1, 2, () => stringMatch(draw, origin))),
    ...draw.maybe('allowMethods', 0.5, () => ['GET', 'PUT']),
    ...draw.maybe('allowHeaders', 0.4, () => ['x-a', '*']),
    ...draw.maybe('exposeHeaders', 0.3, () => ['x-b']),
    ...draw.maybe('maxAge', 0.4, () => draw.pick(['0s', '1s', '24h'])),
    ...draw.maybe('allowCredentials', 0.4, () => draw.chance(0.5)),
    ...draw.maybe('unmatchedPreflights', 0.3, () => draw.pick(['FORWARD', 'IGNORE', 'UNSPECIFIED'])),
  };
}

function fault({ draw }: MeshVocabulary): object {
  const share = (): object => draw.maybe('percentage', 0.8, () => percent(draw));
  const delay = { fixedDelay: duration(draw), ...share() };
  const abort = {
    ...draw.pick<object>([{ httpStatus: 503 }, { httpStatus: 200 }, { grpcStatus: 'UNAVAILABLE' }]),
    ...share(),
  };
  return draw.pick<object>([{ delay }, { abort }, { delay, abort }]);
}

function l4(world: MeshVocabulary): object {
  const { draw, gatewayPorts, servicePorts } = world;
  return {
    ...draw.maybe('destinationSubnets', 0.3, () => draw.list(1, 3, () => cidr(draw))),
    ...draw.maybe('port', 0.4, () => draw.pick([...servicePorts, ...gatewayPorts])),
    ...draw.maybe('sourceLabels', 0.1, () => labels(draw)),
    ...draw.maybe('gateways', 0.1, () => ['front']),
  };
}

function tcpRoute(world: MeshVocabulary): object {
  const { draw } = world;
  const match = (): object => ({ ...l4(world), ...draw.maybe('sourceSubnet', 0.1, () => cidr(draw)) });
  return { ...draw.maybe('match', 0.6, () => draw.list(1, 2, match)), route: destinations(world) };
}

function tlsRoute(world: MeshVocabulary, names: readonly string[]): object {
  const { draw } = world;
  return {
    match: draw.list(1, 2, () => ({ sniHosts: draw.some(names, 1, 2), ...l4(world) })),
    route: destinations(world),
  };
}
