/** Tests valid, invalid and questionable policies, patches and extensions. */

import * as E from 'fp-ts/lib/Either.js';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { codedError } from '../../../../test/fixtures/coded-error.ts';
import type { FieldError } from '../../fields/decode.ts';
import { effectWarnings } from '../../fields/effect.ts';
import { type KindName, kinds, type SpecOfKind } from '../index.ts';

function decoded<K extends KindName>(kind: K, yaml: string): SpecOfKind[K] {
  const result = kinds[kind].decode(parse(yaml), 'shop');
  if (E.isLeft(result)) throw new Error(JSON.stringify(result.left));
  return result.right as SpecOfKind[K];
}

function errorsOf(kind: KindName, yaml: string): string[] {
  const result = kinds[kind].decode(parse(yaml), 'shop');
  return E.isLeft(result) ? result.left.map(codedError) : [];
}

function warnings<K extends KindName>(kind: K, yaml: string): string[] {
  const kindWarnings = kinds[kind].warnings as (value: SpecOfKind[K]) => readonly FieldError[];
  const errors = [...kindWarnings(decoded(kind, yaml)), ...effectWarnings(kinds[kind].decoder, parse(yaml))];
  return errors.map(codedError);
}

const filter = (patch: string, extraFields = ''): string => `configPatches: [${patch}]\n${extraFields}`;

describe('a valid object', () => {
  it('is decoded: PeerAuthentication', () => {
    expect(
      decoded(
        'PeerAuthentication',
        'selector: {matchLabels: {app: web}}\nmtls: {mode: STRICT}\nportLevelMtls: {8080: {mode: DISABLE}}',
      ),
    ).toEqual({ selector: { app: 'web' }, mtls: 'STRICT', portLevelMtls: { 8080: 'DISABLE' } });
    expect(decoded('PeerAuthentication', '{}')).toEqual({});
  });

  it('is decoded: RequestAuthentication', () => {
    expect(
      decoded(
        'RequestAuthentication',
        'targetRef: {kind: Gateway, group: gateway.networking.k8s.io, name: front}\njwtRules: [{issuer: me, jwks_uri: "https://a.b/keys", fromHeaders: [{name: x-token, prefix: "T "}], outputClaimToHeaders: [{header: x-sub, claim: sub}], timeout: 5s, audiences: [a]}]',
      ),
    ).toEqual({
      targetRefs: [{ kind: 'Gateway', group: 'gateway.networking.k8s.io', name: 'front' }],
      jwtRules: [
        {
          issuer: 'me',
          jwksUri: 'https://a.b/keys',
          fromHeaders: [{ name: 'x-token', prefix: 'T ' }],
          outputClaimToHeaders: [{ header: 'x-sub', claim: 'sub' }],
          timeoutMs: 5000,
          audiences: ['a'],
        },
      ],
    });
  });

  it('is decoded: AuthorizationPolicy', () => {
    expect(
      decoded(
        'AuthorizationPolicy',
        `action: DENY
rules:
- from: [{source: {principals: ["*/sa/web"], ipBlocks: [10.0.0.0/8, "::1"]}}, {source: {notNamespaces: [shop]}}]
  to: [{operation: {methods: [GET], paths: [/a*, "/b/{*}/c/{**}"], ports: ["80"], hosts: ["*.b.c"]}}]
  when: [{key: "request.headers[x-a]", values: [b]}, {key: "request.auth.claims[a][b]", notValues: [c]}, {key: destination.port, values: ["80"]}]`,
      ),
    ).toMatchObject({
      action: 'DENY',
      rules: [
        {
          from: [{ principals: ['*/sa/web'], ipBlocks: ['10.0.0.0/8', '::1'] }, { notNamespaces: ['shop'] }],
          to: [{ methods: ['GET'], paths: ['/a*', '/b/{*}/c/{**}'], ports: ['80'], hosts: ['*.b.c'] }],
          when: [{ key: 'request.headers[x-a]', values: ['b'] }, { notValues: ['c'] }, { values: ['80'] }],
        },
      ],
    });
    expect(decoded('AuthorizationPolicy', '{}')).toEqual({ action: 'ALLOW', rules: [] });
    expect(decoded('AuthorizationPolicy', 'action: CUSTOM\nprovider: {name: x}\nrules: [{}]')).toEqual({
      action: 'CUSTOM',
      provider: 'x',
      rules: [{}],
    });
  });

  it('is decoded: EnvoyFilter', () => {
    expect(
      decoded(
        'EnvoyFilter',
        filter(
          '{applyTo: HTTP_FILTER, match: {context: GATEWAY, proxy: {proxyVersion: "^1\\\\.2"}, listener: {portNumber: 80, filterChain: {filter: {name: a, subFilter: {name: b}}}}}, patch: {operation: INSERT_BEFORE, value: {name: lua, typed_config: {"@type": x}}}}',
          'workloadSelector: {labels: {app: web}}\npriority: -5',
        ),
      ),
    ).toEqual({
      workloadSelector: { app: 'web' },
      priority: -5,
      configPatches: [
        {
          applyTo: 'HTTP_FILTER',
          match: {
            context: 'GATEWAY',
            proxy: { proxyVersion: '^1\\.2' },
            listener: { portNumber: 80, filterChain: { filter: { name: 'a', subFilter: { name: 'b' } } } },
          },
          operation: 'INSERT_BEFORE',
          value: { name: 'lua', typed_config: { '@type': 'x' } },
        },
      ],
    });
  });

  it('is decoded: Telemetry', () => {
    expect(
      decoded(
        'Telemetry',
        `tracing: [{providers: [{name: zipkin}], randomSamplingPercentage: 12.5, customTags: {a: {literal: {value: b}}}}]
metrics: [{overrides: [{match: {metric: REQUEST_COUNT, mode: CLIENT}, tagOverrides: {x: {value: y}}}]}]
accessLogging: [{filter: {expression: "response.code >= 400"}, match: {mode: SERVER}}]`,
      ),
    ).toEqual({
      tracing: [
        { providers: ['zipkin'], randomSamplingPercentage: 12.5, customTags: { a: { literal: { value: 'b' } } } },
      ],
      metrics: [
        {
          overrides: [
            {
              match: { metric: 'REQUEST_COUNT', mode: 'CLIENT' },
              tagOverrides: { x: { operation: 'UPSERT', value: 'y' } },
            },
          ],
        },
      ],
      accessLogging: [{ filter: 'response.code >= 400', match: { mode: 'SERVER' } }],
    });
  });

  it('is decoded: WasmPlugin, ProxyConfig, WorkloadGroup', () => {
    expect(decoded('WasmPlugin', 'url: registry/x:1\nphase: AUTHN\npriority: 10\npluginConfig: {a: [1]}')).toEqual({
      url: 'oci://registry/x:1',
      phase: 'AUTHN',
      priority: 10,
      pluginConfig: { a: [1] },
    });
    expect(decoded('ProxyConfig', 'concurrency: 0\nenvironmentVariables: {A: b}\nimage: {imageType: debug}')).toEqual({
      concurrency: 0,
      environmentVariables: { A: 'b' },
      image: { imageType: 'debug' },
    });
    expect(
      decoded(
        'WorkloadGroup',
        'metadata: {labels: {app: a}}\ntemplate: {ports: {http: 80}}\nprobe: {httpGet: {port: 80}}',
      ),
    ).toEqual({
      metadata: { labels: { app: 'a' } },
      template: { ports: { http: 80 } },
      probe: { httpGet: { port: 80 } },
    });
  });
});

/** Kind and spec, then all expected errors as path and part of the message. */
type Case = readonly [kind: KindName, spec: string, ...mistakes: (readonly [path: string, fragment: string])[]];

const authorization: Case[] = [
  ['AuthorizationPolicy', 'action: DENY', ['rules', 'FIELD_REQUIRED']],
  ['AuthorizationPolicy', 'action: CUSTOM', ['rules', 'FIELD_REQUIRED'], ['provider', 'FIELD_REQUIRED']],
  ['AuthorizationPolicy', 'provider: {name: x}', ['provider', 'FIELDS_EXCLUSIVE']],
  ['AuthorizationPolicy', 'action: CUSTOM\nrules: [{}]\nprovider: {name: ""}', ['provider.name', 'FIELD_EMPTY']],
  ['AuthorizationPolicy', 'rules: [{from: []}]', ['rules[0].from', 'FIELD_EMPTY']],
  ...['x/{*}', '/x//{*}', '/a b/{*}', '/ä/{*}', '/{*}?a=b', '/x|y/{*}', '//{**}'].map(
    (path): Case => [
      'AuthorizationPolicy',
      `rules: [{to: [{operation: {paths: ["${path}"]}}]}]`,
      ['rules[0].to[0].operation.paths[0]', `FIELD_FORMAT_INVALID got "${path}"`],
    ],
  ),
  [
    'AuthorizationPolicy',
    'rules: [{when: [{key: "request.headers[a b]", values: [x]}]}]',
    ['rules[0].when[0].key', 'FIELD_FORMAT_INVALID got "request.headers[a b]"'],
  ],
  [
    'RequestAuthentication',
    'jwtRules: [{issuer: a, fromHeaders: [{name: a, prefix: "a\\nb"}]}]',
    ['jwtRules[0].fromHeaders[0].prefix', 'FIELD_NOT_ALLOWED'],
  ],
  ['AuthorizationPolicy', 'rules: [{from: [{}]}]', ['rules[0].from[0].source', 'FIELD_REQUIRED']],
  ['AuthorizationPolicy', 'rules: [{from: [{source: {}}]}]', ['rules[0].from[0].source', 'FIELD_EMPTY']],
  ['AuthorizationPolicy', 'rules: [{to: [{operation: {}}]}]', ['rules[0].to[0].operation', 'FIELD_EMPTY']],
  ['AuthorizationPolicy', 'rules: [{when: []}]', ['rules[0].when', 'FIELD_EMPTY']],
  [
    'AuthorizationPolicy',
    'rules: [{from: [{source: {namespaces: [""]}}]}]',
    ['rules[0].from[0].source.namespaces[0]', 'FIELD_EMPTY'],
  ],
  [
    'AuthorizationPolicy',
    'rules: [{from: [{source: {ipBlocks: [1.2.3]}}]}]',
    ['rules[0].from[0].source.ipBlocks[0]', 'FIELD_FORMAT_INVALID got "1.2.3"'],
  ],
  [
    'AuthorizationPolicy',
    'rules: [{to: [{operation: {ports: ["0"]}}]}]',
    ['rules[0].to[0].operation.ports[0]', 'FIELD_OUT_OF_RANGE (a port from 1 to 65535) got "0"'],
  ],
  [
    'AuthorizationPolicy',
    'rules: [{to: [{operation: {paths: [/a*b]}}]}]',
    ['rules[0].to[0].operation.paths[0]', 'FIELD_FORMAT_INVALID got "/a*b"'],
  ],
  [
    'AuthorizationPolicy',
    'rules: [{to: [{operation: {paths: ["/{**}/{*}"]}}]}]',
    ['rules[0].to[0].operation.paths[0]', 'FIELD_FORMAT_INVALID got "/{**}/{*}"'],
  ],
  [
    'AuthorizationPolicy',
    'rules: [{to: [{operation: {paths: ["/{*}x"]}}]}]',
    ['rules[0].to[0].operation.paths[0]', 'FIELD_FORMAT_INVALID got "/{*}x"'],
  ],
  [
    'AuthorizationPolicy',
    'rules: [{to: [{operation: {hosts: ["*a*"]}}]}]',
    ['rules[0].to[0].operation.hosts[0]', 'FIELD_FORMAT_INVALID got "*a*"'],
  ],
  [
    'AuthorizationPolicy',
    'rules: [{to: [{operation: {methods: ["G*T"]}}]}]',
    ['rules[0].to[0].operation.methods[0]', 'FIELD_FORMAT_INVALID got "G*T"'],
  ],
  [
    'AuthorizationPolicy',
    'rules: [{when: [{key: request.header, values: [a]}]}]',
    ['rules[0].when[0].key', 'FIELD_FORMAT_INVALID got "request.header"'],
  ],
  [
    'AuthorizationPolicy',
    'rules: [{when: [{key: source.ip}]}]',
    ['rules[0].when[0]', 'FIELD_REQUIRED (values or notValues) got none'],
  ],
  [
    'AuthorizationPolicy',
    'rules: [{when: [{key: source.ip, values: [x]}]}]',
    ['rules[0].when[0].values[0]', 'FIELD_FORMAT_INVALID got "x"'],
  ],
  [
    'AuthorizationPolicy',
    'rules: [{when: [{key: destination.port, notValues: [x]}]}]',
    ['rules[0].when[0].notValues[0]', 'FIELD_OUT_OF_RANGE (a port from 1 to 65535) got "x"'],
  ],
  [
    'AuthorizationPolicy',
    'rules: [{from: [{source: {serviceAccounts: [a/b/c], principals: [x]}}]}]',
    ['rules[0].from[0].source.serviceAccounts[0]', 'FIELD_FORMAT_INVALID got "a/b/c"'],
    ['rules[0].from[0].source.serviceAccounts', 'FIELDS_EXCLUSIVE'],
  ],
  [
    'AuthorizationPolicy',
    'rules: [{from: [{source: {serviceAccounts: [a/b], principals: [x]}}]}]',
    ['rules[0].from[0].source.serviceAccounts', 'FIELDS_EXCLUSIVE'],
  ],
  [
    'AuthorizationPolicy',
    'action: CUSTOM\nprovider: {name: x}\nrules: [{from: [{source: {notPrincipals: [a]}}], when: [{key: request.auth.principal, values: [b]}]}]',
    ['rules[0].from[0].source.notPrincipals', 'FIELDS_EXCLUSIVE'],
    ['rules[0].when[0].key', 'FIELD_NOT_ALLOWED got "request.auth.principal"'],
  ],
  ['AuthorizationPolicy', 'selector: {matchLabels: {a: "*"}}', ['selector.matchLabels.a', 'FIELD_NOT_ALLOWED got "*"']],
  ['AuthorizationPolicy', 'selector: {matchLabels: {"": b}}', ['selector.matchLabels[""]', 'FIELD_EMPTY']],
  [
    'AuthorizationPolicy',
    'selector: {}\ntargetRefs: [{kind: Service, name: a}]',
    ['', 'FIELDS_EXCLUSIVE (one of selector and targetRefs)'],
  ],
  ['AuthorizationPolicy', 'rulez: []', ['rulez', 'FIELD_UNKNOWN near rules']],
];

const authentication: Case[] = [
  ['PeerAuthentication', 'mtls: {mode: STRIKT}', ['mtls.mode', 'FIELD_VALUE_UNKNOWN got "STRIKT" near STRICT']],
  ['PeerAuthentication', 'portLevelMtls: {80: {mode: STRICT}}', ['portLevelMtls', 'FIELD_CONFLICT']],
  ['PeerAuthentication', 'selector: {matchLabels: {a: b}}\nportLevelMtls: {}', ['portLevelMtls', 'FIELD_EMPTY']],
  [
    'PeerAuthentication',
    'selector: {matchLabels: {a: b}}\nportLevelMtls: {70000: {mode: STRICT}, 0: {mode: STRICT}}',
    ['portLevelMtls.0', 'FIELD_OUT_OF_RANGE (a port from 1 to 65535) got "0"'],
    ['portLevelMtls.70000', 'FIELD_OUT_OF_RANGE (a port from 1 to 65535) got "70000"'],
  ],
  ['RequestAuthentication', 'jwtRules: [{}]', ['jwtRules[0].issuer', 'FIELD_REQUIRED']],
  ['RequestAuthentication', 'jwtRules: [{issuer: a, audiences: [""]}]', ['jwtRules[0].audiences[0]', 'FIELD_EMPTY']],
  [
    'RequestAuthentication',
    'jwtRules: [{issuer: a, jwksUri: "ftp://x"}]',
    ['jwtRules[0].jwksUri', 'FIELD_FORMAT_INVALID got "ftp://x"'],
  ],
  ['RequestAuthentication', 'jwtRules: [{issuer: a, jwks: "{}"}]', ['jwtRules[0].jwks', 'FIELD_FORMAT_INVALID']],
  ['RequestAuthentication', 'jwtRules: [{issuer: a, jwks: "x"}]', ['jwtRules[0].jwks', 'FIELD_FORMAT_INVALID']],
  [
    'RequestAuthentication',
    'jwtRules: [{issuer: a, fromHeaders: [{name: ""}]}]',
    ['jwtRules[0].fromHeaders[0].name', 'FIELD_EMPTY'],
  ],
  ['RequestAuthentication', 'jwtRules: [{issuer: a, fromParams: [""]}]', ['jwtRules[0].fromParams[0]', 'FIELD_EMPTY']],
  [
    'RequestAuthentication',
    'jwtRules: [{issuer: a, fromCookies: [""]}]',
    ['jwtRules[0].fromCookies[0]', 'FIELD_EMPTY'],
  ],
  [
    'RequestAuthentication',
    'jwtRules: [{issuer: a, outputClaimToHeaders: [{header: x, claim: ""}]}]',
    ['jwtRules[0].outputClaimToHeaders[0].claim', 'FIELD_EMPTY'],
  ],
];

const patches: Case[] = [
  [
    'EnvoyFilter',
    filter('{}'),
    ['configPatches[0].applyTo', 'FIELD_REQUIRED'],
    ['configPatches[0].patch', 'FIELD_REQUIRED'],
  ],
  [
    'EnvoyFilter',
    filter('{applyTo: CLUSTERS, patch: {operation: MERGE, value: {}}}'),
    ['configPatches[0].applyTo', 'FIELD_VALUE_UNKNOWN got "CLUSTERS" near CLUSTER'],
  ],
  [
    'EnvoyFilter',
    filter('{applyTo: ROUTE_CONFIGURATION, patch: {operation: ADD, value: {name: a}}}'),
    ['configPatches[0].patch.operation', 'FIELD_VALUE_UNKNOWN got "ADD"'],
  ],
  [
    'EnvoyFilter',
    filter('{applyTo: CLUSTER, patch: {operation: INSERT_FIRST, value: {name: a}}}'),
    ['configPatches[0].patch.operation', 'FIELD_VALUE_UNKNOWN got "INSERT_FIRST"'],
  ],
  [
    'EnvoyFilter',
    filter('{applyTo: CLUSTER, patch: {operation: MERGE}}'),
    ['configPatches[0].patch.value', 'FIELD_REQUIRED'],
  ],
  [
    'EnvoyFilter',
    filter('{applyTo: CLUSTER, match: {listener: {}}, patch: {operation: REMOVE}}'),
    ['configPatches[0].match.listener', 'FIELDS_EXCLUSIVE'],
  ],
  [
    'EnvoyFilter',
    filter(
      '{applyTo: NETWORK_FILTER, match: {listener: {filterChain: {filter: {subFilter: {name: a}}}}}, patch: {operation: ADD, value: {name: b}}}',
    ),
    ['configPatches[0].match.listener.filterChain.filter.subFilter', 'FIELDS_EXCLUSIVE'],
  ],
  [
    'EnvoyFilter',
    filter('{applyTo: CLUSTER, match: {proxy: {proxyVersion: "("}}, patch: {operation: REMOVE}}'),
    ['configPatches[0].match.proxy.proxyVersion', 'FIELD_FORMAT_INVALID got "("'],
  ],
  [
    'EnvoyFilter',
    filter('{applyTo: CLUSTER, patch: {operation: ADD, value: {}}}'),
    ['configPatches[0].patch.value.name', 'FIELD_REQUIRED'],
  ],
  [
    'EnvoyFilter',
    filter('{applyTo: CLUSTER, patch: {operation: MERGE, value: {connect_timeout: 5}}}'),
    ['configPatches[0].patch.value', 'FIELD_FORMAT_INVALID'],
  ],
  [
    'EnvoyFilter',
    filter(
      '{applyTo: HTTP_FILTER, patch: {operation: INSERT_FIRST, value: {name: a, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua, inline_code: 5}}}}',
      'priority: 1',
    ),
    ['configPatches[0].patch.value', 'FIELD_FORMAT_INVALID'],
  ],
  [
    'EnvoyFilter',
    'workloadSelector: {labels: {"*": a}}',
    ['workloadSelector.labels["*"]', 'FIELD_NOT_ALLOWED got "a"'],
  ],
  [
    'EnvoyFilter',
    'workloadSelector: {labels: {a: b}}\ntargetRefs: [{kind: Service, name: a}]',
    ['', 'FIELDS_EXCLUSIVE (one of workloadSelector and targetRefs)'],
  ],
];

const otherCases: Case[] = [
  [
    'Telemetry',
    'tracing: [{randomSamplingPercentage: 101}]',
    ['tracing[0].randomSamplingPercentage', 'FIELD_OUT_OF_RANGE (from 0 to 100) got 101'],
  ],
  ['Telemetry', 'accessLogging: [{providers: [{name: ""}]}]', ['accessLogging[0].providers[0].name', 'FIELD_EMPTY']],
  [
    'Telemetry',
    'tracing: [{customTags: {a: {}}}]',
    ['tracing[0].customTags.a', 'FIELD_REQUIRED (literal, environment, header or formatter) got none'],
  ],
  [
    'Telemetry',
    'metrics: [{overrides: [{tagOverrides: {x: {operation: REMOVE, value: y}, z: {}}}]}]',
    ['metrics[0].overrides[0].tagOverrides.x.value', 'FIELDS_EXCLUSIVE'],
    ['metrics[0].overrides[0].tagOverrides.z.value', 'FIELD_REQUIRED'],
  ],
  ['WasmPlugin', '{}', ['url', 'FIELD_REQUIRED']],
  ['WasmPlugin', 'url: "ftp://x/y"', ['url', 'FIELD_FORMAT_INVALID got "ftp://x/y"']],
  ['WasmPlugin', 'url: a\nsha256: abc', ['sha256', 'FIELD_FORMAT_INVALID got "abc"']],
  [
    'WasmPlugin',
    'url: a\nvmConfig: {env: [{name: X}, {name: X}]}',
    ['vmConfig.env[1].name', 'FIELD_DUPLICATE got "X" beside vmConfig.env[0].name'],
  ],
  [
    'WasmPlugin',
    'url: a\nvmConfig: {env: [{name: X, valueFrom: HOST, value: y}]}',
    ['vmConfig.env[0].value', 'FIELDS_EXCLUSIVE'],
  ],
  ['ProxyConfig', 'concurrency: -1', ['concurrency', 'FIELD_OUT_OF_RANGE (from 0 to 2147483647) got -1']],
  ['ProxyConfig', 'image: {imageType: 1}', ['image.imageType', 'FIELD_TYPE_INVALID got 1']],
  ['ProxyConfig', 'selector: {matchLabels: {"a*": b}}', ['selector.matchLabels["a*"]', 'FIELD_NOT_ALLOWED got "b"']],
  ['WorkloadGroup', '{}', ['template', 'FIELD_REQUIRED']],
  ['WorkloadGroup', 'template: {address: 1.2.3.4}', ['template.address', 'FIELD_NOT_ALLOWED']],
  [
    'WorkloadGroup',
    'template: {}\nprobe: {}',
    ['probe', 'FIELD_REQUIRED (exactly one of httpGet, tcpSocket, exec and grpc) got none'],
  ],
  [
    'WorkloadGroup',
    'template: {}\nprobe: {exec: {command: [a]}, grpc: {port: 1}}',
    ['probe', 'FIELDS_EXCLUSIVE (exactly one of httpGet, tcpSocket, exec and grpc) got exec and grpc'],
  ],
  [
    'WorkloadGroup',
    'template: {}\nprobe: {periodSeconds: -1, tcpSocket: {}}',
    ['probe.periodSeconds', 'FIELD_OUT_OF_RANGE (from 0 to 2147483647) got -1'],
    ['probe.tcpSocket.port', 'FIELD_REQUIRED'],
  ],
];

const refusedCases = [...authorization, ...authentication, ...patches, ...otherCases].map(
  ([kind, spec, ...expected]) => ({
    kind,
    spec,
    expected,
  }),
);

it.each(refusedCases)('an invalid $kind is rejected: $spec', ({ kind, spec, expected }) => {
  expect(errorsOf(kind, spec)).toEqual(expected.map(([path, coded]) => `${path}: ${coded}`));
});

/** Kind and spec, then all expected warnings as `codedError`. */
type Warned = readonly [kind: KindName, spec: string, ...warnings: string[]];

const warned: Warned[] = [
  ['AuthorizationPolicy', 'action: DENY\nrules: [{}]', 'rules[0]: FIELD_DOUBTFUL'],
  ['AuthorizationPolicy', 'selector: {}\nrules: [{}]', 'selector: FIELD_DOUBTFUL'],
  ['EnvoyFilter', '{}', 'configPatches: FIELD_WITHOUT_EFFECT'],
  [
    'EnvoyFilter',
    filter('{applyTo: HTTP_FILTER, patch: {operation: INSERT_BEFORE, value: {name: envoy.lua}}}'),
    'configPatches[0].patch.operation: FIELD_DOUBTFUL',
    'configPatches[0].patch.value.name: FIELD_DEPRECATED',
  ],
  [
    'EnvoyFilter',
    filter('{applyTo: HTTP_FILTER, patch: {operation: REMOVE}}'),
    'configPatches[0].match: FIELD_WITHOUT_EFFECT',
  ],
  ['EnvoyFilter', filter('{applyTo: HTTP_FILTER, patch: {operation: INSERT_BEFORE, value: {name: a}}}', 'priority: 1')],
  [
    'EnvoyFilter',
    filter('{applyTo: HTTP_FILTER, patch: {operation: INSERT_BEFORE, value: {name: constructor}}}', 'priority: 1'),
  ],
  [
    'EnvoyFilter',
    filter('{applyTo: CLUSTER, patch: {operation: MERGE, value: {http2_protocol_options: {}, some_new_field: 1}}}'),
    'configPatches[0].patch.value: FIELD_DOUBTFUL',
    'configPatches[0].patch.value: FIELD_DEPRECATED',
  ],
  [
    'EnvoyFilter',
    filter(
      '{applyTo: HTTP_FILTER, patch: {operation: INSERT_FIRST, value: {name: a, typed_config: {"@type": type.googleapis.com/envoy.new.v3.New}}}}',
    ),
    'configPatches[0].patch.value: FIELD_DOUBTFUL',
  ],
  [
    'EnvoyFilter',
    filter(
      '{applyTo: LISTENER, match: {listener: {portName: http}}, patch: {operation: MERGE, value: {name: a}, filterClass: AUTHZ}}',
    ),
    'configPatches[0].patch.value.name: FIELD_WITHOUT_EFFECT',
    'configPatches[0].match.listener.portName: FIELD_WITHOUT_EFFECT',
    'configPatches[0].patch.filterClass: FIELD_WITHOUT_EFFECT',
  ],
  ['PeerAuthentication', 'selector: {matchLabels: {}}', 'selector: FIELD_DOUBTFUL'],
  ['AuthorizationPolicy', '{}', 'rules: FIELD_DOUBTFUL'],
  ['AuthorizationPolicy', 'rules: [{}]'],
  ['Telemetry', 'selector: {matchLabels: {a: b}}'],
];

it.each(warned.map(([kind, spec, ...expected]) => ({ kind, spec, expected })))(
  'a questionable $kind has a warning: $spec',
  ({ kind, spec, expected }) => {
    expect(warnings(kind, spec)).toEqual(expected);
  },
);
