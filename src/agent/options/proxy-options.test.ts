import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { codedError, errorWith } from '../../../test/fixtures/error-details.ts';
import { temporaryFolder } from '../../../test/fixtures/real-envoy.ts';
import type { ProxyOptions } from './options.ts';
import { type OptionSources, resolveProxyOptions } from './proxy-options.ts';

function folder(files: Readonly<Record<string, string>> = {}): string {
  const temporary = temporaryFolder();
  onTestFinished(() => temporary[Symbol.dispose]());
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(join(temporary.path, path, '..'), { recursive: true });
    writeFileSync(join(temporary.path, path), content);
  }
  return temporary.path;
}

function resolved(sources: Partial<OptionSources> = {}): ProxyOptions {
  return resolveProxyOptions({ role: 'sidecar', flags: {}, env: {}, directory: folder(), ...sources });
}

describe('resolution of proxy options (agent §1.5)', () => {
  const mesh = (body: string): string => folder({ 'etc/istio/config/mesh': body });

  test('uses defaults and requires no file if there are no sources', () => {
    expect(resolved().config).toMatchObject({
      discoveryAddress: 'istiod.istio-system.svc:15012',
      drainDurationMs: 45_000,
      terminationDrainDurationMs: 5_000,
      statusPort: 15020,
    });
  });

  test('prefers single annotations to flags, flags to the annotation, the annotation to PROXY_CONFIG, and PROXY_CONFIG to the mesh file', () => {
    const meshBody = 'defaultConfig:\n  drainDuration: 1s\n  configPath: mesh\n  statusPort: 1\n  proxyAdminPort: 1\n';
    const annotations = [
      'proxy.istio.io/config="configPath: annotation\\nstatusPort: 3\\nproxyAdminPort: 3"',
      'status.sidecar.istio.io/port="5"',
    ];
    const directory = folder({
      'etc/istio/config/mesh': meshBody,
      'etc/istio/pod/annotations': annotations.join('\n'),
    });
    const env = { PROXY_CONFIG: 'configPath: environment\nstatusPort: 2\nproxyAdminPort: 2' };
    expect(resolved({ directory, env, flags: { statusPort: '4', proxyAdminPort: '4' } }).config).toMatchObject({
      drainDurationMs: 1_000,
      configPath: 'annotation',
      statusPort: 5,
      proxyAdminPort: 4,
    });
  });

  test('uses TERMINATION_DRAIN_DURATION_SECONDS only if no other source sets the duration', () => {
    const env = { TERMINATION_DRAIN_DURATION_SECONDS: '0.5' };
    expect(resolved({ env }).config.terminationDrainDurationMs).toBe(500);
    const directory = mesh('defaultConfig: {terminationDrainDuration: 7s}');
    expect(resolved({ env, directory }).config.terminationDrainDurationMs).toBe(7_000);
  });

  test('uses --serviceCluster only if no service name is configured, and ignores --concurrency 0', () => {
    const flags = { serviceCluster: 'flag', concurrency: '0' };
    expect(resolved({ flags }).config.serviceCluster).toBe('flag');
    const directory = mesh('defaultConfig: {serviceCluster: mesh, concurrency: 3}');
    expect(resolved({ flags, directory })).toMatchObject({ config: { serviceCluster: 'mesh' }, concurrency: 3 });
    expect(resolved({ flags: { concurrency: '2' }, directory }).concurrency).toBe(2);
  });

  test('sets a binary path only if a source configures it', () => {
    expect(resolved().binaryPath).toBeUndefined();
    expect(resolved({ flags: { binaryPath: '/opt/envoy' } }).binaryPath).toBe('/opt/envoy');
  });
});

describe('invalid proxy options', () => {
  test('are reported together, each with its source', () => {
    const directory = folder({ 'etc/istio/config/mesh': 'defaultConfig: {drainDuration: soon}' });
    const sources = {
      directory,
      env: { PROXY_CONFIG: 'statusPort: many', ENVOY_STATUS_PORT: 'x' },
      flags: { discoveryAddress: 'istiod', watchDelay: '10', baseId: '-1', proxyLogLevel: 'loud' },
    };
    expect(() => resolved(sources)).toThrow(
      errorWith(
        { path: `${directory}/etc/istio/config/mesh: defaultConfig.drainDuration`, line: 1, got: '"soon"' },
        { path: 'PROXY_CONFIG: statusPort', line: 1, expected: 'an integer', got: '"many"' },
        { path: '--discoveryAddress', code: 'FIELD_FORMAT_INVALID', got: '"istiod"' },
        { path: '--watchDelay', code: 'FIELD_FORMAT_INVALID', got: '"10"' },
        { path: '--baseId', code: 'FIELD_OUT_OF_RANGE', got: '"-1"' },
        { path: '--proxyLogLevel', code: 'FIELD_VALUE_UNKNOWN', got: '"loud"' },
        { path: 'ENVOY_STATUS_PORT', code: 'FIELD_FORMAT_INVALID', got: '"x"' },
      ),
    );
  });

  test('are reported in one sentence with location, expected and actual value', () => {
    const env = { PROXY_CONFIG: 'statusPort: many' };
    expect(() => resolved({ env, flags: { baseId: '-1' } })).toThrow(
      'invalid configuration: PROXY_CONFIG:1: statusPort: must be an integer, got "many"; ' +
        '--baseId: must be an integer from 0 to 400000000, got "-1"',
    );
  });

  test('are reported with source and line if the YAML is invalid', () => {
    const expectedError = { code: 'YAML_INVALID', path: 'PROXY_CONFIG', line: 1 };
    expect(() => resolved({ env: { PROXY_CONFIG: 'a: [' } })).toThrow(codedError('CONFIG_INVALID', expectedError));
  });

  test('include an unknown proxy type', () => {
    const expectedError = { code: 'FIELD_VALUE_UNKNOWN', path: 'proxy type', got: '"ingress"' };
    expect(() => resolved({ role: 'ingress' })).toThrow(codedError('FLAG_INVALID', expectedError));
  });
});

describe('drain and spare admin port options', () => {
  test("have Istio's defaults", () => {
    expect(resolved()).toMatchObject({
      exitOnZeroActiveConnections: false,
      minimumDrainMs: 5_000,
      spareAdminPort: 0,
    });
  });

  test('are set by environment and flag', () => {
    const env = { EXIT_ON_ZERO_ACTIVE_CONNECTIONS: 'true', MINIMUM_DRAIN_DURATION: '500ms' };
    expect(resolved({ env, flags: { spareAdminPort: '15005' } })).toMatchObject({
      exitOnZeroActiveConnections: true,
      minimumDrainMs: 500,
      spareAdminPort: 15_005,
    });
  });

  test('are reported with their source if invalid', () => {
    const env = { EXIT_ON_ZERO_ACTIVE_CONNECTIONS: 'yes', MINIMUM_DRAIN_DURATION: '5' };
    expect(() => resolved({ env, flags: { spareAdminPort: '70000' } })).toThrow(
      errorWith(
        { path: '--spareAdminPort', expected: 'a port, or 0 for a free port', got: '"70000"' },
        { path: 'EXIT_ON_ZERO_ACTIVE_CONNECTIONS', expected: 'one of true, false', got: '"yes"' },
        { path: 'MINIMUM_DRAIN_DURATION', code: 'FIELD_FORMAT_INVALID', got: '"5"' },
      ),
    );
    expect(resolved({ flags: { spareAdminPort: '0', statusPort: '0' } }).spareAdminPort).toBe(0);
  });
});

describe('boolean options (agent §1.3)', () => {
  test.each(['1', 't', 'T', 'true', 'True', 'TRUE'])('are on with %s, as in Istio', (trueText) => {
    const env = {
      EXIT_ON_ZERO_ACTIVE_CONNECTIONS: trueText,
      DISABLE_ENVOY: trueText,
      ISTIO_DELTA_XDS: trueText,
      ISTIO_META_DNS_CAPTURE: trueText,
    };
    expect(resolved({ env })).toMatchObject({ exitOnZeroActiveConnections: true, runsEnvoy: false, delta: true });
    expect(resolved({ env }).dns).toBeDefined();
  });

  test.each(['0', 'f', 'F', 'false', 'False', 'FALSE', ''])('are off with %j', (off) => {
    const env = { EXIT_ON_ZERO_ACTIVE_CONNECTIONS: off, DISABLE_ENVOY: off, ISTIO_DELTA_XDS: off };
    expect(resolved({ env })).toMatchObject({ exitOnZeroActiveConnections: false, runsEnvoy: true, delta: false });
  });

  test('are rejected with an invalid value instead of being off', () => {
    const env = { FILE_MOUNTED_CERTS: 'yes', ISTIO_META_DNS_CAPTURE: 'on', BOOTSTRAP_XDS_AGENT: '2' };
    expect(() => resolved({ env })).toThrow(
      errorWith(
        { path: 'BOOTSTRAP_XDS_AGENT', code: 'FIELD_VALUE_UNKNOWN', got: '"2"' },
        { path: 'FILE_MOUNTED_CERTS', code: 'FIELD_VALUE_UNKNOWN', got: '"yes"' },
        { path: 'ISTIO_META_DNS_CAPTURE', code: 'FIELD_VALUE_UNKNOWN', got: '"on"' },
      ),
    );
  });
});

describe('identity of the proxy', () => {
  test("consists of the pod's name and namespace, the instance address and the domain", () => {
    const env = { POD_NAME: 'web-0', POD_NAMESPACE: 'shop', INSTANCE_IP: '10.1.2.3' };
    const options = resolved({ env });
    expect(options).toMatchObject({ workloadId: 'web-0.shop', domain: 'shop.svc.cluster.local' });
    expect(options.addresses[0]).toBe('10.1.2.3');
    expect(resolved({ env, flags: { domain: 'example.com', id: 'x.y' } })).toMatchObject({
      workloadId: 'x.y',
      domain: 'example.com',
    });
  });
});

describe('certificate directories', () => {
  test('are the default ones and those of --watchCerts without duplicates (agent §3.1)', () => {
    const flags = { watchCerts: '/a, /b,/a,', watchDelay: '500ms' };
    expect(resolved({ flags }).watch).toEqual({
      directories: ['/etc/certs', '/a', '/b'],
      delayMs: 500,
      requiredFiles: [],
    });
    expect(resolved({ role: 'router' }).watch.directories).toEqual(['/etc/certs', '/etc/istio/ingress-certs']);
  });

  test('include directories of TLS files in the mesh configuration, and no empty names', () => {
    const env = {
      PROXY_CONFIG: `
        envoyMetricsService: {address: "a:1", tlsSettings: {mode: MUTUAL, clientCertificate: /m/c.pem, privateKey: /m/k.pem}}
        envoyAccessLogService: {address: "a:1", tlsSettings: {mode: SIMPLE, caCertificates: /n/ca.pem, clientCertificate: ""}}`,
    };
    expect(resolved({ env }).watch).toMatchObject({
      directories: ['/etc/certs', '/m', '/n'],
      requiredFiles: ['/m/c.pem', '/m/k.pem', '/n/ca.pem'],
    });
  });
});

test("reports each variable and field of Istio's agent that has no effect once", () => {
  const env = {
    PKCS8_KEY: 'true',
    XDS_HEADER_X: '1',
    OUTPUT_CERTS: '/certs',
    CA_ADDR: '',
    POD_NAME: 'web-0',
    PROXY_CONFIG: '{privateKeyProvider: {}, image: {}, tracing: {stackdriver: {}, zipkin: {}}}',
  };
  expect(resolved({ env }).warnings).toEqual([
    ...['tracing.stackdriver', 'privateKeyProvider'].map((field) => ({
      ...{ event: 'option.fieldIgnored', source: 'PROXY_CONFIG', line: 1, field },
      reason: expect.stringMatching(/no effect/),
    })),
    { event: 'option.withoutEffect', settings: 'PKCS8_KEY' },
  ]);
});

test('reports a missing mesh configuration only if --meshConfig names it', () => {
  expect(resolved({ flags: { meshConfig: '/nowhere/mesh' } }).warnings).toEqual([
    {
      ...{ event: 'option.ignored', setting: '--meshConfig', value: '/nowhere/mesh' },
      reason: 'does not exist',
    },
  ]);
  expect(resolved().warnings).toEqual([]);
});

test('warns about suspicious but valid settings', () => {
  const flags = { drainDuration: '60s', parentShutdownDuration: '5s', proxyLogLevel: 'a:b:c,info' };
  const env = { ISTIO_BOOTSTRAP_OVERRIDE: '/nowhere' };
  expect(resolved({ flags, env }).warnings).toEqual([
    {
      ...{ event: 'option.ignored', setting: '--proxyLogLevel', value: 'a:b:c' },
      reason: expect.stringMatching(/LEVEL/),
    },
    { event: 'option.ignored', setting: 'ISTIO_BOOTSTRAP_OVERRIDE', reason: expect.stringMatching(/nowhere/) },
    { event: 'option.drainTooShort', parentShutdownDurationMs: 5_000, drainDurationMs: 60_000 },
  ]);
});
