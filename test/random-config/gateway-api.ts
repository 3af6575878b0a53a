/** Random objects of the Kubernetes Gateway API, with their backend Services. */

import type { Draw } from './draw.ts';
import type { WrittenObject } from './values.ts';
import { type MeshVocabulary, namespaces, regex, text } from './values.ts';

const group = 'gateway.networking.k8s.io';
/** Routers find their Gateway by this name in a label. */
export const gatewayName = 'kube';
const services = ['web', 'api'] as const;
const hostnames = ['cart.shop.test', '*.shop.test', 'a.b.shop.test', 'x.test', 'localhost'] as const;
const paths = ['/', '/a', '/a/', '/a/b', '/A', '/a%20b', '/a.b', '/(x)', '/a+b', '/$&'] as const;

/** Returns nothing for most meshes, otherwise a Gateway, routes attached to it and to Services, and grants. */
export function gatewayApi(world: MeshVocabulary): readonly WrittenObject[] {
  const { draw } = world;
  if (!draw.chance(0.4)) return [];
  const gatewayObject = (kind: string, name: string, namespace: string, spec: object, apiVersion = `${group}/v1`) => ({
    ...{ apiVersion, kind, metadata: { name, namespace }, spec },
  });
  const ports = [
    { name: 'http', port: draw.pick(world.servicePorts) },
    { name: 'tcp-other', port: 9090 },
  ];
  return [
    ...services.map((name) => gatewayObject('Service', name, 'shop', { clusterIP: 'None', ports }, 'v1')),
    gatewayObject('Gateway', gatewayName, 'shop', gateway(world)),
    ...draw.list(1, 3, (index) => {
      const namespace = draw.chance(0.7) ? 'shop' : draw.pick(namespaces);
      const [kind, rules] = draw.pick([
        ...Array.from({ length: 5 }, () => ['HTTPRoute', rule] as const),
        ...[['GRPCRoute', grpcRule] as const, ['GRPCRoute', grpcRule] as const],
        ...[['TCPRoute', l4Rule] as const, ['TLSRoute', l4Rule] as const],
      ]);
      return gatewayObject(kind, `route-${index}`, namespace, route(world, ports[0]!.port, kind, rules));
    }),
    ...(draw.chance(0.3) ? [gatewayObject('BackendTLSPolicy', 'secured', 'shop', backendTls(draw))] : []),
    ...(draw.chance(0.5) ? [gatewayObject('ReferenceGrant', 'grant', 'shop', grant(draw), `${group}/v1beta1`)] : []),
  ];
}

function backendTls(draw: Draw): object {
  const ca = { group: '', kind: draw.pick(['ConfigMap', 'Secret']), name: 'ca' };
  return {
    targetRefs: [
      { group: '', kind: 'Service', name: draw.pick(services), ...draw.maybe('sectionName', 0.5, () => 'http') },
    ],
    validation: {
      hostname: 'backend.test',
      ...(draw.chance(0.5) ? { wellKnownCACertificates: 'System' } : { caCertificateRefs: [ca] }),
      ...draw.maybe('subjectAltNames', 0.5, () => [{ type: 'URI', uri: 'spiffe://cluster.local/ns/shop/sa/web' }]),
    },
  };
}

function gateway({ draw, gatewayPorts }: MeshVocabulary): object {
  return {
    gatewayClassName: draw.chance(0.95) ? 'istio' : 'other',
    listeners: draw.list(1, 4, (index) => {
      const protocol = draw.pick(['HTTP', 'HTTP', 'HTTPS', 'TCP', 'TLS']);
      const certificateRefs = draw.some([{ name: 'one' }, { name: 'two' }], 1, 2);
      const from = draw.pick(['All', 'Same', 'Selector']);
      return {
        ...{ name: `l${index}`, port: draw.pick(gatewayPorts), protocol },
        ...(protocol === 'TCP' ? {} : draw.maybe('hostname', 0.5, () => draw.pick(hostnames))),
        ...(protocol === 'HTTPS' && { tls: { certificateRefs } }),
        ...(protocol === 'TLS' && { tls: draw.chance(0.6) ? { mode: 'Passthrough' } : { certificateRefs } }),
        ...draw.maybe('allowedRoutes', 0.5, () => ({
          namespaces: { from, ...(from === 'Selector' && { selector: { matchLabels: { team: 'web' } } }) },
        })),
      };
    }),
  };
}

function route(world: MeshVocabulary, port: number, kind: string, rules: typeof rule): object {
  const { draw } = world;
  const serviceParent = (): object => ({
    ...{ group: '', kind: 'Service', name: draw.pick(services), namespace: 'shop' },
    ...draw.maybe('port', 0.4, () => draw.pick([port, 9090])),
  });
  const at = (): object => ({
    ...{ name: gatewayName, namespace: 'shop' },
    ...draw.maybe('sectionName', 0.3, () => draw.pick(['l0', 'l1'])),
  });
  return {
    parentRefs: draw.chance(0.7) ? [at()] : draw.chance(0.5) ? [at(), serviceParent()] : [serviceParent()],
    ...draw.maybe('hostnames', kind === 'TCPRoute' ? 0 : 0.6, () => draw.some(hostnames, 1, 3)),
    rules: draw.list(1, 3, () => rules(draw, port)),
  };
}

function rule(draw: Draw, port: number): object {
  const matches = draw.list(1, 3, () => match(draw));
  const sole = matches.length === 1;
  if (draw.chance(0.25)) return { matches, filters: [...headers(draw), redirect(draw, sole)] };
  return {
    ...draw.maybe('matches', 0.9, () => matches),
    ...forwarding(draw, port, draw.chance(0.4) ? [rewrite(draw, sole)] : []),
    ...draw.maybe('timeouts', 0.3, () => ({
      ...draw.maybe('request', 0.6, () => draw.pick(['0s', '1s', '99999h', '1h1m1s1ms'])),
      ...draw.maybe('backendRequest', 0.6, () => draw.pick(['0s', '1ms', '1s'])),
    })),
  };
}

function forwarding(draw: Draw, port: number, extraFilters: readonly object[]): object {
  const mirror = { type: 'RequestMirror', requestMirror: { backendRef: backend(draw, port), ...share(draw) } };
  return {
    filters: [...headers(draw), ...(draw.chance(0.2) ? [mirror] : []), ...extraFilters],
    backendRefs: draw.list(0, 3, () => ({
      ...backend(draw, port),
      ...draw.maybe('weight', 0.6, () => draw.pick([0, 1, 50, 1_000_000])),
      ...draw.maybe('filters', 0.2, () => headers(draw)),
    })),
  };
}

function grpcRule(draw: Draw, port: number): object {
  return { ...draw.maybe('matches', 0.9, () => draw.list(1, 3, () => grpcMatch(draw))), ...forwarding(draw, port, []) };
}

function l4Rule(draw: Draw, port: number): object {
  return {
    backendRefs: draw.list(1, 3, () => ({
      ...backend(draw, port),
      ...draw.maybe('weight', 0.5, () => draw.pick([0, 1, 7])),
    })),
  };
}

function grpcMatch(draw: Draw): object {
  const { headers: matched } = match(draw) as { headers?: object };
  const method = draw.one<object>(
    () => ({ service: draw.pick(['shop.v1.Cart', '.a', 'A_1']) }),
    () => ({ service: 'shop.v1.Cart', method: draw.pick(['Get', '_x']) }),
    () => ({ method: 'Get' }),
    () => ({ type: 'RegularExpression', service: regex(draw), ...draw.maybe('method', 0.5, () => regex(draw)) }),
  );
  return { ...draw.maybe('method', 0.8, () => method), ...(matched && { headers: matched }) };
}

function match(draw: Draw): object {
  const value = (): object =>
    draw.chance(0.5) ? { value: text(draw) } : { type: 'RegularExpression', value: regex(draw) };
  return {
    ...draw.maybe('path', 0.8, () =>
      draw.one<object>(
        () => ({ value: draw.pick(paths) }),
        () => ({ type: 'Exact', value: draw.pick(paths) }),
        () => ({ type: 'RegularExpression', value: regex(draw) }),
      ),
    ),
    ...draw.maybe('headers', 0.3, () => [{ name: draw.pick(['X-A', 'x-b', '~odd|']), ...value() }]),
    ...draw.maybe('queryParams', 0.3, () => [{ name: draw.pick(['q', 'Q', '$x']), ...value() }]),
    ...draw.maybe('method', 0.2, () => draw.pick(['GET', 'CONNECT', 'TRACE'])),
  };
}

function headers(draw: Draw): object[] {
  const values = (): object[] =>
    draw.some(['X-A', 'host', 'cookie'], 1, 2).map((name) => ({ name, value: text(draw) }));
  const modifier = (): object => ({
    ...draw.maybe('set', 0.5, values),
    ...draw.maybe('add', 0.5, values),
    ...draw.maybe('remove', 0.3, () => ['X-Gone', 'Host']),
  });
  return [
    ...(draw.chance(0.3) ? [{ type: 'RequestHeaderModifier', requestHeaderModifier: modifier() }] : []),
    ...(draw.chance(0.3) ? [{ type: 'ResponseHeaderModifier', responseHeaderModifier: modifier() }] : []),
  ];
}

function path(draw: Draw, sole: boolean): object {
  if (sole && draw.chance(0.5)) {
    return {
      type: 'ReplacePrefixMatch',
      replacePrefixMatch: draw.pick(['/', '', '/x', 'x', '/x/', '/\\1', '/%PREFIX()%']),
    };
  }
  return { type: 'ReplaceFullPath', replaceFullPath: draw.pick(['/', '/x', '', '/a?b=c', '/\\0', '/%20']) };
}

function rewrite(draw: Draw, sole: boolean): object {
  const urlRewrite = {
    ...draw.maybe('hostname', 0.4, () => 'inner.test'),
    ...draw.maybe('path', 0.8, () => path(draw, sole)),
  };
  return { type: 'URLRewrite', urlRewrite };
}

function redirect(draw: Draw, sole: boolean): object {
  const requestRedirect = {
    ...draw.maybe('scheme', 0.4, () => draw.pick(['http', 'https'])),
    ...draw.maybe('hostname', 0.4, () => 'other.test'),
    ...draw.maybe('path', 0.5, () => path(draw, sole)),
    ...draw.maybe('port', 0.3, () => draw.pick([80, 443, 8443])),
    ...draw.maybe('statusCode', 0.5, () => draw.pick([301, 303, 308])),
  };
  return { type: 'RequestRedirect', requestRedirect };
}

function backend(draw: Draw, port: number): object {
  return draw.one<object>(
    () => ({ name: draw.pick(services), port }),
    () => ({ name: draw.pick(services), namespace: 'shop', port }),
    () => ({ name: 'gone', port }),
    () => ({ group: 'networking.istio.io', kind: 'Hostname', name: 'cart.shop.test', port }),
  );
}

function share(draw: Draw): object {
  return draw.pick<object>([{}, { percent: 0 }, { percent: 33 }, { fraction: { numerator: 1, denominator: 3 } }]);
}

function grant(draw: Draw): object {
  return {
    from: [
      {
        group,
        kind: draw.pick(['HTTPRoute', 'GRPCRoute', 'TLSRoute']),
        namespace: draw.pick(['stage', 'istio-system']),
      },
    ],
    to: [{ group: '', kind: 'Service', ...draw.maybe('name', 0.5, () => 'web') }],
  };
}
