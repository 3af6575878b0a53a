/** Tests validation rules of Istio's main branch that earlier versions of chartpilot lacked. */

import * as E from 'fp-ts/lib/Either.js';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { codedError } from '../../../test/fixtures/coded-error.ts';
import { readConfigFile } from '../config/config-file.ts';
import { type KindName, kinds } from './index.ts';

function errorsOf(kind: KindName, yaml: string): string[] {
  const result = kinds[kind].decode(parse(yaml), 'shop');
  return E.isLeft(result) ? result.left.map(codedError) : [];
}
const route = 'route: [{destination: {host: a.test}}]';
const claims = (gateways: string) =>
  `{hosts: [a.test], ${gateways}http: [{match: [{withoutHeaders: {"@request.auth.claims.x": {exact: a}}}], ${route}}]}`;
const pool = (http: string) => `{host: a.test, trafficPolicy: {connectionPool: {http: {${http}}}}}`;
const subset = (labels: string) => `{host: a.test, subsets: [{name: x, labels: {${labels}}}]}`;
const entry = (host: string, protocol: string) =>
  `{hosts: ["${host}"], resolution: NONE, ports: [{number: 80, name: a, protocol: ${protocol}}]}`;
const gatewayAt = (number: string, bind: string) =>
  `{selector: {app: a}, servers: [{port: {number: ${number}, name: a, protocol: HTTP}, bind: "${bind}", hosts: ["*"]}]}`;
const egressAt = (number: string, bind: string) =>
  `{egress: [{port: {number: ${number}, name: a, protocol: HTTP}, bind: "${bind}", hosts: ["*/*"]}]}`;
const target = (extraFields: string) => `{kind: Gateway, group: gateway.networking.k8s.io, name: x${extraFields}}`;

const rejectedSpecs: readonly [KindName, spec: string, error: string][] = [
  [
    'VirtualService',
    `{hosts: [a.test], http: [{timeout: 1500us, ${route}}]}`,
    'http[0].timeout: FIELD_OUT_OF_RANGE (an integer number of milliseconds) got "1.5ms"',
  ],
  [
    'VirtualService',
    `{hosts: [a.test], http: [{retries: {attempts: 1, perTryTimeout: 1.5ms}, ${route}}]}`,
    'http[0].retries.perTryTimeout: FIELD_OUT_OF_RANGE (an integer number of milliseconds) got "1.5ms"',
  ],
  [
    'DestinationRule',
    pool('idleTimeout: 1500us'),
    'trafficPolicy.connectionPool.http.idleTimeout: FIELD_OUT_OF_RANGE (an integer number of milliseconds) got "1.5ms"',
  ],
  [
    'DestinationRule',
    '{host: a.test, trafficPolicy: {outlierDetection: {interval: 1500us}}}',
    'trafficPolicy.outlierDetection.interval: FIELD_OUT_OF_RANGE (an integer number of milliseconds) got "1.5ms"',
  ],
  [
    'DestinationRule',
    pool('http2KeepAlive: {timeout: 5s}'),
    'trafficPolicy.connectionPool.http.http2KeepAlive.interval: FIELD_REQUIRED',
  ],
  ['AuthorizationPolicy', `{targetRef: ${target(', namespace: shop')}}`, 'targetRef.namespace: FIELD_NOT_ALLOWED'],
  ['AuthorizationPolicy', `{targetRefs: [${target(', namespace: b')}]}`, 'targetRefs[0].namespace: FIELD_NOT_ALLOWED'],
  ['VirtualService', claims(''), 'http[0].match[0].withoutHeaders["@request.auth.claims.x"]: FIELD_NOT_ALLOWED'],
  [
    'VirtualService',
    claims('gateways: [mesh], '),
    'http[0].match[0].withoutHeaders["@request.auth.claims.x"]: FIELD_NOT_ALLOWED',
  ],
  ['Sidecar', '{egress: [{hosts: ["test/*a.com"]}]}', 'egress[0].hosts[0]: FIELD_FORMAT_INVALID got "*a.com"'],
  ['Sidecar', '{egress: [{hosts: ["~~ns/*"]}]}', 'egress[0].hosts[0]: FIELD_FORMAT_INVALID got "~~ns"'],
  ['Gateway', gatewayAt('80', 'unix://@x'), 'servers[0].port.number: FIELD_OUT_OF_RANGE (0 with a unix bind) got 80'],
  ['Gateway', gatewayAt('0', 'unix://x'), 'servers[0].bind: FIELD_FORMAT_INVALID got "unix://x"'],
  ['Sidecar', egressAt('80', 'unix://@x'), 'egress[0].port.number: FIELD_OUT_OF_RANGE (0 with a unix bind) got 80'],
  ['DestinationRule', subset('app: "."'), 'subsets[0].labels.app: FIELD_FORMAT_INVALID got "."'],
  ['DestinationRule', subset('".": a'), 'subsets[0].labels["."]: FIELD_FORMAT_INVALID got "."'],
  ['WorkloadEntry', '{address: 10.0.0.1, labels: {app: "."}}', 'labels.app: FIELD_FORMAT_INVALID got "."'],
  [
    'RequestAuthentication',
    '{jwtRules: [{issuer: a, outputClaimToHeaders: [{header: x.y, claim: a}]}]}',
    'jwtRules[0].outputClaimToHeaders[0].header: FIELD_FORMAT_INVALID got "x.y"',
  ],
  ['ServiceEntry', entry('*post.test', 'TLS'), 'hosts[0]: FIELD_FORMAT_INVALID got "*post.test"'],
];

const acceptedSpecs: readonly [KindName, spec: string][] = [
  [
    'Gateway',
    '{selector: {app: a}, servers: [{port: {number: 443, name: a, protocol: HTTPS}, hosts: ["*"], tls: {mode: MUTUAL, credentialName: a, caCrl: /x}}]}',
  ],
  [
    'WorkloadGroup',
    '{metadata: {labels: {app: a}, annotations: {note: "of the group, any text"}}, template: {serviceAccount: vm}}',
  ],
  ['VirtualService', claims('gateways: [mesh, front], ')],
  ['DestinationRule', pool('http2KeepAlive: {interval: 5s}')],
  ['DestinationRule', subset('app.kubernetes.io/name: "", a: b.c_d-1')],
  ['RequestAuthentication', '{jwtRules: [{issuer: a, outputClaimToHeaders: [{header: x_Y-1, claim: a}]}]}'],
  ['ServiceEntry', entry('*washingtonpost.com', 'HTTP')],
  ['Gateway', gatewayAt('0', 'unix://@x')],
  ['Sidecar', egressAt('0', 'unix://@x')],
  ['Sidecar', '{egress: [{hosts: ["*/*", "~ns/*", "~./a.b", "~*/b.c", "~/d.e"]}]}'],
  [
    'ServiceEntry',
    '{hosts: ["*.a.test"], location: MESH_INTERNAL, resolution: DYNAMIC_DNS, ports: [{number: 80, name: a, protocol: GRPC}]}',
  ],
  ['Sidecar', '{ingress: [{port: {number: 90, name: a, protocol: HTTP}, defaultEndpoint: "unix://@x"}]}'],
  [
    'VirtualService',
    '{hosts: ["*"], gateways: [g], tls: [{match: [{sniHosts: ["1.1.1.1"]}], route: [{destination: {host: a}}]}]}',
  ],
  [
    'EnvoyFilter',
    `{configPatches: [{applyTo: CLUSTER, match: {proxy: {proxyVersion: "${'a'.repeat(1025)}"}}, patch: {operation: REMOVE}}]}`,
  ],
];

describe("validation like on Istio's main branch", () => {
  it.each(rejectedSpecs)('rejects a %s such as %s', (kind, spec, error) => {
    expect(errorsOf(kind, spec)).toEqual([error]);
  });

  it.each([
    ['waypoint', 'MESH_INTERNAL', 'DYNAMIC_DNS', 1],
    ['none', 'MESH_INTERNAL', 'DYNAMIC_DNS', 0],
    ['None', 'MESH_INTERNAL', 'DYNAMIC_DNS', 0],
    ['waypoint', 'MESH_EXTERNAL', 'DYNAMIC_DNS', 0],
    ['waypoint', 'MESH_INTERNAL', 'NONE', 0],
  ])(
    'finds in a ServiceEntry with waypoint %s, location %s and resolution %s the number of errors %i',
    (waypoint, location, resolution, count) => {
      const { problems } = readConfigFile(
        'entry.yaml',
        `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: a, namespace: shop, labels: { istio.io/use-waypoint: ${waypoint} } }
spec: { hosts: ["*.a.test"], location: ${location}, resolution: ${resolution}, ports: [{ number: 80, name: a, protocol: HTTP }] }`,
        { creationTimestamp: 0 },
      );
      const errors = problems.filter(({ severity }) => severity === 'error');
      expect(errors.map(({ field }) => field)).toEqual(Array(count).fill('metadata.labels["istio.io/use-waypoint"]'));
    },
  );

  it.each([
    ['.', 1],
    ['a.', 1],
    ['a b', 1],
    ['a.b', 0],
    ['""', 0],
  ])('finds in a WorkloadEntry with the metadata label %s the number of errors %i', (label, count) => {
    const { problems } = readConfigFile(
      'entry.yaml',
      `
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: { name: a, namespace: shop, labels: { app: ${label} } }
spec: { address: 10.0.0.1 }`,
      { creationTimestamp: 0 },
    );
    const errors = problems.filter(({ severity }) => severity === 'error');
    expect(errors.map(({ field }) => field)).toEqual(Array(count).fill('metadata.labels.app'));
  });

  it.each(acceptedSpecs)('accepts a %s such as %s', (kind, spec) => {
    expect(errorsOf(kind, spec)).toEqual([]);
  });
});
