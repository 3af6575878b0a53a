/** A field without effect in combination with other values causes a warning exactly in these combinations. */
import { describe, expect, it } from 'vitest';
import { readConfigFile } from '../../src/model/config/config-file.ts';
import type { WorldObject } from './world.ts';
import { type FieldWorld, outputOf } from './world.ts';

const service: WorldObject = {
  apiVersion: 'networking.istio.io/v1',
  kind: 'ServiceEntry',
  metadata: { name: 'a', namespace: 'shop' },
  spec: {
    hosts: ['a.test'],
    addresses: ['10.1.0.2'],
    location: 'MESH_INTERNAL',
    resolution: 'STATIC',
    ports: [{ number: 80, name: 'http', protocol: 'HTTP' }],
    endpoints: [
      { address: '10.0.0.20', locality: 'r1/z' },
      { address: '10.0.0.21', locality: 'r2/z', labels: { team: 'a' } },
      { address: '10.0.0.22', locality: 'r3/z' },
    ],
  },
};

type BuildObject = (part: object) => WorldObject;

const kind =
  (name: string, apiVersion: string, specOf: (part: object) => object): BuildObject =>
  (fragment) => ({ apiVersion, kind: name, metadata: { name: 'b', namespace: 'shop' }, spec: specOf(fragment) });

const networking = 'networking.istio.io/v1';
const http = kind('VirtualService', networking, (route) => ({ hosts: ['a.test'], http: [route] }));
const policy = (of: (part: object) => object): BuildObject =>
  kind('DestinationRule', networking, (fragment) => ({
    host: 'a.test',
    workloadSelector: { matchLabels: { app: 'web' } },
    trafficPolicy: { outlierDetection: { consecutive5xxErrors: 1 }, ...of(fragment) },
  }));
const tls = policy((fragment) => ({ tls: fragment }));
const balancer = policy((fragment) => ({ loadBalancer: fragment }));
const locality = policy((fragment) => ({ loadBalancer: { localityLbSetting: fragment } }));
const zones = policy((fragment) => ({ loadBalancer: { zoneAwareLbSetting: fragment } }));
const wasm = kind('WasmPlugin', 'extensions.istio.io/v1alpha1', (fragment) => fragment);
const log = kind('Telemetry', 'telemetry.istio.io/v1', (fragment) => ({ accessLogging: [fragment] }));
const jwt = kind('RequestAuthentication', 'security.istio.io/v1', (fragment) => ({ jwtRules: [fragment] }));

const destination = { host: 'a.test' };
const redirect = { redirect: { uri: '/x' } };
const directReply = { directResponse: { status: 200 } };
const forward = { route: [{ destination }] };
const hash = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';

type Row = readonly [make: BuildObject, base: object, field: object];

const rowsWithoutEffect: readonly Row[] = [
  ...[redirect, directReply].flatMap((base): Row[] => [
    [http, base, { timeout: '3s' }],
    [http, base, { retries: { attempts: 3 } }],
    [http, base, { mirrors: [{ destination }] }],
    [http, base, { mirror: destination }],
  ]),
  [http, forward, { mirrorPercentage: { value: 5 } }],
  [http, forward, { mirrorPercent: 5 }],
  ...['clientCertificate', 'privateKey', 'caCertificates', 'caCrl', 'credentialName', 'sni'].map(
    (field): Row => [tls, { mode: 'DISABLE' }, { [field]: 'x' }],
  ),
  [tls, { mode: 'DISABLE' }, { subjectAltNames: ['x'] }],
  [tls, { mode: 'DISABLE' }, { insecureSkipVerify: true }],
  [tls, { mode: 'SIMPLE' }, { clientCertificate: '/c' }],
  [tls, { mode: 'SIMPLE' }, { privateKey: '/k' }],
  [tls, { mode: 'ISTIO_MUTUAL' }, { credentialName: 'x' }],
  [tls, { mode: 'ISTIO_MUTUAL' }, { caCrl: '/l' }],
  [tls, { mode: 'ISTIO_MUTUAL' }, { insecureSkipVerify: true }],
  [balancer, { simple: 'RANDOM' }, { warmup: { duration: '5s' } }],
  [balancer, { simple: 'PASSTHROUGH' }, { warmupDurationSecs: '5s' }],
  [balancer, { consistentHash: { useSourceIp: true } }, { warmup: { duration: '5s' } }],
  [locality, { enabled: false }, { failover: [{ from: 'r1', to: 'r3' }] }],
  [locality, { enabled: false }, { failoverPriority: ['team'] }],
  [locality, { enabled: false }, { distribute: [{ from: 'r1', to: { r2: 100 } }] }],
  [zones, {}, { failover: [{ from: 'r1', to: 'r3' }] }],
  [zones, { enabled: false }, { failoverPriority: ['team'] }],
  [zones, {}, { minClusterSize: 5 }],
  [wasm, { url: 'file:///a' }, { sha256: hash }],
  [log, { providers: [{ name: 'envoy' }], disabled: true }, { filter: { expression: 'response.code > 5' } }],
  [jwt, { issuer: 'a', jwks: '{"keys": []}' }, { timeout: '5s' }],
];

const withEffect: readonly Row[] = [
  [http, forward, { timeout: '3s' }],
  [http, forward, { retries: { attempts: 3 } }],
  [http, { ...forward, mirror: destination }, { mirrorPercentage: { value: 5 } }],
  [http, redirect, { headers: { response: { set: { a: 'b' } } } }],
  [tls, { mode: 'SIMPLE' }, { caCertificates: '/a' }],
  [tls, { mode: 'SIMPLE' }, { credentialName: 'x' }],
  [tls, { mode: 'ISTIO_MUTUAL' }, { subjectAltNames: ['x'] }],
  [tls, { mode: 'ISTIO_MUTUAL' }, { sni: 'x' }],
  [balancer, { simple: 'ROUND_ROBIN' }, { warmup: { duration: '5s' } }],
  [balancer, {}, { warmup: { duration: '5s' } }],
  [locality, {}, { failover: [{ from: 'r1', to: 'r3' }] }],
  [zones, { enabled: true }, { failoverPriority: ['team'] }],
  [jwt, { issuer: 'a', jwksUri: 'https://keys.test/a' }, { timeout: '7s' }],
];

function worldOf(object: WorldObject): FieldWorld {
  return {
    name: 'context',
    proxy: {
      ip: '10.0.0.9',
      namespace: 'shop',
      labels: { app: 'web', team: 'a', 'topology.kubernetes.io/region': 'r1' },
      metadata: { ISTIO_VERSION: '1.20.0' },
    },
    ...{ meshConfig: {}, features: {}, shows: [], objects: [object, service] },
  };
}

function warnedOf(object: WorldObject): readonly string[] {
  return readConfigFile('a.yaml', JSON.stringify(object), { creationTimestamp: 0 }).problems.flatMap(
    ({ code, field }) => (code === 'FIELD_WITHOUT_EFFECT' ? [field!.replace(/^.*\./, '')] : []),
  );
}

const rows = (all: readonly Row[]) =>
  all.map(([createObject, base, field]) => ({
    title: `${createObject({}).kind} ${JSON.stringify(field)} beside ${JSON.stringify(base)}`,
    without: createObject(base),
    given: createObject({ ...base, ...field }),
    name: Object.keys(field)[0]!,
  }));

describe('a warning reports a field without an effect in the combination', () => {
  it.each(rows(rowsWithoutEffect))('$title is reported', ({ without, given, name }) => {
    const { text, requested } = outputOf(worldOf(without));
    expect(outputOf(worldOf(given), requested).text === text).toBe(true);
    expect(warnedOf(given)).toEqual([name]);
  });
});

describe('no warning reports a field with an effect in the combination', () => {
  it.each(rows(withEffect))('$title is not reported', ({ without, given }) => {
    const { text, requested } = outputOf(worldOf(without));
    expect(outputOf(worldOf(given), requested).text === text).toBe(false);
    expect(warnedOf(given)).toEqual([]);
  });
});
