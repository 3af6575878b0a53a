import * as E from 'fp-ts/lib/Either.js';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { codedError } from '../../../test/fixtures/coded-error.ts';
import type { FieldError } from '../fields/violation.ts';
import { credentialWarnings } from './destinations/destination-rule.decode.ts';
import { type KindName, kinds, type SpecOfKind } from './index.ts';

function decoded<K extends KindName>(kind: K, yaml: string): SpecOfKind[K] {
  const result = kinds[kind].decode(parse(yaml), 'shop');
  if (E.isLeft(result)) throw new Error(JSON.stringify(result.left));
  return result.right as SpecOfKind[K];
}

function warnings<K extends KindName>(kind: K, yaml: string): string[] {
  const spec = decoded(kind, yaml);
  return (kinds[kind].warnings as (value: SpecOfKind[K]) => readonly FieldError[])(spec).map(codedError);
}

describe('a VirtualService', () => {
  it("keeps the API's names, with durations in milliseconds and matches by name", () => {
    const spec = decoded(
      'VirtualService',
      `
hosts: [reviews]
http:
- name: canary
  match:
  - uri: {prefix: /api}
    headers: {x-user: {exact: tom}, x-any: {}, x-star: {regex: "*"}}
    withoutHeaders: {x-bot: {}}
    ignoreUriCase: true
  route:
  - {destination: {host: reviews, subset: v1, port: {number: 80}}, weight: 90}
  - {destination: {host: reviews, subset: v2}, weight: 10, headers: {response: {remove: [server]}}}
  timeout: 1.5s
  retries: {attempts: 3, perTryTimeout: 500ms, retryOn: "5xx, 503"}
  fault: {delay: {fixedDelay: 2s, percent: 10}, abort: {grpcStatus: UNAVAILABLE, percentage: {value: 0.5}}}
  corsPolicy: {allowOrigin: ["https://a.b"], maxAge: 24h}
  mirror: {host: reviews, subset: v3}
  mirrorPercent: 5
`,
    );
    expect(spec.http?.[0]).toEqual({
      name: 'canary',
      match: [
        {
          uri: { prefix: '/api' },
          headers: { 'x-user': { exact: 'tom' }, 'x-any': { present: true }, 'x-star': { present: true } },
          withoutHeaders: { 'x-bot': { present: true } },
          ignoreUriCase: true,
        },
      ],
      route: [
        { destination: { host: 'reviews', subset: 'v1', port: { number: 80 } }, weight: 90 },
        { destination: { host: 'reviews', subset: 'v2' }, weight: 10, headers: { response: { remove: ['server'] } } },
      ],
      timeoutMs: 1500,
      retries: { attempts: 3, perTryTimeoutMs: 500, retryOn: '5xx, 503' },
      fault: {
        delay: { fixedDelayMs: 2000, percentage: { value: 10 } },
        abort: { grpcStatus: 'UNAVAILABLE', percentage: { value: 0.5 } },
      },
      corsPolicy: { allowOrigins: [{ exact: 'https://a.b' }], maxAgeMs: 86_400_000 },
      mirror: { host: 'reviews', subset: 'v3' },
      mirrorPercentage: { value: 5 },
    });
  });

  it('is a delegate if it has no hosts', () => {
    expect(decoded('VirtualService', 'http: [{route: [{destination: {host: a}}]}]').hosts).toEqual([]);
  });

  it('has a warning for unreachable routes and large bodies', () => {
    const body = 'x'.repeat(200 * 1024);
    const yaml = `
hosts: [a.b]
http:
- {match: [{uri: {exact: /a}}], directResponse: {status: 200, body: {string: ${body}}}}
- {match: [{uri: {exact: /a}, name: again}], route: [{destination: {host: x}}]}
- {route: [{destination: {host: x}}]}
- {match: [{uri: {exact: /c}}], route: [{destination: {host: x}}]}
`;
    expect(warnings('VirtualService', yaml)).toEqual([
      'http[1].match[0]: MATCH_SHADOWED beside http[0]',
      'http[3]: MATCH_SHADOWED beside http[2]',
      `http[0].directResponse.body: FIELD_DOUBTFUL`,
    ]);
  });
});

describe('a DestinationRule', () => {
  it('supports deprecated names and its own selector format', () => {
    const yaml = `
host: reviews
workloadSelector: {matchLabels: {app: web}}
trafficPolicy:
  loadBalancer: {simple: LEAST_CONN, warmupDurationSecs: 10s}
  outlierDetection: {consecutiveErrors: 7, interval: 5s}
`;
    expect(decoded('DestinationRule', yaml)).toEqual({
      host: 'reviews',
      workloadSelector: { labels: { app: 'web' } },
      trafficPolicy: {
        loadBalancer: { simple: 'LEAST_REQUEST', warmup: { durationMs: 10_000 } },
        outlierDetection: { consecutiveGatewayErrors: 7, intervalMs: 5000 },
      },
    });
  });

  it('decodes an unspecified load balancing algorithm as absent', () => {
    const yaml = 'host: a.b\ntrafficPolicy: {loadBalancer: {simple: UNSPECIFIED}}';
    expect(decoded('DestinationRule', yaml).trafficPolicy).toEqual({ loadBalancer: {} });
  });

  it('has a warning for Secrets that no sidecar receives, unless it has a workload selector', () => {
    const texts = (yaml: string) => credentialWarnings(decoded('DestinationRule', yaml)).map(codedError);
    const tls = 'tls: {mode: SIMPLE, credentialName: web}';
    const yaml = `host: a.b
trafficPolicy: {${tls}}
subsets: [{name: v1, trafficPolicy: {portLevelSettings: [{port: {number: 1}, ${tls}}]}}]`;
    const code = 'FIELD_DOUBTFUL';
    expect(texts(yaml)).toEqual([
      `trafficPolicy.tls.credentialName: ${code}`,
      `subsets[0].trafficPolicy.portLevelSettings[0].tls.credentialName: ${code}`,
    ]);
    expect(texts(`${yaml}\nworkloadSelector: {matchLabels: {app: web}}`)).toEqual([]);
  });

  it('has a warning for failover without outlier detection', () => {
    const yaml = 'host: a.b\ntrafficPolicy: {loadBalancer: {localityLbSetting: {failover: [{from: a, to: b}]}}}';
    expect(warnings('DestinationRule', yaml)).toEqual([
      'trafficPolicy.loadBalancer.localityLbSetting: FIELD_WITHOUT_EFFECT',
    ]);
  });
});

describe('a Gateway', () => {
  it('has case-insensitive protocols, and its TLS mode defaults to PASSTHROUGH', () => {
    const yaml = `
servers:
- {port: {number: 443, name: tls, protocol: tls}, hosts: ["shop/*.b.c", ./a.b], tls: {}}
- {port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"], tls: {httpsRedirect: true}}
- {port: {number: 8443, name: behind, protocol: HTTPS}, hosts: ["*"], tls: {httpsRedirect: true, mode: SIMPLE, credentialName: web}}
- {port: {number: 0, name: sock, protocol: HTTP}, bind: "unix:///s", hosts: ["*"]}
`;
    const spec = decoded('Gateway', yaml);
    expect(spec.servers.map(({ port, tls }) => [port.protocol, tls?.mode])).toEqual([
      ['TLS', 'PASSTHROUGH'],
      ['HTTP', 'PASSTHROUGH'],
      ['HTTPS', 'SIMPLE'],
      ['HTTP', undefined],
    ]);
    expect(spec.selector).toEqual({});
  });

  it('has a warning for cipher suites that Envoy does not support', () => {
    const yaml =
      'servers: [{port: {number: 443, name: x, protocol: HTTPS}, hosts: ["*"], tls: {mode: SIMPLE, credentialName: a, cipherSuites: [AES128-SHA, NOPE]}}]';
    expect(warnings('Gateway', yaml)).toEqual(['servers[0].tls.cipherSuites[1]: FIELD_WITHOUT_EFFECT']);
  });
});

describe('a ServiceEntry', () => {
  it('defaults to external, resolution NONE and protocol detection, or to TCP on server-first ports', () => {
    expect(decoded('ServiceEntry', 'hosts: [a.b]\nports: [{number: 1, name: x}]')).toEqual({
      hosts: ['a.b'],
      ports: [{ number: 1, name: 'x', protocol: 'unsupported' }],
      location: 'MESH_EXTERNAL',
      resolution: 'NONE',
    });
    expect(decoded('ServiceEntry', 'hosts: [a.b]\nports: [{number: 3306, name: x}]').ports[0]?.protocol).toBe('TCP');
  });

  it('can refer to a Unix socket if it has one port', () => {
    const yaml = 'hosts: [a.b]\nresolution: STATIC\nendpoints: [{address: "unix:///s"}]\nports: [{number: 1, name: x}]';
    expect(decoded('ServiceEntry', yaml).endpoints?.[0]?.address).toBe('unix:///s');
  });

  it('has a warning if hosts on TCP ports cannot be distinguished', () => {
    const entry = (protocol: string): string =>
      `hosts: [a.b, c.d]\nports: [{number: 1, name: x${protocol && `, protocol: ${protocol}`}}]`;
    expect(warnings('ServiceEntry', entry('TCP'))[0]).toContain('hosts: FIELD_DOUBTFUL');
    expect(warnings('ServiceEntry', entry(''))).toEqual([]);
  });

  it('has a warning if no proxy can serve it', () => {
    const entry = 'hosts: [a.b]\nresolution: STATIC\nports: [{number: 80, name: x, protocol: HTTP}]';
    expect(warnings('ServiceEntry', entry)[0]).toContain('endpoints: FIELD_DOUBTFUL');
    expect(warnings('ServiceEntry', `${entry}\nendpoints: [{address: 10.0.0.1}]`)).toEqual([]);
  });
});

describe('a Sidecar', () => {
  it('allows only registered hosts if its outbound traffic policy has no mode', () => {
    expect(decoded('Sidecar', 'outboundTrafficPolicy: {}').outboundTrafficPolicy).toEqual({ mode: 'REGISTRY_ONLY' });
  });

  it('keeps listeners as written', () => {
    const yaml = `
ingress: [{port: {number: 9080, protocol: HTTP, name: http}, defaultEndpoint: "127.0.0.1:8080"}]
egress:
- {port: {number: 3306, protocol: MYSQL, name: mysql}, bind: 127.0.0.1, captureMode: NONE, hosts: ["./db.b"]}
- {hosts: ["istio-system/*", "~/*"]}
`;
    const spec = decoded('Sidecar', yaml);
    expect(spec.ingress?.[0]).toEqual({
      port: { number: 9080, protocol: 'HTTP', name: 'http' },
      captureMode: 'DEFAULT',
      defaultEndpoint: '127.0.0.1:8080',
    });
    expect(spec.egress?.[0]?.port?.protocol).toBe('MySQL');
    expect(warnings('Sidecar', 'egress: [{hosts: ["*/*", "./a.b"]}]')).toEqual(['egress[0].hosts: FIELD_DOUBTFUL']);
  });
});

describe('validation of an object that other control planes accept', () => {
  const https = (tls: string, hosts = '["*"]'): string =>
    `servers: [{port: {number: 443, name: https, protocol: HTTPS}, hosts: ${hosts}, tls: {${tls}}}]`;
  const ok = 'route: [{destination: {host: a}}]';

  it.each<[KindName, string, string[]]>([
    ['Gateway', https('mode: SIMPLE, credentialName: a', '["outbound_.15010_._.x.svc"]'), []],
    [
      'Gateway',
      https('mode: SIMPLE, credentialName: a, serverCertificate: c, privateKey: k'),
      ['servers[0].tls.serverCertificate: FIELD_WITHOUT_EFFECT', 'servers[0].tls.privateKey: FIELD_WITHOUT_EFFECT'],
    ],
    [
      'Gateway',
      'servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["./*x.test"]}]',
      ['servers[0].hosts[0]: FIELD_DOUBTFUL'],
    ],
    ['VirtualService', `hosts: [outbound_.15010_._.x.svc]\nhttp: [{${ok}}]`, []],
    ['VirtualService', `hosts: ["*x"]\nhttp: [{${ok}}]`, ['hosts[0]: FIELD_DOUBTFUL']],
    ['DestinationRule', 'host: "*-x.test"', ['host: FIELD_DOUBTFUL']],
    ['ProxyConfig', 'image: {imageType: anything-2}', []],
    [
      'EnvoyFilter',
      'configPatches: [{applyTo: HTTP_FILTER, match: {context: WAYPOINT, waypoint: {portNumber: 80}}, patch: {operation: NEW}}]',
      ['configPatches[0]: FIELD_UNSUPPORTED'],
    ],
    ['VirtualService', 'hosts: [a.b]\nhttp: [{match: [{uri: {prefix: /a}}], redirect: {prefixRewrite: /b}}]', []],
    ['DestinationRule', 'host: a\ntrafficPolicy: {connectionPool: {http: {http2KeepAlive: {interval: 1s}}}}', []],
    ['DestinationRule', 'host: a\ntrafficPolicy: {loadBalancer: {zoneAwareLbSetting: {enabled: true}}}', []],
    ['RequestAuthentication', 'jwtRules: [{issuer: a, presence: REQUIRED}]', []],
  ])('accepts the object: %s %s', (kind, yaml, expected) => {
    expect(warnings(kind, yaml)).toEqual(expected);
  });

  it.each([
    ['{number: 9080, name: web}', 'unsupported'],
    ['{number: 3306}', 'TCP'],
  ])("detects the protocol of a Sidecar's ingress listener: %s", (port, protocol) => {
    expect(decoded('Sidecar', `ingress: [{port: ${port}}]`).ingress?.[0]?.port.protocol).toBe(protocol);
  });

  it('decodes a VirtualService match with an unknown condition so that it never matches', () => {
    const yaml = `hosts: [a.b]
http: [{match: [{phase: full}, {uri: {prefix: /a}}], ${ok}}]
tcp: [{match: [{mood: good}], ${ok}}]`;
    const { http, tcp } = decoded('VirtualService', yaml);
    expect(http?.[0]?.match).toEqual([{ never: true }, { uri: { prefix: '/a' } }]);
    expect(tcp?.[0]?.match).toEqual([{ never: true }]);
    expect(warnings('VirtualService', yaml)).toEqual([
      'http[0].match[0].phase: FIELD_UNKNOWN',
      'tcp[0].match[0].mood: FIELD_UNKNOWN',
    ]);
  });
});
