import * as E from 'fp-ts/lib/Either.js';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { codedError, codedField } from '../../../../test/fixtures/coded-error.ts';
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
  return E.isRight(result) ? [] : result.left.map(codedError);
}

/** Returns a Gateway with the given `allowedRoutes.namespaces`. */
const gatewayOpenTo = (namespaces: string): string =>
  `{gatewayClassName: istio, listeners: [{name: l, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {${namespaces}}}}]}`;

const file = (apiVersion: string, kind: string, body: string): string =>
  `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata: {name: x, namespace: shop}\n${body}\n`;
const read = (yaml: string) => readConfigFile('x.yaml', yaml, { creationTimestamp: 1 });

describe('an HTTPRoute', () => {
  it("has the API's defaults", () => {
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
    ['{hostnames: ["*"]}', 'hostnames[0]: FIELD_FORMAT_INVALID got "*"'],
    ['{hostnames: [Shop.test]}', 'hostnames[0]: FIELD_FORMAT_INVALID got "Shop.test"'],
    ['{hostnames: [10.0.0.1]}', 'hostnames[0]: FIELD_FORMAT_INVALID got "10.0.0.1"'],
    ['{rules: []}', 'rules: FIELD_EMPTY'],
    ['{parentRefs: [{name: a}, {name: a}]}', 'parentRefs[1]: FIELD_DUPLICATE'],
    ['{parentRefs: [{name: a, sectionName: b}, {name: a}]}', 'parentRefs[1]: FIELD_CONFLICT'],
    ['{parentRefs: [{namespace: a}]}', 'parentRefs[0].name: FIELD_REQUIRED'],
    [rule('matches: [{path: {value: items}}]'), 'rules[0].matches[0].path.value: FIELD_FORMAT_INVALID got "items"'],
    [rule('matches: [{path: {value: /a//b}}]'), 'rules[0].matches[0].path.value: FIELD_NOT_ALLOWED got "/a//b"'],
    [
      rule('matches: [{path: {type: Exact, value: /a/..}}]'),
      'rules[0].matches[0].path.value: FIELD_NOT_ALLOWED got "/a/.."',
    ],
    [rule('matches: [{path: {value: "/a b"}}]'), 'rules[0].matches[0].path.value: FIELD_FORMAT_INVALID got "/a b"'],
    [
      rule('matches: [{path: {type: Glob, value: /}}]'),
      'rules[0].matches[0].path.type: FIELD_VALUE_UNKNOWN got "Glob"',
    ],
    [
      rule('matches: [{path: {type: RegularExpression, value: "(("}}]'),
      'rules[0].matches[0].path.value: FIELD_FORMAT_INVALID got "(("',
    ],
    [
      rule('matches: [{headers: [{name: "a b", value: c}]}]'),
      'rules[0].matches[0].headers[0].name: FIELD_FORMAT_INVALID got "a b"',
    ],
    [
      rule('matches: [{headers: [{name: a, value: b}, {name: a, value: c}]}]'),
      'rules[0].matches[0].headers[1].name: FIELD_DUPLICATE got "a" beside rules[0].matches[0].headers[0].name',
    ],
    [rule('matches: [{queryParams: [{name: a}]}]'), 'rules[0].matches[0].queryParams[0].value: FIELD_REQUIRED'],
    [rule('matches: [{method: get}]'), 'rules[0].matches[0].method: FIELD_VALUE_UNKNOWN got "get" near GET'],
    [rule('backendRefs: [{name: a}]'), 'rules[0].backendRefs[0].port: FIELD_REQUIRED'],
    [
      rule('backendRefs: [{name: a, port: 80, weight: 1000001}]'),
      'rules[0].backendRefs[0].weight: FIELD_OUT_OF_RANGE (from 0 to 1000000) got 1000001',
    ],
    [rule('timeouts: {request: 1.5s}'), 'rules[0].timeouts.request: FIELD_FORMAT_INVALID got "1.5s"'],
    [rule('timeouts: {request: -1s}'), 'rules[0].timeouts.request: FIELD_FORMAT_INVALID got "-1s"'],
    [
      rule('timeouts: {request: 1s, backendRequest: 2s}'),
      'rules[0].timeouts.backendRequest: FIELD_OUT_OF_RANGE (at most timeouts.request, 1000ms) got "2000ms"',
    ],
    [filter('{type: RequestHeaderModifier}'), 'rules[0].filters[0].requestHeaderModifier: FIELD_REQUIRED'],
    [
      filter('{type: URLRewrite, urlRewrite: {}, requestRedirect: {}}'),
      'rules[0].filters[0].requestRedirect: FIELDS_EXCLUSIVE',
    ],
    [
      filter(`${redirect}, ${redirect}`),
      'rules[0].filters[1]: FIELD_DUPLICATE got "RequestRedirect" beside rules[0].filters[0]',
    ],
    [filter(`${rewrite}, ${redirect}`), 'rules[0].filters[0]: FIELDS_EXCLUSIVE'],
    [rule(`filters: [${redirect}], backendRefs: [{name: a, port: 80}]`), 'rules[0].backendRefs: FIELDS_EXCLUSIVE'],
    [rule(`filters: [${rewrite}], matches: [{path: {type: Exact, value: /a}}]`), 'rules[0].filters[0]: FIELD_CONFLICT'],
    [rule(`filters: [${rewrite}], matches: [{}, {method: GET}]`), 'rules[0].filters[0]: FIELD_CONFLICT'],
    [
      filter('{type: URLRewrite, urlRewrite: {path: {type: ReplaceFullPath, replacePrefixMatch: /}}}'),
      'rules[0].filters[0].urlRewrite.path.replaceFullPath: FIELD_REQUIRED',
      'rules[0].filters[0].urlRewrite.path.replacePrefixMatch: FIELDS_EXCLUSIVE',
    ],
    [
      filter('{type: RequestRedirect, requestRedirect: {statusCode: 304}}'),
      'rules[0].filters[0].requestRedirect.statusCode: FIELD_OUT_OF_RANGE (one of 301, 302, 303, 307, 308) got 304',
    ],
    [
      filter('{type: RequestRedirect, requestRedirect: {hostname: "*.a.test"}}'),
      'rules[0].filters[0].requestRedirect.hostname: FIELD_FORMAT_INVALID got "*.a.test"',
    ],
    [
      filter('{type: RequestMirror, requestMirror: {backendRef: {name: a}, percent: 1, fraction: {numerator: 2}}}'),
      'rules[0].filters[0].requestMirror.backendRef.port: FIELD_REQUIRED',
      'rules[0].filters[0].requestMirror: FIELDS_EXCLUSIVE (one of percent and fraction)',
    ],
    [
      filter('{type: RequestMirror, requestMirror: {backendRef: {name: a, port: 1}, fraction: {numerator: 101}}}'),
      'rules[0].filters[0].requestMirror.fraction.numerator: FIELD_OUT_OF_RANGE (at most the denominator, 100) got 101',
    ],
    [
      filter('{type: ResponseHeaderModifier, responseHeaderModifier: {set: [{name: a, value: "x\\ny"}]}}'),
      'rules[0].filters[0].responseHeaderModifier.set[0].value: FIELD_NOT_ALLOWED',
    ],
    [rule('name: a'.concat('}, {name: a')), 'rules[1].name: FIELD_DUPLICATE got "a" beside rules[0].name'],
  ])('is rejected with path and message if it is invalid: %s', (yaml, ...expected) => {
    const errors = errorsOf('HTTPRoute', yaml);
    expect(errors).toEqual(expected);
  });

  it('is rejected with every error at its line', () => {
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

  it('is accepted with unknown fields, which are reported', () => {
    const spec = 'spec: {hostname: [a.test], rules: [{retry: {attempts: 3}, matchess: []}]}';
    const { problems, configs } = read(file('gateway.networking.k8s.io/v1beta1', 'HTTPRoute', spec));
    expect(configs).toHaveLength(1);
    expect(problems.map((problem) => `${problem.severity} ${codedField(problem)}`)).toEqual([
      'warning spec.hostname: FIELD_UNKNOWN near hostnames',
      'warning spec.rules[0].retry: FIELD_WITHOUT_EFFECT',
      'warning spec.rules[0].matchess: FIELD_UNKNOWN near matches',
    ]);
  });
});

describe('a Gateway of the Gateway API', () => {
  const listeners = (text: string): string => `{gatewayClassName: istio, listeners: [${text}]}`;
  const tls = 'tls: {certificateRefs: [{name: web}]}';

  it("is distinct from Istio's kind with the same name", () => {
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

  it('keeps its key if its YAML is invalid, so that its last valid version is found', () => {
    const { problems } = read(`${file('gateway.networking.k8s.io/v1', 'Gateway', 'spec: {')}\n`);
    expect(problems[0]!.key).toEqual({ kind: 'KubernetesGateway', namespace: 'shop', name: 'x' });
  });

  it.each([
    ['{gatewayClassName: istio}', 'listeners: FIELD_REQUIRED'],
    ['{gatewayClassName: istio, listeners: []}', 'listeners: FIELD_EMPTY'],
    [listeners('{name: a, port: 0, protocol: HTTP}'), 'listeners[0].port: FIELD_OUT_OF_RANGE (from 1 to 65535) got 0'],
    [listeners('{name: A, port: 80, protocol: HTTP}'), 'listeners[0].name: FIELD_FORMAT_INVALID got "A"'],
    [listeners('{name: a, port: 80, protocol: "H T"}'), 'listeners[0].protocol: FIELD_FORMAT_INVALID got "H T"'],
    [listeners(`{name: a, port: 80, protocol: HTTP, ${tls}}`), 'listeners[0].tls: FIELDS_EXCLUSIVE'],
    [listeners('{name: a, port: 80, protocol: TCP, hostname: a.test}'), 'listeners[0].hostname: FIELDS_EXCLUSIVE'],
    [
      listeners('{name: a, port: 443, protocol: HTTPS, tls: {mode: Passthrough}}'),
      'listeners[0].tls.mode: FIELD_CONFLICT',
    ],
    [
      listeners('{name: a, port: 443, protocol: HTTPS, tls: {}}'),
      'listeners[0].tls: FIELD_REQUIRED (certificateRefs or options) got none',
    ],
    [
      listeners('{name: a, port: 80, protocol: HTTP}, {name: a, port: 81, protocol: HTTP}'),
      'listeners[1].name: FIELD_DUPLICATE got "a" beside listeners[0].name',
    ],
    [
      listeners('{name: a, port: 80, protocol: HTTP}, {name: b, port: 80, protocol: HTTP}'),
      'listeners[1]: FIELD_DUPLICATE got "80 HTTP" beside listeners[0]',
    ],
    [
      listeners('{name: a, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: Some}}}'),
      'listeners[0].allowedRoutes.namespaces.from: FIELD_VALUE_UNKNOWN got "Some" near Same',
    ],
    [
      '{gatewayClassName: istio, listeners: [{name: a, port: 80, protocol: HTTP}], addresses: [{type: Hostname, value: a_b}]}',
      'addresses[0].value: FIELD_FORMAT_INVALID got "a_b"',
    ],
  ])('is rejected with path and message if it is invalid: %s', (yaml, expected) => {
    expect(errorsOf('KubernetesGateway', yaml)).toEqual([expected]);
  });

  it('has a warning for each field without effect', () => {
    const spec = listeners('{name: a, port: 80, protocol: HTTP}').replace('}]}', '}], addresses: [{value: 10.0.0.1}]}');
    const { problems } = read(file('gateway.networking.k8s.io/v1', 'Gateway', `spec: ${spec}`));
    expect(problems).toMatchObject([{ severity: 'warning', field: 'spec.addresses[0]' }]);
  });
});

it.each([
  ['GatewayClass', '{controllerName: istio}', 'controllerName: FIELD_FORMAT_INVALID got "istio"'],
  ['ReferenceGrant', '{from: [], to: [{group: "", kind: Service}]}', 'from: FIELD_EMPTY'],
  ['ReferenceGrant', '{from: [{group: a, kind: B, namespace: c}]}', 'to: FIELD_REQUIRED'],
  ['BackendTLSPolicy', '{targetRefs: [{group: "", kind: Service, name: a}]}', 'validation: FIELD_REQUIRED'],
  [
    'BackendTLSPolicy',
    '{targetRefs: [{group: "", kind: Service, name: a}], validation: {hostname: a.test}}',
    'validation: FIELD_REQUIRED (exactly one of caCertificateRefs and wellKnownCACertificates) got none',
  ],
  [
    'BackendTLSPolicy',
    '{targetRefs: [{group: "", kind: Service, name: a}], validation: {hostname: "*.test", wellKnownCACertificates: System}}',
    'validation.hostname: FIELD_FORMAT_INVALID got "*.test"',
  ],
  [
    'BackendTLSPolicy',
    '{targetRefs: [{group: "", kind: Service, name: a}], validation: {hostname: a.test, wellKnownCACertificates: System, subjectAltNames: [{type: URI}]}}',
    'validation.subjectAltNames[0]: FIELD_CONFLICT',
  ],
  // Accepting these would allow more than intended.
  [
    'ReferenceGrant',
    '{from: [{group: a, kind: B, namespace: c}], to: [{group: "", kind: Service, name: null}]}',
    'to[0].name: FIELD_EMPTY',
  ],
  [
    'ReferenceGrant',
    '{from: [{group: a, kind: B, namespace: c}], to: [{group: "", kind: Service, nmae: cart}]}',
    'to[0].nmae: FIELD_UNKNOWN near name',
  ],
  [
    'KubernetesGateway',
    gatewayOpenTo('from: Selector, selector: null'),
    'listeners[0].allowedRoutes.namespaces.selector: FIELD_EMPTY',
  ],
  [
    'KubernetesGateway',
    gatewayOpenTo('from: Selector, selector: {matchLabels: null}'),
    'listeners[0].allowedRoutes.namespaces.selector.matchLabels: FIELD_EMPTY',
  ],
  [
    'KubernetesGateway',
    gatewayOpenTo('from: Selector, selector: {matchLables: {a: b}}'),
    'listeners[0].allowedRoutes.namespaces.selector.matchLables: FIELD_UNKNOWN near matchLabels',
  ],
] as const)('an invalid %s is rejected with path and message: %s', (kind, yaml, expected) => {
  expect(errorsOf(kind, yaml)).toEqual([expected]);
});

describe('a GRPCRoute', () => {
  const rule = (text: string): string => `{rules: [{${text}}]}`;
  const matched = (text: string): string => rule(`matches: [{${text}}]`);

  it.each([
    ['method: {}', 'rules[0].matches[0].method: FIELD_REQUIRED (service or method) got none'],
    ['method: {type: Exact}', 'rules[0].matches[0].method: FIELD_REQUIRED (service or method) got none'],
    ['method: {service: ""}', 'rules[0].matches[0].method.service: FIELD_EMPTY'],
    ['method: {service: a/b}', 'rules[0].matches[0].method.service: FIELD_FORMAT_INVALID got "a/b"'],
    ['method: {service: a.B, method: "*"}', 'rules[0].matches[0].method.method: FIELD_FORMAT_INVALID got "*"'],
    [
      'method: {type: RegularExpression, service: "("}',
      'rules[0].matches[0].method.service: FIELD_FORMAT_INVALID got "("',
    ],
    [
      'method: {type: RegularExpression, method: "(?=a)"}',
      'rules[0].matches[0].method.method: FIELD_FORMAT_INVALID got "(?=a)"',
    ],
    // Each expression is valid separately, but the combination is too large or has another meaning.
    [
      'method: {type: RegularExpression, service: "\\\\Qabc"}',
      'rules[0].matches[0].method: FIELD_FORMAT_INVALID got "/(?:\\\\Qabc)/(?:[^/]+)"',
    ],
    [
      'method: {type: RegularExpression, method: "a\\\\Q("}',
      'rules[0].matches[0].method: FIELD_FORMAT_INVALID got "/(?:[^/]+)/(?:a\\\\Q()"',
    ],
    [
      'method: {type: RegularExpression, service: "[acegikmoqsuwy02468]{1000}", method: "[acegikmoqsuwy02468]{1000}"}',
      'rules[0].matches[0].method: FIELD_TOO_LARGE (at most 32768 RE2 instructions, the limit of Envoy) got 36004',
    ],
    [
      `method: {service: ${'a'.repeat(1025)}}`,
      'rules[0].matches[0].method.service: FIELD_TOO_LARGE (at most 1024 characters) got 1025',
    ],
    [
      'headers: [{name: a, value: b}, {name: a, value: c}]',
      'rules[0].matches[0].headers[1].name: FIELD_DUPLICATE got "a" beside rules[0].matches[0].headers[0].name',
    ],
  ])('is rejected if a match has %s', (text, expected) => {
    expect(errorsOf('GRPCRoute', matched(text))).toEqual([expected]);
  });

  it.each([
    [
      'filters: [{type: URLRewrite, urlRewrite: {hostname: a.test}}]',
      'rules[0].filters[0].type: FIELD_VALUE_UNKNOWN got "URLRewrite"',
    ],
    ['backendRefs: [{name: a}]', 'rules[0].backendRefs[0].port: FIELD_REQUIRED'],
    [
      'backendRefs: [{name: a, port: 80, filters: [{type: RequestRedirect, requestRedirect: {}}]}]',
      'rules[0].backendRefs[0].filters[0].type: FIELD_VALUE_UNKNOWN got "RequestRedirect"',
    ],
  ])('is rejected if a rule has %s', (text, expected) => {
    expect(errorsOf('GRPCRoute', rule(text))).toEqual([expected]);
  });

  it('is accepted in both API versions, with a warning for unknown fields', () => {
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
    ['{}', 'rules: FIELD_REQUIRED'],
    ['{rules: []}', 'rules: FIELD_EMPTY'],
    ['{rules: [{}]}', 'rules[0].backendRefs: FIELD_REQUIRED'],
    ['{rules: [{backendRefs: []}]}', 'rules[0].backendRefs: FIELD_EMPTY'],
    ['{rules: [{backendRefs: [{name: a}]}]}', 'rules[0].backendRefs[0].port: FIELD_REQUIRED'],
    [
      '{parentRefs: [{name: a}, {name: a}], rules: [{backendRefs: [{name: a, port: 1}]}]}',
      'parentRefs[1]: FIELD_DUPLICATE',
    ],
  ])('is rejected with the spec %s', (text, expected) => {
    expect(errorsOf(kind, text)).toEqual([expected]);
  });

  it('is accepted with warnings for unknown fields and for rules after the first', () => {
    const rule = '{backendRefs: [{name: a, port: 1, filters: []}]}';
    const { problems } = read(file('gateway.networking.k8s.io/v1alpha2', kind, `spec: {rules: [${rule}, ${rule}]}`));
    expect(problems.map(({ field }) => field)).toEqual([
      'spec.rules[0].backendRefs[0].filters',
      'spec.rules[1]',
      'spec.rules[1].backendRefs[0].filters',
    ]);
  });
});
