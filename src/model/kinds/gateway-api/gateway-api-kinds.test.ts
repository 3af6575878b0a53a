/** The Gateway API's objects as people write them, what they become, and what they are told of mistakes. */
import * as E from 'fp-ts/lib/Either.js';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { readConfigFile } from '../../config/config-file.ts';
import type { Decoded } from '../../fields/decode.ts';
import { gatewayApiKinds } from './index.ts';

type Name = keyof typeof gatewayApiKinds;

function decoded(kind: Name, yaml: string): unknown {
  const result = gatewayApiKinds[kind].decode(parse(yaml), 'shop');
  if (E.isLeft(result)) throw new Error(JSON.stringify(result.left));
  return result.right;
}

function errorsOf(kind: Name, yaml: string): string[] {
  const result: Decoded<unknown> = gatewayApiKinds[kind].decode(parse(yaml), 'shop');
  return E.isRight(result) ? [] : result.left.map(({ path, message }) => `${path}: ${message}`);
}

/** A Gateway that says which namespaces it lets in. */
const opened = (namespaces: string): string =>
  `{gatewayClassName: istio, listeners: [{name: l, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {${namespaces}}}}]}`;

const file = (apiVersion: string, kind: string, rest: string): string =>
  `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata: {name: x, namespace: shop}\n${rest}\n`;
const read = (yaml: string) => readConfigFile('x.yaml', yaml, { creationTimestamp: 1 });

describe('an HTTPRoute', () => {
  it("has the API's defaults filled in", () => {
    expect(
      decoded('HTTPRoute', '{parentRefs: [{name: front}], rules: [{backendRefs: [{name: cart, port: 80}]}]}'),
    ).toEqual({
      parentRefs: [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'front' }],
      hostnames: [],
      rules: [
        {
          matches: [{ path: { type: 'PathPrefix', value: '/' }, headers: [], queryParams: [] }],
          filters: [],
          backendRefs: [{ group: '', kind: 'Service', name: 'cart', port: 80, weight: 1, filters: [] }],
        },
      ],
    });
  });

  it.each([
    ['500ms', 500],
    ['1h30m', 5_400_000],
    ['1m1s1ms', 61_001],
    ['0s', 0],
  ])('has the timeout %s', (text, ms) => {
    const spec = decoded('HTTPRoute', `{rules: [{timeouts: {request: ${text}}}]}`);
    expect(spec).toMatchObject({ rules: [{ timeouts: { requestMs: ms } }] });
  });

  const rule = (text: string): string => `{rules: [{${text}}]}`;
  const filter = (text: string): string => rule(`filters: [${text}]`);
  const rewrite = '{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /x}}}';
  const redirect = '{type: RequestRedirect, requestRedirect: {scheme: https}}';

  it.each([
    ['{hostnames: ["*"]}', 'hostnames[0]: must be a host name in lower case, or *. and one'],
    ['{hostnames: [Shop.test]}', 'hostnames[0]: must be a host name in lower case'],
    ['{hostnames: [10.0.0.1]}', 'hostnames[0]: must be a host name, not the address 10.0.0.1'],
    ['{rules: []}', 'rules: must not be empty'],
    ['{parentRefs: [{name: a}, {name: a}]}', 'parentRefs[1]: repeats an earlier reference'],
    ['{parentRefs: [{name: a, sectionName: b}, {name: a}]}', 'parentRefs[1]: is to a parent of another reference'],
    ['{parentRefs: [{namespace: a}]}', 'parentRefs[0].name: is required'],
    [rule('matches: [{path: {value: items}}]'), 'rules[0].matches[0].path.value: must start with "/", not be "items"'],
    [rule('matches: [{path: {value: /a//b}}]'), 'path.value: must not have "//" in it'],
    [rule('matches: [{path: {type: Exact, value: /a/..}}]'), 'path.value: must not end with'],
    [rule('matches: [{path: {value: "/a b"}}]'), 'path.value: must have only characters of paths'],
    [
      rule('matches: [{path: {type: Glob, value: /}}]'),
      'path.type: must be one of Exact, PathPrefix, RegularExpression',
    ],
    [rule('matches: [{path: {type: RegularExpression, value: "(("}}]'), 'path.value: must be an RE2 expression'],
    [rule('matches: [{headers: [{name: "a b", value: c}]}]'), 'headers[0].name: must be the name of a header'],
    [rule('matches: [{headers: [{name: a, value: b}, {name: a, value: c}]}]'), 'headers[1].name: repeats the name a'],
    [rule('matches: [{queryParams: [{name: a}]}]'), 'queryParams[0].value: is required'],
    [rule('matches: [{method: get}]'), 'method: must be one of GET, HEAD'],
    [rule('backendRefs: [{name: a}]'), 'rules[0].backendRefs[0].port: is required'],
    [rule('backendRefs: [{name: a, port: 80, weight: 1000001}]'), 'weight: must be from 0 to 1000000'],
    [rule('timeouts: {request: 1.5s}'), 'timeouts.request: must be a duration of whole numbers'],
    [rule('timeouts: {request: -1s}'), 'timeouts.request: must be a duration'],
    [rule('timeouts: {request: 1s, backendRequest: 2s}'), 'timeouts.backendRequest: must not be longer than request'],
    [filter('{type: RequestHeaderModifier}'), 'filters[0].requestHeaderModifier: is required for type'],
    [filter('{type: URLRewrite, urlRewrite: {}, requestRedirect: {}}'), 'requestRedirect: is for type RequestRedirect'],
    [filter(`${redirect}, ${redirect}`), 'filters[1]: repeats the filter RequestRedirect'],
    [filter(`${rewrite}, ${redirect}`), 'filters[0]: must not be given beside RequestRedirect'],
    [rule(`filters: [${redirect}], backendRefs: [{name: a, port: 80}]`), 'backendRefs: must not be given beside'],
    [
      rule(`filters: [${rewrite}], matches: [{path: {type: Exact, value: /a}}]`),
      'filters[0]: replacePrefixMatch needs',
    ],
    [
      rule(`filters: [${rewrite}], matches: [{}, {method: GET}]`),
      'filters[0]: replacePrefixMatch needs a rule with one',
    ],
    [
      filter('{type: URLRewrite, urlRewrite: {path: {type: ReplaceFullPath, replacePrefixMatch: /}}}'),
      'path.replaceFullPath: is required for type ReplaceFullPath',
      'path.replacePrefixMatch: is for type ReplacePrefixMatch',
    ],
    [filter('{type: RequestRedirect, requestRedirect: {statusCode: 304}}'), 'statusCode: must be one of 301'],
    [
      filter('{type: RequestRedirect, requestRedirect: {hostname: "*.a.test"}}'),
      'hostname: must be a host name in lower',
    ],
    [
      filter('{type: RequestMirror, requestMirror: {backendRef: {name: a}, percent: 1, fraction: {numerator: 2}}}'),
      'backendRef.port: is required',
      'requestMirror: must have only one of percent and fraction',
    ],
    [
      filter('{type: RequestMirror, requestMirror: {backendRef: {name: a, port: 1}, fraction: {numerator: 101}}}'),
      'fraction.numerator: must be at most 100',
    ],
    [
      filter('{type: ResponseHeaderModifier, responseHeaderModifier: {set: [{name: a, value: "x\\ny"}]}}'),
      'set[0].value: must be one line',
    ],
    [rule('name: a'.concat('}, {name: a')), 'rules[1].name: repeats the name a'],
  ])('that is wrong is told where and what: %s', (yaml, ...expected) => {
    const told = errorsOf('HTTPRoute', yaml);
    expect(told).toEqual(expected.map((text) => expect.stringContaining(text)));
  });

  it('tells every mistake of a file at its line', () => {
    const spec =
      'spec:\n  hostnames: ["*"]\n  rules:\n  - matches:\n    - path: {value: a}\n    timeouts: {request: 1d}';
    const { problems, configs } = read(file('gateway.networking.k8s.io/v1', 'HTTPRoute', spec));
    expect(problems.map(({ line, field }) => `${line} ${field}`)).toEqual([
      '5 spec.hostnames[0]',
      '8 spec.rules[0].matches[0].path.value',
      '9 spec.rules[0].timeouts.request',
    ]);
    expect(configs).toEqual([]);
  });

  it('is in force with fields that nobody knows, which are told', () => {
    const spec = 'spec: {hostname: [a.test], rules: [{retry: {attempts: 3}, matchess: []}]}';
    const { problems, configs } = read(file('gateway.networking.k8s.io/v1beta1', 'HTTPRoute', spec));
    expect(configs).toHaveLength(1);
    expect(problems.map(({ severity, field, message }) => `${severity} ${field}: ${message}`)).toEqual([
      'warning spec.hostname: is not a known field; did you mean hostnames? (it is ignored)',
      'warning spec.rules[0].retry: has no effect: a VirtualService or the mesh configuration says how requests are retried',
      'warning spec.rules[0].matchess: is not a known field; did you mean matches? (it is ignored)',
    ]);
  });
});

describe('a Gateway of the Gateway API', () => {
  const listeners = (text: string): string => `{gatewayClassName: istio, listeners: [${text}]}`;
  const tls = 'tls: {certificateRefs: [{name: web}]}';

  it("is another kind than Istio's, which has the same name", () => {
    const { configs, problems } = read(
      [
        file('gateway.networking.k8s.io/v1', 'Gateway', `spec: ${listeners('{name: a, port: 80, protocol: HTTP}')}`),
        file(
          'networking.istio.io/v1',
          'Gateway',
          'spec: {servers: [{port: {number: 80, name: a, protocol: HTTP}, hosts: ["*"]}]}',
        ),
      ].join('---\n'),
    );
    expect(problems).toEqual([]);
    expect(configs.map(({ kind, name }) => `${kind} ${name}`)).toEqual(['KubernetesGateway x', 'Gateway x']);
    expect(configs[0]!.spec).toMatchObject({
      addresses: [],
      listeners: [{ name: 'a', allowedRoutes: { namespaces: { from: 'Same' } } }],
    });
  });

  it('keeps its name when its file is no YAML, so that the last good one is known', () => {
    const { problems } = read(`${file('gateway.networking.k8s.io/v1', 'Gateway', 'spec: {')}\n`);
    expect(problems[0]!.key).toEqual({ kind: 'KubernetesGateway', namespace: 'shop', name: 'x' });
  });

  it.each([
    ['{gatewayClassName: istio}', 'listeners: is required'],
    ['{gatewayClassName: istio, listeners: []}', 'listeners: must not be empty'],
    [listeners('{name: a, port: 0, protocol: HTTP}'), 'listeners[0].port: must be from 1 to 65535'],
    [listeners('{name: A, port: 80, protocol: HTTP}'), 'listeners[0].name: must be a name of lower-case'],
    [listeners('{name: a, port: 80, protocol: "H T"}'), 'protocol: must be HTTP, HTTPS, TLS'],
    [listeners(`{name: a, port: 80, protocol: HTTP, ${tls}}`), 'tls: must not be given for protocol HTTP'],
    [listeners('{name: a, port: 80, protocol: TCP, hostname: a.test}'), 'hostname: must not be given for protocol TCP'],
    [
      listeners('{name: a, port: 443, protocol: HTTPS, tls: {mode: Passthrough}}'),
      'tls.mode: must be Terminate for protocol HTTPS',
    ],
    [listeners('{name: a, port: 443, protocol: HTTPS, tls: {}}'), 'tls: must have certificateRefs or options'],
    [
      listeners('{name: a, port: 80, protocol: HTTP}, {name: a, port: 81, protocol: HTTP}'),
      'listeners[1].name: repeats the name a',
    ],
    [
      listeners('{name: a, port: 80, protocol: HTTP}, {name: b, port: 80, protocol: HTTP}'),
      'listeners[1]: repeats the port, protocol and hostname',
    ],
    [
      listeners('{name: a, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: Some}}}'),
      'allowedRoutes.namespaces.from: must be one of All, Selector, Same, None',
    ],
    [
      '{gatewayClassName: istio, listeners: [{name: a, port: 80, protocol: HTTP}], addresses: [{type: Hostname, value: a_b}]}',
      'addresses[0].value: must be a host name',
    ],
  ])('that is wrong is told where and what: %s', (yaml, expected) => {
    expect(errorsOf('KubernetesGateway', yaml)).toEqual([expect.stringContaining(expected)]);
  });

  it('says what of it has no effect', () => {
    const spec = listeners('{name: a, port: 80, protocol: HTTP}').replace('}]}', '}], addresses: [{value: 10.0.0.1}]}');
    const { problems } = read(file('gateway.networking.k8s.io/v1', 'Gateway', `spec: ${spec}`));
    expect(problems).toMatchObject([{ severity: 'warning', field: 'spec.addresses[0]' }]);
  });
});

it.each([
  ['GatewayClass', '{controllerName: istio}', 'controllerName: must be a domain and a path'],
  ['ReferenceGrant', '{from: [], to: [{group: "", kind: Service}]}', 'from: must not be empty'],
  ['ReferenceGrant', '{from: [{group: a, kind: B, namespace: c}]}', 'to: is required'],
  ['BackendTLSPolicy', '{targetRefs: [{group: "", kind: Service, name: a}]}', 'validation: is required'],
  [
    'BackendTLSPolicy',
    '{targetRefs: [{group: "", kind: Service, name: a}], validation: {hostname: a.test}}',
    'validation: must have either caCertificateRefs or wellKnownCACertificates',
  ],
  [
    'BackendTLSPolicy',
    '{targetRefs: [{group: "", kind: Service, name: a}], validation: {hostname: "*.test", wellKnownCACertificates: System}}',
    'validation.hostname: ',
  ],
  [
    'BackendTLSPolicy',
    '{targetRefs: [{group: "", kind: Service, name: a}], validation: {hostname: a.test, wellKnownCACertificates: System, subjectAltNames: [{type: URI}]}}',
    'uri belongs to type URI',
  ],
  // What would let in more than was meant.
  [
    'ReferenceGrant',
    '{from: [{group: a, kind: B, namespace: c}], to: [{group: "", kind: Service, name: null}]}',
    'to[0].name: has no value',
  ],
  [
    'ReferenceGrant',
    '{from: [{group: a, kind: B, namespace: c}], to: [{group: "", kind: Service, nmae: cart}]}',
    'to[0].nmae: ',
  ],
  ['KubernetesGateway', opened('from: Selector, selector: null'), 'namespaces.selector: has no value'],
  ['KubernetesGateway', opened('from: Selector, selector: {matchLabels: null}'), 'selector.matchLabels: has no value'],
  ['KubernetesGateway', opened('from: Selector, selector: {matchLables: {a: b}}'), 'selector.matchLables: '],
] as const)('a %s that is wrong is told where and what: %s', (kind, yaml, expected) => {
  expect(errorsOf(kind, yaml)).toEqual([expect.stringContaining(expected)]);
});

describe('a GRPCRoute', () => {
  const rule = (text: string): string => `{rules: [{${text}}]}`;
  const matched = (text: string): string => rule(`matches: [{${text}}]`);

  it.each([
    ['method: {}', 'rules[0].matches[0].method: must have a service or a method'],
    ['method: {type: Exact}', 'rules[0].matches[0].method: must have a service or a method'],
    ['method: {service: ""}', 'rules[0].matches[0].method.service: '],
    ['method: {service: a/b}', 'rules[0].matches[0].method.service: must be the name of a service'],
    ['method: {service: a.B, method: "*"}', 'rules[0].matches[0].method.method: must be the name of a method'],
    ['method: {type: RegularExpression, service: "("}', 'rules[0].matches[0].method.service: '],
    ['method: {type: RegularExpression, method: "(?=a)"}', 'rules[0].matches[0].method.method: '],
    // Each is right, and together they are not what was meant, or too large.
    ['method: {type: RegularExpression, service: "\\\\Qabc"}', 'rules[0].matches[0].method: as the path'],
    ['method: {type: RegularExpression, method: "a\\\\Q("}', 'rules[0].matches[0].method: as the path'],
    [
      'method: {type: RegularExpression, service: "[acegikmoqsuwy02468]{1000}", method: "[acegikmoqsuwy02468]{1000}"}',
      'rules[0].matches[0].method: as the path',
    ],
    [`method: {service: ${'a'.repeat(1025)}}`, 'rules[0].matches[0].method.service: must have at most 1024'],
    ['headers: [{name: a, value: b}, {name: a, value: c}]', 'rules[0].matches[0].headers[1].name'],
  ])('that says %s is refused', (text, expected) => {
    expect(errorsOf('GRPCRoute', matched(text))).toEqual([expect.stringContaining(expected)]);
  });

  it.each([
    ['filters: [{type: URLRewrite, urlRewrite: {hostname: a.test}}]', 'rules[0].filters[0].type: must be one of'],
    ['backendRefs: [{name: a}]', 'rules[0].backendRefs[0].port: is required'],
    [
      'backendRefs: [{name: a, port: 80, filters: [{type: RequestRedirect, requestRedirect: {}}]}]',
      'rules[0].backendRefs[0].filters[0].type: must be one of',
    ],
  ])('with %s is refused', (text, expected) => {
    expect(errorsOf('GRPCRoute', rule(text))).toEqual([expect.stringContaining(expected)]);
  });

  it('says of what it does not know that it is ignored, and is read in both versions', () => {
    for (const version of ['v1', 'v1alpha2']) {
      const { configs, problems } = read(
        file(
          `gateway.networking.k8s.io/${version}`,
          'GRPCRoute',
          'spec: {rules: [{tomatoes: 1, sessionPersistence: {}}]}',
        ),
      );
      expect(configs).toHaveLength(1);
      expect(problems.map(({ field }) => field)).toEqual([
        'spec.rules[0].tomatoes',
        'spec.rules[0].sessionPersistence',
      ]);
    }
  });
});

describe.each(['TCPRoute', 'TLSRoute'] as const)('a %s', (kind) => {
  it.each([
    ['{}', 'rules: '],
    ['{rules: []}', 'rules: must not be empty'],
    ['{rules: [{}]}', 'rules[0].backendRefs: '],
    ['{rules: [{backendRefs: []}]}', 'rules[0].backendRefs: must not be empty'],
    ['{rules: [{backendRefs: [{name: a}]}]}', 'rules[0].backendRefs[0].port: is required'],
    ['{parentRefs: [{name: a}, {name: a}], rules: [{backendRefs: [{name: a, port: 1}]}]}', 'parentRefs[1]: repeats'],
  ])('of %s is refused', (text, expected) => {
    expect(errorsOf(kind, text)).toEqual([expect.stringContaining(expected)]);
  });

  it('says of what it does not know, and of rules behind the first one, that they do nothing', () => {
    const rule = '{backendRefs: [{name: a, port: 1, filters: []}]}';
    const { problems } = read(file('gateway.networking.k8s.io/v1alpha2', kind, `spec: {rules: [${rule}, ${rule}]}`));
    expect(problems.map(({ field }) => field)).toEqual([
      'spec.rules[0].backendRefs[0].filters',
      'spec.rules[1]',
      'spec.rules[1].backendRefs[0].filters',
    ]);
  });
});
