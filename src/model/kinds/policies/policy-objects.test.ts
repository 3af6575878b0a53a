/** Policies, patches and extensions: what is taken, what is refused and why, what is warned of (spec/discovery.md §4.5). */
import * as E from 'fp-ts/lib/Either.js';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { FieldError } from '../../fields/decode.ts';
import { effectWarnings } from '../../fields/effect.ts';
import { type KindName, kinds, type SpecOfKind } from '../index.ts';

function decoded<K extends KindName>(kind: K, yaml: string): SpecOfKind[K] {
  const result = kinds[kind].decode(parse(yaml), 'shop');
  if (E.isLeft(result)) throw new Error(JSON.stringify(result.left));
  return result.right as SpecOfKind[K];
}

function errorsOf(kind: KindName, yaml: string): { path: string; message: string }[] {
  const result = kinds[kind].decode(parse(yaml), 'shop');
  return E.isLeft(result) ? result.left.map(({ path, message }) => ({ path, message })) : [];
}

function warnings<K extends KindName>(kind: K, yaml: string): string[] {
  const ofKind = kinds[kind].warnings as (value: SpecOfKind[K]) => readonly FieldError[];
  const found = [...ofKind(decoded(kind, yaml)), ...effectWarnings(kinds[kind].decoder, parse(yaml))];
  return found.map(({ path, message }) => `${path}: ${message}`);
}

const filter = (patch: string, more = ''): string => `configPatches: [${patch}]\n${more}`;

describe('a good object', () => {
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

/** Kind, spec, then each expected mistake as path and part of the message. All mistakes must be listed. */
type Case = readonly [kind: KindName, spec: string, ...mistakes: (readonly [path: string, fragment: string])[]];

const authorization: Case[] = [
  ['AuthorizationPolicy', 'action: DENY', ['rules', 'is required with action DENY']],
  ['AuthorizationPolicy', 'action: CUSTOM', ['rules', 'with action CUSTOM'], ['provider', 'is required']],
  ['AuthorizationPolicy', 'provider: {name: x}', ['provider', 'is only for action CUSTOM']],
  ['AuthorizationPolicy', 'action: CUSTOM\nrules: [{}]\nprovider: {name: ""}', ['provider.name', 'must not be empty']],
  ['AuthorizationPolicy', 'rules: [{from: []}]', ['rules[0].from', 'must not be empty']],
  ...['x/{*}', '/x//{*}', '/a b/{*}', '/ä/{*}', '/{*}?a=b', '/x|y/{*}', '//{**}'].map(
    (path): Case => [
      'AuthorizationPolicy',
      `rules: [{to: [{operation: {paths: ["${path}"]}}]}]`,
      [
        'rules[0].to[0].operation.paths[0]',
        path === '/{*}?a=b' ? 'whole segments' : path.startsWith('/') ? 'characters' : 'begin with /',
      ],
    ],
  ),
  [
    'AuthorizationPolicy',
    'rules: [{when: [{key: "request.headers[a b]", values: [x]}]}]',
    ['rules[0].when[0].key', 'known'],
  ],
  [
    'RequestAuthentication',
    'jwtRules: [{issuer: a, fromHeaders: [{name: a, prefix: "a\\nb"}]}]',
    ['jwtRules[0].fromHeaders[0].prefix', 'must be one line'],
  ],
  ['AuthorizationPolicy', 'rules: [{from: [{}]}]', ['rules[0].from[0].source', 'is required']],
  ['AuthorizationPolicy', 'rules: [{from: [{source: {}}]}]', ['rules[0].from[0].source', 'must not be empty']],
  ['AuthorizationPolicy', 'rules: [{to: [{operation: {}}]}]', ['rules[0].to[0].operation', 'must not be empty']],
  ['AuthorizationPolicy', 'rules: [{when: []}]', ['rules[0].when', 'must not be empty']],
  [
    'AuthorizationPolicy',
    'rules: [{from: [{source: {namespaces: [""]}}]}]',
    ['rules[0].from[0].source.namespaces[0]', 'empty'],
  ],
  [
    'AuthorizationPolicy',
    'rules: [{from: [{source: {ipBlocks: [1.2.3]}}]}]',
    ['rules[0].from[0].source.ipBlocks[0]', 'IP address'],
  ],
  [
    'AuthorizationPolicy',
    'rules: [{to: [{operation: {ports: ["0"]}}]}]',
    ['rules[0].to[0].operation.ports[0]', 'from 1 to 65535'],
  ],
  [
    'AuthorizationPolicy',
    'rules: [{to: [{operation: {paths: [/a*b]}}]}]',
    ['rules[0].to[0].operation.paths[0]', 'one end'],
  ],
  [
    'AuthorizationPolicy',
    'rules: [{to: [{operation: {paths: ["/{**}/{*}"]}}]}]',
    ['rules[0].to[0].operation.paths[0]', '{**} once'],
  ],
  [
    'AuthorizationPolicy',
    'rules: [{to: [{operation: {paths: ["/{*}x"]}}]}]',
    ['rules[0].to[0].operation.paths[0]', 'whole segments'],
  ],
  [
    'AuthorizationPolicy',
    'rules: [{to: [{operation: {hosts: ["*a*"]}}]}]',
    ['rules[0].to[0].operation.hosts[0]', 'one end'],
  ],
  [
    'AuthorizationPolicy',
    'rules: [{to: [{operation: {methods: ["G*T"]}}]}]',
    ['rules[0].to[0].operation.methods[0]', 'one end'],
  ],
  [
    'AuthorizationPolicy',
    'rules: [{when: [{key: request.header, values: [a]}]}]',
    ['rules[0].when[0].key', 'not a known key'],
  ],
  ['AuthorizationPolicy', 'rules: [{when: [{key: source.ip}]}]', ['rules[0].when[0]', 'must have values or notValues']],
  [
    'AuthorizationPolicy',
    'rules: [{when: [{key: source.ip, values: [x]}]}]',
    ['rules[0].when[0].values[0]', 'IP address'],
  ],
  [
    'AuthorizationPolicy',
    'rules: [{when: [{key: destination.port, notValues: [x]}]}]',
    ['rules[0].when[0].notValues[0]', 'port'],
  ],
  [
    'AuthorizationPolicy',
    'rules: [{from: [{source: {serviceAccounts: [a/b/c], principals: [x]}}]}]',
    ['rules[0].from[0].source.serviceAccounts[0]', 'must be a service account'],
    ['rules[0].from[0].source.serviceAccounts', 'must not be given beside'],
  ],
  [
    'AuthorizationPolicy',
    'rules: [{from: [{source: {serviceAccounts: [a/b], principals: [x]}}]}]',
    ['rules[0].from[0].source.serviceAccounts', 'must not be given beside'],
  ],
  [
    'AuthorizationPolicy',
    'action: CUSTOM\nprovider: {name: x}\nrules: [{from: [{source: {notPrincipals: [a]}}], when: [{key: request.auth.principal, values: [b]}]}]',
    ['rules[0].from[0].source.notPrincipals', 'with action CUSTOM'],
    ['rules[0].when[0].key', 'must not be request.auth.principal with action CUSTOM'],
  ],
  ['AuthorizationPolicy', 'selector: {matchLabels: {a: "*"}}', ['selector.matchLabels.a', 'wildcard']],
  ['AuthorizationPolicy', 'selector: {matchLabels: {"": b}}', ['selector.matchLabels[""]', 'must have a key']],
  [
    'AuthorizationPolicy',
    'selector: {}\ntargetRefs: [{kind: Service, name: a}]',
    ['', 'only one of selector and targetRefs'],
  ],
  ['AuthorizationPolicy', 'rulez: []', ['rulez', 'did you mean rules?']],
];

const authentication: Case[] = [
  ['PeerAuthentication', 'mtls: {mode: STRIKT}', ['mtls.mode', 'did you mean STRICT?']],
  ['PeerAuthentication', 'portLevelMtls: {80: {mode: STRICT}}', ['portLevelMtls', 'needs a selector']],
  ['PeerAuthentication', 'selector: {matchLabels: {a: b}}\nportLevelMtls: {}', ['portLevelMtls', 'must not be empty']],
  [
    'PeerAuthentication',
    'selector: {matchLabels: {a: b}}\nportLevelMtls: {70000: {mode: STRICT}, 0: {mode: STRICT}}',
    ['portLevelMtls.0', 'from 1 to 65535'],
    ['portLevelMtls.70000', 'from 1 to 65535'],
  ],
  ['RequestAuthentication', 'jwtRules: [{}]', ['jwtRules[0].issuer', 'is required (or jwksUri)']],
  [
    'RequestAuthentication',
    'jwtRules: [{issuer: a, audiences: [""]}]',
    ['jwtRules[0].audiences[0]', 'must not be empty'],
  ],
  [
    'RequestAuthentication',
    'jwtRules: [{issuer: a, jwksUri: "ftp://x"}]',
    ['jwtRules[0].jwksUri', 'http:// or https://'],
  ],
  ['RequestAuthentication', 'jwtRules: [{issuer: a, jwks: "{}"}]', ['jwtRules[0].jwks', 'JSON Web Key Set']],
  ['RequestAuthentication', 'jwtRules: [{issuer: a, jwks: "x"}]', ['jwtRules[0].jwks', 'is no JSON']],
  [
    'RequestAuthentication',
    'jwtRules: [{issuer: a, fromHeaders: [{name: ""}]}]',
    ['jwtRules[0].fromHeaders[0].name', 'empty'],
  ],
  ['RequestAuthentication', 'jwtRules: [{issuer: a, fromParams: [""]}]', ['jwtRules[0].fromParams[0]', 'empty']],
  ['RequestAuthentication', 'jwtRules: [{issuer: a, fromCookies: [""]}]', ['jwtRules[0].fromCookies[0]', 'empty']],
  [
    'RequestAuthentication',
    'jwtRules: [{issuer: a, outputClaimToHeaders: [{header: x, claim: ""}]}]',
    ['jwtRules[0].outputClaimToHeaders[0].claim', 'empty'],
  ],
];

const patches: Case[] = [
  ['EnvoyFilter', filter('{}'), ['configPatches[0].applyTo', 'is required'], ['configPatches[0].patch', 'is required']],
  [
    'EnvoyFilter',
    filter('{applyTo: CLUSTERS, patch: {operation: MERGE, value: {}}}'),
    ['configPatches[0].applyTo', 'did you mean CLUSTER?'],
  ],
  [
    'EnvoyFilter',
    filter('{applyTo: ROUTE_CONFIGURATION, patch: {operation: ADD, value: {name: a}}}'),
    ['configPatches[0].patch.operation', 'must be one of MERGE'],
  ],
  [
    'EnvoyFilter',
    filter('{applyTo: CLUSTER, patch: {operation: INSERT_FIRST, value: {name: a}}}'),
    ['configPatches[0].patch.operation', 'for CLUSTER, not INSERT_FIRST'],
  ],
  [
    'EnvoyFilter',
    filter('{applyTo: CLUSTER, patch: {operation: MERGE}}'),
    ['configPatches[0].patch.value', 'is required with MERGE'],
  ],
  [
    'EnvoyFilter',
    filter('{applyTo: CLUSTER, match: {listener: {}}, patch: {operation: REMOVE}}'),
    ['configPatches[0].match.listener', 'must not be given for CLUSTER'],
  ],
  [
    'EnvoyFilter',
    filter(
      '{applyTo: NETWORK_FILTER, match: {listener: {filterChain: {filter: {subFilter: {name: a}}}}}, patch: {operation: ADD, value: {name: b}}}',
    ),
    ['configPatches[0].match.listener.filterChain.filter.subFilter', 'must not be given for NETWORK_FILTER'],
  ],
  [
    'EnvoyFilter',
    filter('{applyTo: CLUSTER, match: {proxy: {proxyVersion: "("}}, patch: {operation: REMOVE}}'),
    ['configPatches[0].match.proxy.proxyVersion', 'RE2'],
  ],
  [
    'EnvoyFilter',
    filter('{applyTo: CLUSTER, patch: {operation: ADD, value: {}}}'),
    ['configPatches[0].patch.value.name', 'is required'],
  ],
  [
    'EnvoyFilter',
    filter('{applyTo: CLUSTER, patch: {operation: MERGE, value: {connect_timeout: 5}}}'),
    ['configPatches[0].patch.value', 'is no CLUSTER as Envoy has it'],
  ],
  [
    'EnvoyFilter',
    filter(
      '{applyTo: HTTP_FILTER, patch: {operation: INSERT_FIRST, value: {name: a, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua, inline_code: 5}}}}',
      'priority: 1',
    ),
    ['configPatches[0].patch.value', 'inline_code'],
  ],
  ['EnvoyFilter', 'workloadSelector: {labels: {"*": a}}', ['workloadSelector.labels["*"]', 'wildcard']],
  [
    'EnvoyFilter',
    'workloadSelector: {labels: {a: b}}\ntargetRefs: [{kind: Service, name: a}]',
    ['', 'only one of workloadSelector and targetRefs'],
  ],
];

const others: Case[] = [
  ['Telemetry', 'tracing: [{randomSamplingPercentage: 101}]', ['tracing[0].randomSamplingPercentage', 'from 0 to 100']],
  [
    'Telemetry',
    'accessLogging: [{providers: [{name: ""}]}]',
    ['accessLogging[0].providers[0].name', 'must not be empty'],
  ],
  ['Telemetry', 'tracing: [{customTags: {a: {}}}]', ['tracing[0].customTags.a', 'must have one of']],
  [
    'Telemetry',
    'metrics: [{overrides: [{tagOverrides: {x: {operation: REMOVE, value: y}, z: {}}}]}]',
    ['metrics[0].overrides[0].tagOverrides.x.value', 'with REMOVE'],
    ['metrics[0].overrides[0].tagOverrides.z.value', 'is required with UPSERT'],
  ],
  ['WasmPlugin', '{}', ['url', 'is required']],
  ['WasmPlugin', 'url: "ftp://x/y"', ['url', 'must begin with oci://']],
  ['WasmPlugin', 'url: a\nsha256: abc', ['sha256', '64 hexadecimal digits']],
  ['WasmPlugin', 'url: a\nvmConfig: {env: [{name: X}, {name: X}]}', ['vmConfig.env[1].name', 'repeats the variable X']],
  ['WasmPlugin', 'url: a\nvmConfig: {env: [{name: X, valueFrom: HOST, value: y}]}', ['vmConfig.env[0].value', 'HOST']],
  ['ProxyConfig', 'concurrency: -1', ['concurrency', 'must be from 0']],
  ['ProxyConfig', 'image: {imageType: 1}', ['image.imageType', 'must be a text']],
  ['ProxyConfig', 'selector: {matchLabels: {"a*": b}}', ['selector.matchLabels["a*"]', 'wildcard']],
  ['WorkloadGroup', '{}', ['template', 'is required']],
  ['WorkloadGroup', 'template: {address: 1.2.3.4}', ['template.address', 'each workload has its own']],
  ['WorkloadGroup', 'template: {}\nprobe: {}', ['probe', 'must have exactly one of httpGet']],
  ['WorkloadGroup', 'template: {}\nprobe: {exec: {command: [a]}, grpc: {port: 1}}', ['probe', 'not exec and grpc']],
  [
    'WorkloadGroup',
    'template: {}\nprobe: {periodSeconds: -1, tcpSocket: {}}',
    ['probe.periodSeconds', 'from 0'],
    ['probe.tcpSocket.port', 'is required'],
  ],
];

const refused = [...authorization, ...authentication, ...patches, ...others].map(([kind, spec, ...expected]) => ({
  kind,
  spec,
  expected,
}));

it.each(refused)('$kind is refused: $spec', ({ kind, spec, expected }) => {
  expect(errorsOf(kind, spec)).toEqual(
    expected.map(([path, fragment]) => ({ path, message: expect.stringContaining(fragment) })),
  );
});

/** Kind, spec, then the beginning of each expected warning. */
type Warned = readonly [kind: KindName, spec: string, ...warnings: string[]];

const warned: Warned[] = [
  ['AuthorizationPolicy', 'action: DENY\nrules: [{}]', 'rules[0]: matches every request'],
  ['AuthorizationPolicy', 'selector: {}\nrules: [{}]', 'selector: has no labels'],
  ['EnvoyFilter', '{}', 'configPatches: has none'],
  [
    'EnvoyFilter',
    filter('{applyTo: HTTP_FILTER, patch: {operation: INSERT_BEFORE, value: {name: envoy.lua}}}'),
    'configPatches[0].patch.operation: INSERT_BEFORE depends on',
    'configPatches[0].patch.value.name: is the old name of envoy.filters.http.lua',
  ],
  [
    'EnvoyFilter',
    filter('{applyTo: HTTP_FILTER, patch: {operation: REMOVE}}'),
    'configPatches[0].match: names no filter',
  ],
  ['EnvoyFilter', filter('{applyTo: HTTP_FILTER, patch: {operation: INSERT_BEFORE, value: {name: a}}}', 'priority: 1')],
  [
    'EnvoyFilter',
    filter('{applyTo: HTTP_FILTER, patch: {operation: INSERT_BEFORE, value: {name: constructor}}}', 'priority: 1'),
  ],
  [
    'EnvoyFilter',
    filter('{applyTo: CLUSTER, patch: {operation: MERGE, value: {http2_protocol_options: {}, some_new_field: 1}}}'),
    'configPatches[0].patch.value: envoy.config.cluster.v3.Cluster: key "some_new_field" is unknown: only a newer',
    'configPatches[0].patch.value: envoy.config.cluster.v3.Cluster.http2_protocol_options is deprecated',
  ],
  [
    'EnvoyFilter',
    filter(
      '{applyTo: HTTP_FILTER, patch: {operation: INSERT_FIRST, value: {name: a, typed_config: {"@type": type.googleapis.com/envoy.new.v3.New}}}}',
    ),
    "configPatches[0].patch.value: envoy.new.v3.New is no message of Envoy's API: only a newer",
  ],
  [
    'EnvoyFilter',
    filter(
      '{applyTo: LISTENER, match: {listener: {portName: http}}, patch: {operation: MERGE, value: {name: a}, filterClass: AUTHZ}}',
    ),
    'configPatches[0].patch.value.name: is left out',
    'configPatches[0].match.listener.portName: has no effect',
    'configPatches[0].patch.filterClass: has no effect',
  ],
  ['PeerAuthentication', 'selector: {matchLabels: {}}', 'selector: has no labels'],
  ['AuthorizationPolicy', '{}', 'rules: are none: nothing passes'],
  ['AuthorizationPolicy', 'rules: [{}]'],
  ['Telemetry', 'selector: {matchLabels: {a: b}}'],
];

it.each(warned.map(([kind, spec, ...expected]) => ({ kind, spec, expected })))(
  '$kind is warned of: $spec',
  ({ kind, spec, expected }) => {
    expect(warnings(kind, spec)).toEqual(expected.map((fragment) => expect.stringContaining(fragment)));
  },
);
