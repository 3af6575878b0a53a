import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from '../../../test/fixtures/real-envoy.ts';
import type { ProxyOptions } from './options.ts';
import type { ProxyFlags } from './proxy-flags.ts';
import { resolveProxyOptions } from './proxy-options.ts';

function resolved(flags: ProxyFlags, env: NodeJS.ProcessEnv = {}): () => unknown {
  return () => resolveProxyOptions({ role: 'sidecar', flags, env, directory: '/nowhere' });
}

function folder(): string {
  const made = temporaryFolder();
  onTestFinished(() => made[Symbol.dispose]());
  return made.path;
}

describe('a duration that no timer can be set to', () => {
  test.each<[string, ProxyFlags, NodeJS.ProcessEnv?]>([
    ['--drainDuration', { drainDuration: '1000h' }],
    ['--parentShutdownDuration', { parentShutdownDuration: '99999999999s' }],
    ['--terminationDrainDuration', { terminationDrainDuration: '577h' }],
    ['--connectTimeout', { connectTimeout: '10000000h' }],
    ['--watchDelay', { watchDelay: '2147483648ms' }],
    ['MINIMUM_DRAIN_DURATION', {}, { MINIMUM_DRAIN_DURATION: '25000000h' }],
    ['fileFlushInterval', {}, { PROXY_CONFIG: '{fileFlushInterval: 1000h}' }],
    ['DNS_FORWARD_TIMEOUT', {}, { ISTIO_META_DNS_CAPTURE: 'true', DNS_FORWARD_TIMEOUT: '700h' }],
  ])('is refused: %s', (name, flags, env) => {
    expect(resolved(flags, env)).toThrow(`${name}: must be at most 576h`);
  });

  test('the longest is taken', () => {
    const longest = '576h';
    const flags = { drainDuration: longest, parentShutdownDuration: longest, watchDelay: longest };
    expect(resolved({ ...flags, terminationDrainDuration: longest })).not.toThrow();
  });
});

describe('what Envoy would refuse at every start', () => {
  test.each(['0s', '999us', '1ns', '-0s'])('is refused: --connectTimeout %s', (connectTimeout) => {
    expect(resolved({ connectTimeout })).toThrow('--connectTimeout: must be at least 1ms');
  });

  test.each(['1ms', '1.5ms', '1s'])('is none: --connectTimeout %s', (connectTimeout) => {
    expect(resolved({ connectTimeout })).not.toThrow();
  });

  test('is no number of threads: those of the machine are taken', () => {
    const { concurrency: byDefault } = resolved({})() as ProxyOptions;
    for (const ISTIO_CPU_LIMIT of ['1025', '1e9', '0', '-1', '2.5', 'all']) {
      expect((resolved({}, { ISTIO_CPU_LIMIT })() as ProxyOptions).concurrency, ISTIO_CPU_LIMIT).toBe(byDefault);
    }
    expect((resolved({}, { ISTIO_CPU_LIMIT: '1024' })() as ProxyOptions).concurrency).toBe(1024);
  });
});

describe('blanks, which are 0 to Node', () => {
  test.each(['TERMINATION_DRAIN_DURATION_SECONDS', 'SECRET_GRACE_PERIOD_RATIO', 'SECRET_GRACE_PERIOD_RATIO_JITTER'])(
    'are no %s',
    (variable) => {
      for (const blanks of [' ', '\n', '\t '])
        expect(resolved({}, { [variable]: blanks })).toThrow(`${variable}: must be`);
    },
  );
});

describe('two uses of one port', () => {
  test.each<[string, ProxyFlags, NodeJS.ProcessEnv?]>([
    ['--statusPort and --proxyAdminPort must differ, not be 15000 both', { statusPort: '15000' }],
    ['--statusPort and --spareAdminPort must differ, not be 15020 both', { spareAdminPort: '15020' }],
    ['--proxyAdminPort and --spareAdminPort must differ, not be 15000 both', { spareAdminPort: '15000' }],
    ['--statusPort and ENVOY_STATUS_PORT must differ, not be 15021 both', { statusPort: '15021' }],
    ['--proxyAdminPort and ENVOY_PROMETHEUS_PORT must differ, not be 15090 both', { proxyAdminPort: '15090' }],
    ['ENVOY_STATUS_PORT and ENVOY_PROMETHEUS_PORT must differ', {}, { ENVOY_STATUS_PORT: '15090' }],
  ])('is refused: %s', (message, flags, env) => {
    expect(resolved(flags, env)).toThrow(message);
  });

  test('is none where one of them is off, or where Envoy has other listeners', () => {
    expect(resolved({ statusPort: '0', spareAdminPort: '0' }, { ENVOY_STATUS_PORT: '15090' })).not.toThrow();
    expect(resolved({ statusPort: '15021', customConfigFile: import.meta.filename })).not.toThrow();
  });
});

describe('--customConfigFile', () => {
  test.each([
    ['a file that is not there', '/nowhere/envoy.yaml', 'does not exist'],
    ['a file below a file', `${import.meta.filename}/envoy.yaml`, 'does not exist'],
    ['a directory', '/tmp', 'is a directory'],
  ])('that names %s is refused', (_, customConfigFile, why) => {
    expect(resolved({ customConfigFile })).toThrow(`--customConfigFile ${customConfigFile} ${why}`);
  });

  test('is told together with the other mistakes', () => {
    expect(resolved({ customConfigFile: '/nowhere', statusPort: '15000', watchDelay: 'soon' })).toThrow(
      /--watchDelay: must be.*--statusPort and --proxyAdminPort.*--customConfigFile \/nowhere does not exist/s,
    );
  });
});

describe('ISTIO_BOOTSTRAP_OVERRIDE', () => {
  test.each([
    ['broken YAML', 'admin: ['],
    ['no object', '- 1'],
    ['more than the system takes as one argument', `admin: {}\n# ${'x'.repeat(131_072)}`],
    ['a character that ends an argument', 'admin: "a\0b"'],
  ])('with %s is refused: Envoy would refuse it at every start', (_, content) => {
    const file = join(folder(), 'override.yaml');
    writeFileSync(file, content);
    expect(resolved({}, { ISTIO_BOOTSTRAP_OVERRIDE: file })).toThrow(`ISTIO_BOOTSTRAP_OVERRIDE: ${file}`);
  });

  test('that cannot be read is done without', () => {
    expect(resolved({}, { ISTIO_BOOTSTRAP_OVERRIDE: '/nowhere' })).not.toThrow();
  });
});
