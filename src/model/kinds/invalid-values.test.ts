/** Tests that values which are contradictory, or which no proxy could apply, are rejected with their path and a suggestion. */

import { describe, expect, it } from 'vitest';
import { codedField } from '../../../test/fixtures/coded-error.ts';
import { readConfigFile } from '../config/config-file.ts';

const versions: Readonly<Record<string, string>> = {
  AuthorizationPolicy: 'security.istio.io/v1',
  RequestAuthentication: 'security.istio.io/v1',
  WasmPlugin: 'extensions.istio.io/v1alpha1',
};

interface DecodeResult {
  readonly valid: boolean;
  /** Errors and warnings as `codedField`. */
  readonly errors: readonly string[];
  readonly warnings: readonly string[];
}

function read(kind: string, spec: string, metadata = ''): DecodeResult {
  const body = spec
    .split('\n')
    .map((line) => `  ${line}\n`)
    .join('');
  const text = `apiVersion: ${versions[kind] ?? 'networking.istio.io/v1'}\nkind: ${kind}\nmetadata: {name: a, namespace: shop${metadata}}\nspec:\n${body}`;
  const { configs, problems } = readConfigFile('a.yaml', text, { creationTimestamp: 0 });
  const texts = (severity: string): string[] =>
    problems
      .filter((problem) => problem.severity === severity)
      .map((problem) => {
        expect(problem.line).toBeGreaterThan(0);
        return codedField(problem);
      });
  return { valid: configs.length > 0, errors: texts('error'), warnings: texts('warning') };
}

function _escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
}

/** Kind, spec, then field and `codedViolation` of the only error. */
type Case = readonly [kind: string, spec: string, field: string, coded: string];

function expectRefused([kind, spec, field, coded]: Case): void {
  const { valid, errors } = read(kind, spec);
  expect(errors).toEqual([`${field}: ${coded}`]);
  expect(valid).toBe(false);
}

const routed = 'route: [{destination: {host: reviews}}]';
const http = (route: string): string => `hosts: [a.b]\nhttp: [{${routed}, ${route}}]`;
const policy = (text: string): string => `host: a.b\ntrafficPolicy: {${text}}`;
const cors = (text: string): string => http(`corsPolicy: {allowOrigins: [{exact: "https://a.b"}], ${text}}`);
const server = (text: string): string => `servers: [{hosts: ["*"], ${text}}]`;
const jwt = (text: string): string => `jwtRules: [{issuer: a, ${text}}]`;

describe('validation of values', () => {
  it.each<Case>([
    [
      'DestinationRule',
      policy('connectionPool: {tcp: {idleTimeout: 0.5ms}}'),
      'spec.trafficPolicy.connectionPool.tcp.idleTimeout',
      'FIELD_OUT_OF_RANGE (0s, or at least 1ms) got "0.5ms"',
    ],
    [
      'DestinationRule',
      policy('connectionPool: {http: {idleTimeout: 999us}}'),
      'spec.trafficPolicy.connectionPool.http.idleTimeout',
      'FIELD_OUT_OF_RANGE (0s, or at least 1ms) got "0.999ms"',
    ],
    [
      'DestinationRule',
      policy('loadBalancer: {consistentHash: {httpCookie: {name: a, ttl: 1ns}}}'),
      'spec.trafficPolicy.loadBalancer.consistentHash.httpCookie.ttl',
      'FIELD_OUT_OF_RANGE (0s, or at least 1ms) got "0.000001ms"',
    ],
    [
      'VirtualService',
      http('timeout: 10us'),
      'spec.http[0].timeout',
      'FIELD_OUT_OF_RANGE (0s, or at least 1ms) got "0.01ms"',
    ],
  ])('rejects a duration below 1 ms: %s %s', (...row) => expectRefused(row));

  it.each<Case>([
    [
      'VirtualService',
      cors('allowMethods: [GETT]'),
      'spec.http[0].corsPolicy.allowMethods[0]',
      'FIELD_VALUE_UNKNOWN got "GETT" near GET',
    ],
    [
      'VirtualService',
      cors('allowMethods: [GET, post]'),
      'spec.http[0].corsPolicy.allowMethods[1]',
      'FIELD_VALUE_UNKNOWN got "post" near POST',
    ],
    [
      'VirtualService',
      cors('allowMethods: [":method"]'),
      'spec.http[0].corsPolicy.allowMethods[0]',
      'FIELD_VALUE_UNKNOWN got ":method"',
    ],
    [
      'VirtualService',
      cors('allowHeaders: [":path"]'),
      'spec.http[0].corsPolicy.allowHeaders[0]',
      'FIELD_FORMAT_INVALID got ":path"',
    ],
    [
      'VirtualService',
      cors('exposeHeaders: [":status"]'),
      'spec.http[0].corsPolicy.exposeHeaders[0]',
      'FIELD_FORMAT_INVALID got ":status"',
    ],
    [
      'VirtualService',
      http('corsPolicy: {allowOrigins: [{exact: ""}]}'),
      'spec.http[0].corsPolicy.allowOrigins[0].exact',
      'FIELD_EMPTY',
    ],
  ])('rejects CORS settings that browsers neither send nor understand: %s %s', (...row) => expectRefused(row));

  it.each<Case>([
    [
      'VirtualService',
      http('match: [{headers: {x-a: {prefix: ""}}}]'),
      'spec.http[0].match[0].headers.x-a.prefix',
      'FIELD_EMPTY',
    ],
    [
      'VirtualService',
      http('match: [{withoutHeaders: {x-a: {prefix: ""}}}]'),
      'spec.http[0].match[0].withoutHeaders.x-a.prefix',
      'FIELD_EMPTY',
    ],
    [
      'VirtualService',
      http('match: [{queryParams: {a: {prefix: ""}}}]'),
      'spec.http[0].match[0].queryParams.a.prefix',
      'FIELD_EMPTY',
    ],
    [
      'VirtualService',
      http('match: [{authority: {prefix: ""}}]'),
      'spec.http[0].match[0].authority.prefix',
      'FIELD_EMPTY',
    ],
  ])('rejects a prefix that matches everything: %s %s', (...row) => expectRefused(row));

  it.each<Case>([
    [
      'VirtualService',
      http('rewrite: {authority: c.d}, headers: {request: {set: {":authority": e.f}}}'),
      'spec.http[0].headers.request.set[":authority"]',
      'FIELDS_EXCLUSIVE',
    ],
    [
      'VirtualService',
      http('rewrite: {authority: c.d}, headers: {request: {add: {Host: e.f}}}'),
      'spec.http[0].headers.request.add.Host',
      'FIELDS_EXCLUSIVE',
    ],
    [
      'VirtualService',
      http('headers: {request: {set: {":authority": e.f}, add: {host: g.h}}}'),
      'spec.http[0].headers.request.add.host',
      'FIELDS_EXCLUSIVE',
    ],
    [
      'VirtualService',
      http('headers: {request: {set: {":path": /x}}}'),
      'spec.http[0].headers.request.set[":path"]',
      'FIELD_NOT_ALLOWED got ":path"',
    ],
    [
      'VirtualService',
      http('headers: {request: {remove: [Host]}}'),
      'spec.http[0].headers.request.remove[0]',
      'FIELD_NOT_ALLOWED got "Host"',
    ],
    [
      'VirtualService',
      http('headers: {response: {set: {":status": "200"}}}'),
      'spec.http[0].headers.response.set[":status"]',
      'FIELD_NOT_ALLOWED got ":status"',
    ],
    [
      'VirtualService',
      'hosts: [a.b]\nhttp: [{route: [{destination: {host: x}, headers: {response: {remove: [":status"]}}}]}]',
      'spec.http[0].route[0].headers.response.remove[0]',
      'FIELD_NOT_ALLOWED got ":status"',
    ],
  ])('rejects a header that is invalid or set twice: %s %s', (...row) => expectRefused(row));

  it.each<Case>([
    [
      'RequestAuthentication',
      jwt('outputClaimToHeaders: [{header: ":authority", claim: sub}]'),
      'spec.jwtRules[0].outputClaimToHeaders[0].header',
      'FIELD_NOT_ALLOWED got ":authority"',
    ],
    [
      'RequestAuthentication',
      jwt('outputClaimToHeaders: [{header: host, claim: sub}]'),
      'spec.jwtRules[0].outputClaimToHeaders[0].header',
      'FIELD_NOT_ALLOWED got "host"',
    ],
    [
      'RequestAuthentication',
      jwt('outputPayloadToHeader: ":path"'),
      'spec.jwtRules[0].outputPayloadToHeader',
      'FIELD_NOT_ALLOWED got ":path"',
    ],
  ])('rejects a claim that becomes a pseudo-header: %s %s', (...row) => expectRefused(row));

  it.each<Case>([
    [
      'Gateway',
      server('port: {number: 0, name: http, protocol: HTTP}, bind: "unix://run/a"'),
      'spec.servers[0].bind',
      'FIELD_FORMAT_INVALID got "unix://run/a"',
    ],
    [
      'Gateway',
      server('port: {number: 0, name: http, protocol: HTTP}, bind: "unix:///run/"'),
      'spec.servers[0].bind',
      'FIELD_FORMAT_INVALID got "unix:///run/"',
    ],
    [
      'Gateway',
      server('port: {number: 80, name: http, protocol: HTTP}, bind: "unix:///run/a"'),
      'spec.servers[0].port.number',
      'FIELD_OUT_OF_RANGE (0 with a unix bind) got 80',
    ],
    [
      'Sidecar',
      'egress: [{bind: "unix://s", port: {number: 0, protocol: HTTP, name: x}, hosts: ["*/*"]}]',
      'spec.egress[0].bind',
      'FIELD_FORMAT_INVALID got "unix://s"',
    ],
    [
      'Sidecar',
      'ingress: [{port: {number: 80, protocol: HTTP, name: x}, defaultEndpoint: "unix:///run/"}]',
      'spec.ingress[0].defaultEndpoint',
      'FIELD_FORMAT_INVALID got "unix:///run/"',
    ],
    ['WorkloadEntry', 'address: "unix://run/a"', 'spec.address', 'FIELD_FORMAT_INVALID got "unix://run/a"'],
    ['WorkloadEntry', 'address: "unix:///run/"', 'spec.address', 'FIELD_FORMAT_INVALID got "unix:///run/"'],
    [
      'ServiceEntry',
      'hosts: [a.b]\nresolution: STATIC\nendpoints: [{address: "unix://s"}]\nports: [{number: 80, name: http, protocol: HTTP}]',
      'spec.endpoints[0].address',
      'FIELD_FORMAT_INVALID got "unix://s"',
    ],
  ])('rejects a Unix socket that is not a path, or has a port: %s %s', (...row) => expectRefused(row));

  it.each<Case>([
    [
      'Sidecar',
      'ingress: [{port: {number: 80, protocol: TCP, name: x}, tls: {mode: SIMPLE, serverCertificate: /c, privateKey: /k}}]',
      'spec.ingress[0].tls',
      'FIELDS_EXCLUSIVE',
    ],
    [
      'Sidecar',
      'ingress: [{port: {number: 80, protocol: MONGO, name: x}, tls: {mode: SIMPLE, serverCertificate: /c, privateKey: /k}}]',
      'spec.ingress[0].tls',
      'FIELDS_EXCLUSIVE',
    ],
  ])('rejects TLS settings on a plaintext port: %s %s', (...row) => expectRefused(row));

  it.each<Case>([
    [
      'DestinationRule',
      policy('outlierDetection: {consecutiveLocalOriginFailures: 5}'),
      'spec.trafficPolicy.outlierDetection.consecutiveLocalOriginFailures',
      'FIELD_CONFLICT',
    ],
    [
      'DestinationRule',
      policy('outlierDetection: {consecutiveLocalOriginFailures: 5, splitExternalLocalOriginErrors: false}'),
      'spec.trafficPolicy.outlierDetection.consecutiveLocalOriginFailures',
      'FIELD_CONFLICT',
    ],
    [
      'DestinationRule',
      policy(
        'loadBalancer: {consistentHash: {httpCookie: {name: a, attributes: [{name: Secure, value: ""}, {name: secure, value: ""}]}}}',
      ),
      'spec.trafficPolicy.loadBalancer.consistentHash.httpCookie.attributes[1].name',
      'FIELD_DUPLICATE got "secure" beside trafficPolicy.loadBalancer.consistentHash.httpCookie.attributes[0].name',
    ],
    [
      'DestinationRule',
      policy('tls: {mode: SIMPLE, credentialName: a, insecureSkipVerify: true}'),
      'spec.trafficPolicy.tls.insecureSkipVerify',
      'FIELDS_EXCLUSIVE',
    ],
    [
      'DestinationRule',
      policy('tls: {mode: MUTUAL, credentialName: a, insecureSkipVerify: true, subjectAltNames: [b]}'),
      'spec.trafficPolicy.tls.insecureSkipVerify',
      'FIELDS_EXCLUSIVE',
    ],
  ])('rejects a setting without its prerequisite or with its opposite: %s %s', (...row) => expectRefused(row));

  const digest = 'AB'.repeat(32);
  it.each<Case>([
    [
      'WasmPlugin',
      `url: a\nsha256: ${digest}`,
      'spec.sha256',
      'FIELD_FORMAT_INVALID got "ABABABABABABABABABABABABABABABABABABABABABABABABABABABABABABABAB"',
    ],
    [
      'WasmPlugin',
      `url: "oci://a/b@sha256:${digest}"`,
      'spec.url',
      'FIELD_FORMAT_INVALID got "ABABABABABABABABABABABABABABABABABABABABABABABABABABABABABABABAB"',
    ],
    ['WasmPlugin', 'url: "a/b@sha256:abc"', 'spec.url', 'FIELD_FORMAT_INVALID got "abc"'],
    ['WasmPlugin', 'url: "file:///opt/100%.wasm"', 'spec.url', 'FIELD_FORMAT_INVALID got "/opt/100%.wasm"'],
    ['WasmPlugin', 'url: "file:///opt/a%00b.wasm"', 'spec.url', 'FIELD_NOT_ALLOWED'],
    ...[
      ['httpHeaderName: "a\\nb"', 'httpHeaderName', 'FIELD_NOT_ALLOWED'],
      ['httpQueryParameterName: "a\\rb"', 'httpQueryParameterName', 'FIELD_NOT_ALLOWED'],
      ['httpCookie: {name: "a\\0"}', 'httpCookie.name', 'FIELD_NOT_ALLOWED'],
      [
        'httpCookie: {name: a, attributes: [{name: a, value: "b\\nc"}]}',
        'httpCookie.attributes[0].value',
        'FIELD_NOT_ALLOWED',
      ],
      [
        'useSourceIp: true, minimumRingSize: 8388609',
        'minimumRingSize',
        'FIELD_OUT_OF_RANGE (from 0 to 8388608) got 8388609',
      ],
      [
        'useSourceIp: true, ringHash: {minimumRingSize: 8388609}',
        'ringHash.minimumRingSize',
        'FIELD_OUT_OF_RANGE (from 0 to 8388608) got 8388609',
      ],
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
      'FIELD_FORMAT_INVALID got "abc"',
    ],
    [
      'Gateway',
      server(
        'port: {number: 443, name: a, protocol: HTTPS}, tls: {mode: MUTUAL, credentialName: a, verifyCertificateSpki: [abc]}',
      ),
      'spec.servers[0].tls.verifyCertificateSpki[0]',
      'FIELD_FORMAT_INVALID got "abc"',
    ],
  ])('rejects an invalid digest: %s %s', (...row) => expectRefused(row));
});

describe('validation of valid values', () => {
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
  ])('accepts a %s with %s', (kind, spec) => {
    expect(read(kind, spec)).toMatchObject({ valid: true, errors: [] });
  });
});

describe('the annotation istio.io/dry-run', () => {
  const dryRun = (value: string, spec = 'rules: [{}]'): DecodeResult =>
    read('AuthorizationPolicy', spec, `, annotations: {istio.io/dry-run: ${JSON.stringify(value)}}`);

  it.each(['1', 't', 'T', 'TRUE', 'true', 'True', '0', 'f', 'F', 'FALSE', 'false', 'False'])('can be %s', (value) => {
    expect(dryRun(value)).toMatchObject({ valid: true, errors: [] });
  });

  it.each(['', 'yes', 'on', 'tRUE', ' true', 'true ', '2', 'enabled'])('is rejected if its value is %j', (value) => {
    const { valid, errors } = dryRun(value);
    expect(errors).toEqual([
      `metadata.annotations["istio.io/dry-run"]: FIELD_FORMAT_INVALID got ${JSON.stringify(value)}`,
    ]);
    expect(valid).toBe(false);
  });

  it.each(['AUDIT', 'CUSTOM'])('is rejected for the action %s, which does not support it', (action) => {
    const provider = action === 'CUSTOM' ? 'provider: {name: x}\n' : '';
    const { valid, errors } = dryRun('true', `action: ${action}\n${provider}rules: [{}]`);
    expect(errors).toEqual([`metadata.annotations["istio.io/dry-run"]: FIELD_UNSUPPORTED got "${action}"`]);
    expect(valid).toBe(false);
  });
});
