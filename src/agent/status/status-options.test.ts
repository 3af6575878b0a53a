import { expect, test } from 'vitest';
import { detailsOf } from '../../../test/fixtures/error-details.ts';
import type { LogWarning } from '../../runtime/log-events/log-events.ts';
import { OptionErrors } from '../../runtime/option-errors.ts';
import { type StatusSources, statusOptions } from './status-options.ts';

function optionsOf(env: NodeJS.ProcessEnv, overrides: Partial<StatusSources> = {}) {
  const errors = new OptionErrors();
  const warnings: LogWarning[] = [];
  const options = statusOptions({
    role: 'sidecar',
    profiling: undefined,
    env,
    address: '10.1.2.3',
    localhost: '127.0.0.1',
    statusPort: 15020,
    errors,
    warnings,
    ...overrides,
  });
  return { options, warnings, errors: detailsOf(() => errors.throwIfAny()) };
}

test("sends probes to the pod's first address, from an address without iptables redirection (agent §6.6)", () => {
  expect(optionsOf({}).options).toMatchObject({ destination: '10.1.2.3', source: '127.0.0.6', http2Probes: true });
  const six = { address: 'fd00::1' };
  expect(optionsOf({}, { ...six, hasAddress: (one) => one === '::6' }).options).toMatchObject({
    destination: 'fd00::1',
    source: '::6',
  });
  expect(optionsOf({}, { ...six, hasAddress: () => false }).options.source).toBeUndefined();
});

test('sends probes to localhost if REWRITE_PROBE_LEGACY_LOCALHOST_DESTINATION is set (agent §1.3)', () => {
  const env = { REWRITE_PROBE_LEGACY_LOCALHOST_DESTINATION: 'true' };
  expect(optionsOf(env).options).toMatchObject({ destination: '127.0.0.1', source: undefined });
  expect(optionsOf(env, { localhost: '::1' }).options).toMatchObject({ destination: '::1', source: undefined });
});

test('accepts only booleans for switches, and reports other values (agent §1.3)', () => {
  expect(optionsOf({ ISTIO_ENABLE_HTTP2_PROBING: 'false' }).options.http2Probes).toBe(false);
  expect(optionsOf({ ENABLE_PROBE_KEEPALIVE_CONNECTIONS: '1' }).options.keepsProbeConnections).toBe(true);
  expect(optionsOf({ ENABLE_PROBE_KEEPALIVE_CONNECTIONS: 'yes' }).errors).toEqual([
    {
      ...{ code: 'FIELD_VALUE_UNKNOWN', path: 'ENABLE_PROBE_KEEPALIVE_CONNECTIONS' },
      ...{ expected: 'one of true, false', got: '"yes"' },
    },
  ]);
});

test('rejects invalid probes with the name of the variable (agent §6.6)', () => {
  expect(optionsOf({ ISTIO_KUBE_APP_PROBERS: '' }).options.probes.size).toBe(0);
  expect(optionsOf({ ISTIO_KUBE_APP_PROBERS: '{' }).errors).toMatchObject([
    { path: 'ISTIO_KUBE_APP_PROBERS', got: '"{"' },
  ]);
  expect(optionsOf({ ISTIO_KUBE_APP_PROBERS: '{"/x":{}}' }).errors).toMatchObject([
    { path: 'ISTIO_KUBE_APP_PROBERS', got: '"/x"' },
  ]);
});

test('warns that probes have no effect if there is no status port', () => {
  const env = { ISTIO_KUBE_APP_PROBERS: '{"/app-health/web/livez":{"tcpSocket":{"port":80}}}' };
  expect(optionsOf(env).warnings).toEqual([]);
  expect(optionsOf(env, { statusPort: 0 }).warnings).toMatchObject([
    { event: 'option.ignored', setting: 'ISTIO_KUBE_APP_PROBERS' },
  ]);
});
