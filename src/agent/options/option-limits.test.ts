import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { errorWith } from '../../../test/fixtures/error-details.ts';
import { temporaryFolder } from '../../../test/fixtures/real-envoy.ts';
import type { ProxyOptions } from './options.ts';
import type { ProxyFlags } from './proxy-flags.ts';
import { resolveProxyOptions } from './proxy-options.ts';

function resolved(flags: ProxyFlags, env: NodeJS.ProcessEnv = {}): () => unknown {
  return () => resolveProxyOptions({ role: 'sidecar', flags, env, directory: '/nowhere' });
}

function folder(): string {
  const temporary = temporaryFolder();
  onTestFinished(() => temporary[Symbol.dispose]());
  return temporary.path;
}

describe('duration beyond the timer range', () => {
  test.each<[string, ProxyFlags, NodeJS.ProcessEnv?]>([
    ['--drainDuration', { drainDuration: '1000h' }],
    ['--parentShutdownDuration', { parentShutdownDuration: '99999999999s' }],
    ['--terminationDrainDuration', { terminationDrainDuration: '577h' }],
    ['--connectTimeout', { connectTimeout: '10000000h' }],
    ['--watchDelay', { watchDelay: '2147483648ms' }],
    ['MINIMUM_DRAIN_DURATION', {}, { MINIMUM_DRAIN_DURATION: '25000000h' }],
    ['fileFlushInterval', {}, { PROXY_CONFIG: '{fileFlushInterval: 1000h}' }],
    ['DNS_FORWARD_TIMEOUT', {}, { ISTIO_META_DNS_CAPTURE: 'true', DNS_FORWARD_TIMEOUT: '700h' }],
  ])('is rejected: %s', (name, flags, env) => {
    expect(resolved(flags, env)).toThrow(
      errorWith({
        code: 'FIELD_OUT_OF_RANGE',
        path: name,
        expected: 'at most 576h',
        got: expect.stringMatching(/ms"$/),
      }),
    );
  });

  test('is rejected, while the longest valid duration is accepted', () => {
    const max = '576h';
    const flags = { drainDuration: max, parentShutdownDuration: max, watchDelay: max };
    expect(resolved({ ...flags, terminationDrainDuration: max })).not.toThrow();
  });
});

describe('option value that Envoy would reject at each start', () => {
  test.each(['0s', '999us', '1ns', '-0s'])('is rejected: --connectTimeout %s', (connectTimeout) => {
    expect(resolved({ connectTimeout })).toThrow(
      errorWith({ code: 'FIELD_OUT_OF_RANGE', path: '--connectTimeout', expected: 'at least 1ms' }),
    );
  });

  test.each(['1ms', '1.5ms', '1s'])('is distinguished from the valid --connectTimeout %s', (connectTimeout) => {
    expect(resolved({ connectTimeout })).not.toThrow();
  });

  test('is ignored in ISTIO_CPU_LIMIT, and the number of processors is used', () => {
    const { concurrency: defaultConcurrency } = resolved({})() as ProxyOptions;
    for (const ISTIO_CPU_LIMIT of ['1025', '1e9', '0', '-1', '2.5', 'all']) {
      expect((resolved({}, { ISTIO_CPU_LIMIT })() as ProxyOptions).concurrency, ISTIO_CPU_LIMIT).toBe(
        defaultConcurrency,
      );
    }
    expect((resolved({}, { ISTIO_CPU_LIMIT: '1024' })() as ProxyOptions).concurrency).toBe(1024);
  });
});

describe('blank number', () => {
  test.each(['TERMINATION_DRAIN_DURATION_SECONDS', 'SECRET_GRACE_PERIOD_RATIO', 'SECRET_GRACE_PERIOD_RATIO_JITTER'])(
    'is rejected in %s instead of being read as 0',
    (variable) => {
      for (const blanks of [' ', '\n', '\t '])
        expect(resolved({}, { [variable]: blanks })).toThrow(
          errorWith({ path: variable, got: JSON.stringify(blanks) }),
        );
    },
  );
});

describe('port with two uses', () => {
  test.each<[string, string, ProxyFlags, NodeJS.ProcessEnv?]>([
    ['--statusPort, --proxyAdminPort', '15000', { statusPort: '15000' }],
    ['--statusPort, --spareAdminPort', '15020', { spareAdminPort: '15020' }],
    ['--proxyAdminPort, --spareAdminPort', '15000', { spareAdminPort: '15000' }],
    ['--statusPort, ENVOY_STATUS_PORT', '15021', { statusPort: '15021' }],
    ['--proxyAdminPort, ENVOY_PROMETHEUS_PORT', '15090', { proxyAdminPort: '15090' }],
    ['ENVOY_STATUS_PORT, ENVOY_PROMETHEUS_PORT', '15090', {}, { ENVOY_STATUS_PORT: '15090' }],
  ])('is rejected: %s', (path, gotText, flags, env) => {
    expect(resolved(flags, env)).toThrow(errorWith({ code: 'FIELD_CONFLICT', path, got: gotText }));
  });

  test('is accepted if one use is disabled or Envoy has other listeners', () => {
    expect(resolved({ statusPort: '0', spareAdminPort: '0' }, { ENVOY_STATUS_PORT: '15090' })).not.toThrow();
    expect(resolved({ statusPort: '15021', customConfigFile: import.meta.filename })).not.toThrow();
  });
});

describe('--customConfigFile', () => {
  test.each([
    ['a missing file', '/nowhere/envoy.yaml', 'a readable file'],
    ['a file below a file', `${import.meta.filename}/envoy.yaml`, 'a readable file'],
    ['a directory', '/tmp', 'a file'],
  ])('is rejected if it names %s', (_, customConfigFile, expected) => {
    const gotText = JSON.stringify(customConfigFile);
    expect(resolved({ customConfigFile })).toThrow(errorWith({ path: '--customConfigFile', expected, got: gotText }));
  });

  test('is reported together with other errors', () => {
    expect(resolved({ customConfigFile: '/nowhere', statusPort: '15000', watchDelay: 'soon' })).toThrow(
      errorWith(
        { path: '--watchDelay', got: '"soon"' },
        { path: '--statusPort, --proxyAdminPort' },
        { path: '--customConfigFile', got: '"/nowhere"' },
      ),
    );
  });
});

describe('ISTIO_BOOTSTRAP_OVERRIDE', () => {
  test.each([
    ['broken YAML', 'admin: [', 'YAML_INVALID'],
    ['no JSON object', '- 1', 'FIELD_TYPE_INVALID'],
    ['more bytes than an argument may have', `admin: {}\n# ${'x'.repeat(131_072)}`, 'FIELD_TOO_LARGE'],
    ['a NUL character', 'admin: "a\0b"', 'FIELD_NOT_ALLOWED'],
  ])('is rejected if it is %s', (_, content, code) => {
    const file = join(folder(), 'override.yaml');
    writeFileSync(file, content);
    expect(resolved({}, { ISTIO_BOOTSTRAP_OVERRIDE: file })).toThrow(
      errorWith({ code, path: `ISTIO_BOOTSTRAP_OVERRIDE: ${file}` }),
    );
  });

  test('is ignored with a warning if it cannot be read', () => {
    expect(resolved({}, { ISTIO_BOOTSTRAP_OVERRIDE: '/nowhere' })).not.toThrow();
  });
});
