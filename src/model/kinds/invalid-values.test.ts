/** Values that no proxy could act on, or that say two things at once: each is refused, with its place and what to do. */
import { describe, expect, it } from 'vitest';
import { readConfigFile } from '../config/config-file.ts';

const versions: Readonly<Record<string, string>> = {
  AuthorizationPolicy: 'security.istio.io/v1',
  RequestAuthentication: 'security.istio.io/v1',
  WasmPlugin: 'extensions.istio.io/v1alpha1',
};

interface Found {
  readonly valid: boolean;
  /** `field: message`, errors and warnings each. */
  readonly errors: readonly string[];
  readonly warnings: readonly string[];
}

function read(kind: string, spec: string, metadata = ''): Found {
  const body = spec
    .split('\n')
    .map((line) => `  ${line}\n`)
    .join('');
  const text = `apiVersion: ${versions[kind] ?? 'networking.istio.io/v1'}\nkind: ${kind}\nmetadata: {name: a, namespace: shop${metadata}}\nspec:\n${body}`;
  const { configs, problems } = readConfigFile('a.yaml', text, { creationTimestamp: 0 });
  const texts = (severity: string): string[] =>
    problems
      .filter((problem) => problem.severity === severity)
      .map(({ line, field, message }) => {
        expect(line).toBeGreaterThan(0);
        return `${field}: ${message}`;
      });
  return { valid: configs.length > 0, errors: texts('error'), warnings: texts('warning') };
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
}

/** Kind, spec, then the one mistake as field and part of the message. */
type Case = readonly [kind: string, spec: string, field: string, fragment: string];

function expectRefused([kind, spec, field, fragment]: Case): void {
  const { valid, errors } = read(kind, spec);
  expect(errors).toEqual([expect.stringMatching(new RegExp(`^${escaped(field)}: .*${escaped(fragment)}`))]);
  expect(valid).toBe(false);
}

const routed = 'route: [{destination: {host: reviews}}]';
const http = (route: string): string => `hosts: [a.b]\nhttp: [{${routed}, ${route}}]`;
const policy = (text: string): string => `host: a.b\ntrafficPolicy: {${text}}`;
const cors = (text: string): string => http(`corsPolicy: {allowOrigins: [{exact: "https://a.b"}], ${text}}`);
const server = (text: string): string => `servers: [{hosts: ["*"], ${text}}]`;
const jwt = (text: string): string => `jwtRules: [{issuer: a, ${text}}]`;

describe('refused', () => {
  it.each<Case>([
    [
      'DestinationRule',
      policy('connectionPool: {tcp: {idleTimeout: 0.5ms}}'),
      'spec.trafficPolicy.connectionPool.tcp.idleTimeout',
      'must be 0s, or at least 1ms',
    ],
    [
      'DestinationRule',
      policy('connectionPool: {http: {idleTimeout: 999us}}'),
      'spec.trafficPolicy.connectionPool.http.idleTimeout',
      'must be 0s, or at least 1ms',
    ],
    [
      'DestinationRule',
      policy('loadBalancer: {consistentHash: {httpCookie: {name: a, ttl: 1ns}}}'),
      'spec.trafficPolicy.loadBalancer.consistentHash.httpCookie.ttl',
      'must be 0s, or at least 1ms',
    ],
    ['VirtualService', http('timeout: 10us'), 'spec.http[0].timeout', 'at least 1ms'],
  ])('a duration below a millisecond: %s %s', (...row) => expectRefused(row));

  it.each<Case>([
    ['VirtualService', cors('allowMethods: [GETT]'), 'spec.http[0].corsPolicy.allowMethods[0]', 'did you mean GET?'],
    [
      'VirtualService',
      cors('allowMethods: [GET, post]'),
      'spec.http[0].corsPolicy.allowMethods[1]',
      'did you mean POST?',
    ],
    [
      'VirtualService',
      cors('allowMethods: [":method"]'),
      'spec.http[0].corsPolicy.allowMethods[0]',
      'must be a method of HTTP',
    ],
    [
      'VirtualService',
      cors('allowHeaders: [":path"]'),
      'spec.http[0].corsPolicy.allowHeaders[0]',
      'is not a header name',
    ],
    [
      'VirtualService',
      cors('exposeHeaders: [":status"]'),
      'spec.http[0].corsPolicy.exposeHeaders[0]',
      'is not a header name',
    ],
    [
      'VirtualService',
      http('corsPolicy: {allowOrigins: [{exact: ""}]}'),
      'spec.http[0].corsPolicy.allowOrigins[0].exact',
      'must not be empty',
    ],
  ])('what no browser sends or understands: %s %s', (...row) => expectRefused(row));

  it.each<Case>([
    [
      'VirtualService',
      http('match: [{headers: {x-a: {prefix: ""}}}]'),
      'spec.http[0].match[0].headers.x-a.prefix',
      'must not be empty: {} asks for the presence',
    ],
    [
      'VirtualService',
      http('match: [{withoutHeaders: {x-a: {prefix: ""}}}]'),
      'spec.http[0].match[0].withoutHeaders.x-a.prefix',
      'must not be empty',
    ],
    [
      'VirtualService',
      http('match: [{queryParams: {a: {prefix: ""}}}]'),
      'spec.http[0].match[0].queryParams.a.prefix',
      'must not be empty',
    ],
    [
      'VirtualService',
      http('match: [{authority: {prefix: ""}}]'),
      'spec.http[0].match[0].authority.prefix',
      'must not be empty',
    ],
  ])('a prefix that everything has: %s %s', (...row) => expectRefused(row));

  it.each<Case>([
    [
      'VirtualService',
      http('rewrite: {authority: c.d}, headers: {request: {set: {":authority": e.f}}}'),
      'spec.http[0].headers.request.set[":authority"]',
      'must not be given beside rewrite.authority',
    ],
    [
      'VirtualService',
      http('rewrite: {authority: c.d}, headers: {request: {add: {Host: e.f}}}'),
      'spec.http[0].headers.request.add.Host',
      'must not be given beside rewrite.authority',
    ],
    [
      'VirtualService',
      http('headers: {request: {set: {":authority": e.f}, add: {host: g.h}}}'),
      'spec.http[0].headers.request.add.host',
      'must not be given beside http[0].headers.request.set[":authority"]',
    ],
    [
      'VirtualService',
      http('headers: {request: {set: {":path": /x}}}'),
      'spec.http[0].headers.request.set[":path"]',
      'must not be set',
    ],
    [
      'VirtualService',
      http('headers: {request: {remove: [Host]}}'),
      'spec.http[0].headers.request.remove[0]',
      'must not be removed',
    ],
    [
      'VirtualService',
      http('headers: {response: {set: {":status": "200"}}}'),
      'spec.http[0].headers.response.set[":status"]',
      'must not be set',
    ],
    [
      'VirtualService',
      'hosts: [a.b]\nhttp: [{route: [{destination: {host: x}, headers: {response: {remove: [":status"]}}}]}]',
      'spec.http[0].route[0].headers.response.remove[0]',
      'must not be removed',
    ],
  ])('a header that is set twice, or that is none: %s %s', (...row) => expectRefused(row));

  it.each<Case>([
    [
      'RequestAuthentication',
      jwt('outputClaimToHeaders: [{header: ":authority", claim: sub}]'),
      'spec.jwtRules[0].outputClaimToHeaders[0].header',
      'must not be a pseudo-header',
    ],
    [
      'RequestAuthentication',
      jwt('outputClaimToHeaders: [{header: host, claim: sub}]'),
      'spec.jwtRules[0].outputClaimToHeaders[0].header',
      'must not be a pseudo-header',
    ],
    [
      'RequestAuthentication',
      jwt('outputPayloadToHeader: ":path"'),
      'spec.jwtRules[0].outputPayloadToHeader',
      'must not be a pseudo-header',
    ],
  ])('a claim that becomes a pseudo-header: %s %s', (...row) => expectRefused(row));

  it.each<Case>([
    [
      'Gateway',
      server('port: {number: 0, name: http, protocol: HTTP}, bind: "unix://run/a"'),
      'spec.servers[0].bind',
      'unix:///run/a',
    ],
    [
      'Gateway',
      server('port: {number: 0, name: http, protocol: HTTP}, bind: "unix:///run/"'),
      'spec.servers[0].bind',
      'must be an IP address or unix:///PATH',
    ],
    [
      'Gateway',
      server('port: {number: 80, name: http, protocol: HTTP}, bind: "unix:///run/a"'),
      'spec.servers[0].port.number',
      'must be 0 with a unix bind',
    ],
    [
      'Sidecar',
      'egress: [{bind: "unix://s", port: {number: 0, protocol: HTTP, name: x}, hosts: ["*/*"]}]',
      'spec.egress[0].bind',
      'unix:///s',
    ],
    [
      'Sidecar',
      'ingress: [{port: {number: 80, protocol: HTTP, name: x}, defaultEndpoint: "unix:///run/"}]',
      'spec.ingress[0].defaultEndpoint',
      'unix:///PATH',
    ],
    ['WorkloadEntry', 'address: "unix://run/a"', 'spec.address', 'unix:///'],
    ['WorkloadEntry', 'address: "unix:///run/"', 'spec.address', 'unix:///'],
    [
      'ServiceEntry',
      'hosts: [a.b]\nresolution: STATIC\nendpoints: [{address: "unix://s"}]\nports: [{number: 80, name: http, protocol: HTTP}]',
      'spec.endpoints[0].address',
      'unix:///',
    ],
  ])('a unix socket that is no place, or a place with a port: %s %s', (...row) => expectRefused(row));

  it.each<Case>([
    [
      'Sidecar',
      'ingress: [{port: {number: 80, protocol: TCP, name: x}, tls: {mode: SIMPLE, serverCertificate: /c, privateKey: /k}}]',
      'spec.ingress[0].tls',
      'must not be given with protocol TCP: TLS',
    ],
    [
      'Sidecar',
      'ingress: [{port: {number: 80, protocol: MONGO, name: x}, tls: {mode: SIMPLE, serverCertificate: /c, privateKey: /k}}]',
      'spec.ingress[0].tls',
      'must not be given with protocol Mongo',
    ],
  ])('TLS in front of a port that is said to have none: %s %s', (...row) => expectRefused(row));

  it.each<Case>([
    [
      'DestinationRule',
      policy('outlierDetection: {consecutiveLocalOriginFailures: 5}'),
      'spec.trafficPolicy.outlierDetection.consecutiveLocalOriginFailures',
      'needs splitExternalLocalOriginErrors: true',
    ],
    [
      'DestinationRule',
      policy('outlierDetection: {consecutiveLocalOriginFailures: 5, splitExternalLocalOriginErrors: false}'),
      'spec.trafficPolicy.outlierDetection.consecutiveLocalOriginFailures',
      'needs splitExternalLocalOriginErrors: true',
    ],
    [
      'DestinationRule',
      policy(
        'loadBalancer: {consistentHash: {httpCookie: {name: a, attributes: [{name: Secure, value: ""}, {name: secure, value: ""}]}}}',
      ),
      'spec.trafficPolicy.loadBalancer.consistentHash.httpCookie.attributes[1].name',
      'repeats the attribute',
    ],
    [
      'DestinationRule',
      policy('tls: {mode: SIMPLE, credentialName: a, insecureSkipVerify: true}'),
      'spec.trafficPolicy.tls.insecureSkipVerify',
      'excludes credentialName',
    ],
    [
      'DestinationRule',
      policy('tls: {mode: MUTUAL, credentialName: a, insecureSkipVerify: true, subjectAltNames: [b]}'),
      'spec.trafficPolicy.tls.insecureSkipVerify',
      'excludes',
    ],
  ])('a setting without the one that it needs, or beside its opposite: %s %s', (...row) => expectRefused(row));

  const digest = 'AB'.repeat(32);
  it.each<Case>([
    ['WasmPlugin', `url: a\nsha256: ${digest}`, 'spec.sha256', 'lower-case'],
    ['WasmPlugin', `url: "oci://a/b@sha256:${digest}"`, 'spec.url', 'lower-case'],
    ['WasmPlugin', 'url: "a/b@sha256:abc"', 'spec.url', '64'],
    ['WasmPlugin', 'url: "file:///opt/100%.wasm"', 'spec.url', 'written %25'],
    ['WasmPlugin', 'url: "file:///opt/a%00b.wasm"', 'spec.url', 'no NUL'],
    ...[
      ['httpHeaderName: "a\\nb"', 'httpHeaderName', 'one line'],
      ['httpQueryParameterName: "a\\rb"', 'httpQueryParameterName', 'one line'],
      ['httpCookie: {name: "a\\0"}', 'httpCookie.name', 'one line'],
      ['httpCookie: {name: a, attributes: [{name: a, value: "b\\nc"}]}', 'httpCookie.attributes[0].value', 'one line'],
      ['useSourceIp: true, minimumRingSize: 8388609', 'minimumRingSize', '8388608'],
      ['useSourceIp: true, ringHash: {minimumRingSize: 8388609}', 'ringHash.minimumRingSize', '8388608'],
    ].map(
      ([hash, field, text]): Case => [
        'DestinationRule',
        `host: a.b\ntrafficPolicy: {loadBalancer: {consistentHash: {${hash}}}}`,
        `spec.trafficPolicy.loadBalancer.consistentHash.${field}`,
        text!,
      ],
    ),
    [
      'Gateway',
      server(
        'port: {number: 443, name: a, protocol: HTTPS}, tls: {mode: MUTUAL, credentialName: a, verifyCertificateHash: [abc]}',
      ),
      'spec.servers[0].tls.verifyCertificateHash[0]',
      '64 hexadecimal digits',
    ],
    [
      'Gateway',
      server(
        'port: {number: 443, name: a, protocol: HTTPS}, tls: {mode: MUTUAL, credentialName: a, verifyCertificateSpki: [abc]}',
      ),
      'spec.servers[0].tls.verifyCertificateSpki[0]',
      'base64',
    ],
  ])('a digest that is none: %s %s', (...row) => expectRefused(row));
});

describe('taken', () => {
  it.each([
    ['DestinationRule', policy('connectionPool: {tcp: {idleTimeout: 0s}, http: {idleTimeout: 1ms}}')],
    [
      'DestinationRule',
      policy(
        'loadBalancer: {consistentHash: {httpCookie: {name: a, ttl: 0s, attributes: [{name: a, value: ""}, {name: Secure}]}}}',
      ),
    ],
    ['DestinationRule', policy('outlierDetection: {consecutiveLocalOriginFailures: 0}')],
    [
      'DestinationRule',
      policy('outlierDetection: {consecutiveLocalOriginFailures: 5, splitExternalLocalOriginErrors: true}'),
    ],
    ['DestinationRule', policy('tls: {mode: MUTUAL, credentialName: a, insecureSkipVerify: true}')],
    ['DestinationRule', policy('tls: {mode: SIMPLE, credentialName: a, insecureSkipVerify: false}')],
    [
      'VirtualService',
      cors('allowMethods: [GET, HEAD, POST, PUT, PATCH, DELETE, CONNECT, OPTIONS, TRACE, "*"], allowHeaders: ["*"]'),
    ],
    ['VirtualService', http('headers: {request: {set: {":authority": e.f, x-a: b}, remove: [x-b]}}')],
    ['VirtualService', http('rewrite: {authority: c.d}, headers: {request: {set: {x-a: b}}}')],
    ['VirtualService', http('match: [{headers: {x-a: {}, x-b: {exact: ""}}, uri: {prefix: /}}]')],
    ['Gateway', server('port: {number: 0, name: http, protocol: HTTP}, bind: "unix://@name"')],
    ['Gateway', server('port: {number: 0, name: http, protocol: HTTP}, bind: "unix:///run/a"')],
    ['WorkloadEntry', 'address: "unix:///run/a"'],
    [
      'Sidecar',
      'ingress: [{port: {number: 80, protocol: TLS, name: x}, tls: {mode: SIMPLE, serverCertificate: /c, privateKey: /k}}]',
    ],
    [
      'Sidecar',
      'ingress: [{port: {number: 80, protocol: HTTPS, name: x}, tls: {mode: SIMPLE, serverCertificate: /c, privateKey: /k}}]',
    ],
    ['WasmPlugin', `url: "a/b@sha256:${'ab'.repeat(32)}"\nsha256: ${'cd'.repeat(32)}`],
    [
      'Gateway',
      server(
        `port: {number: 443, name: a, protocol: HTTPS}, tls: {mode: MUTUAL, credentialName: a, verifyCertificateHash: [${'AB'.repeat(32)}, "${Array(32).fill('ab').join(':')}"], verifyCertificateSpki: ["${'A'.repeat(43)}="]}`,
      ),
    ],
  ])('%s %s', (kind, spec) => {
    expect(read(kind, spec)).toMatchObject({ valid: true, errors: [] });
  });
});

describe('istio.io/dry-run', () => {
  const dryRun = (value: string, spec = 'rules: [{}]'): Found =>
    read('AuthorizationPolicy', spec, `, annotations: {istio.io/dry-run: ${JSON.stringify(value)}}`);

  it.each(['1', 't', 'T', 'TRUE', 'true', 'True', '0', 'f', 'F', 'FALSE', 'false', 'False'])('may be %s', (value) => {
    expect(dryRun(value)).toMatchObject({ valid: true, errors: [] });
  });

  it.each(['', 'yes', 'on', 'tRUE', ' true', 'true ', '2', 'enabled'])('is refused as %j', (value) => {
    const { valid, errors } = dryRun(value);
    expect(errors).toEqual([
      expect.stringContaining('metadata.annotations["istio.io/dry-run"]: must be true or false'),
    ]);
    expect(valid).toBe(false);
  });

  it.each(['AUDIT', 'CUSTOM'])('is refused on %s, which cannot be tried', (action) => {
    const provider = action === 'CUSTOM' ? 'provider: {name: x}\n' : '';
    const { valid, errors } = dryRun('true', `action: ${action}\n${provider}rules: [{}]`);
    expect(errors).toEqual([
      expect.stringMatching(`metadata.annotations\\["istio.io/dry-run"\\]: .*ALLOW and DENY.*${action}`),
    ]);
    expect(valid).toBe(false);
  });
});
