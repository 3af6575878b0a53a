/**
 * Every environment variable of both programs with wrong values: an error or a warning contains the name, the value and
 * the expected form.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { resolveProxyOptions } from '../agent/options/proxy-options.ts';
import { resolveDiscoveryOptions } from '../discovery/options/discovery-options.ts';
import { durationMsOf } from '../model/fields/duration.ts';
import type { LogWarning } from '../runtime/log-events/log-events.ts';
import { packageRoot } from '../runtime/package-root.ts';

type Kind = 'boolean' | 'integer' | 'seconds' | 'duration' | 'percent' | 'port' | 'address' | 'word';

const wrongValues: Readonly<Record<Kind, readonly string[]>> = {
  boolean: ['perhaps', '2', '-1'],
  seconds: ['many', '-1', '1e99'],
  integer: ['many', '-1', '2.5', '1e99'],
  duration: ['soon', '-1s', '5', '99999999h'],
  percent: ['half', '-1', '1e99'],
  port: ['http', '-1', '70000', '80.5'],
  address: ['here', '1.2.3', '-1'],
  word: ['perhaps', '-1'],
};

/** Variables that pilot-agent checks. */
const agentVariables: Readonly<Record<string, Kind>> = {
  BOOTSTRAP_XDS_AGENT: 'boolean',
  DISABLE_ENVOY: 'boolean',
  DNS_FORWARD_PARALLEL: 'boolean',
  DNS_FORWARD_TIMEOUT: 'duration',
  DNS_PROXY_ADDR: 'address',
  ECC_CURVE: 'word',
  ECC_SIGNATURE_ALGORITHM: 'word',
  ENABLE_PROBE_KEEPALIVE_CONNECTIONS: 'boolean',
  ENVOY_PROMETHEUS_PORT: 'port',
  ENVOY_SECURE_MERGED_METRICS_PORT: 'port',
  ENVOY_SECURE_METRICS_PORT: 'port',
  ENVOY_SKIP_DEPRECATED_LOGS: 'boolean',
  ENVOY_STATUS_PORT: 'port',
  EXIT_ON_ZERO_ACTIVE_CONNECTIONS: 'boolean',
  FILE_MOUNTED_CERTS: 'boolean',
  INSTANCE_IP: 'address',
  ISTIO_CPU_LIMIT: 'integer',
  ISTIO_DELTA_XDS: 'boolean',
  ISTIO_DUAL_STACK: 'boolean',
  ISTIO_ENABLE_HTTP2_PROBING: 'boolean',
  ISTIO_ENVOY_ENABLE_CORE_DUMP: 'boolean',
  ISTIO_KUBE_APP_PROBERS: 'word',
  ISTIO_META_DNS_CAPTURE: 'boolean',
  ISTIO_PROMETHEUS_ANNOTATIONS: 'word',
  JWT_POLICY: 'word',
  LIVE_RESTORE: 'boolean',
  METRICS_LOCALHOST_ACCESS_ONLY: 'boolean',
  MINIMUM_DRAIN_DURATION: 'duration',
  PILOT_CERT_PROVIDER: 'word',
  PROXY_CONFIG: 'word',
  PROXY_CONFIG_XDS_AGENT: 'boolean',
  REWRITE_PROBE_LEGACY_LOCALHOST_DESTINATION: 'boolean',
  SECRET_GRACE_PERIOD_RATIO: 'percent',
  SECRET_GRACE_PERIOD_RATIO_JITTER: 'percent',
  SECRET_TTL: 'duration',
  STANDARD_METRICS: 'boolean',
  STANDARD_METRICS_MAX_LABEL_SETS: 'integer',
  TERMINATION_DRAIN_DURATION_SECONDS: 'seconds',
  WORKLOAD_RSA_KEY_SIZE: 'integer',
};

/** Variables that accept any text, or whose value is checked on use. */
const notChecked: Readonly<Record<string, string>> = {
  CA_ADDR: 'any address',
  CA_PROVIDER: 'the log names an unsupported one as the reason for no certificate',
  CA_ROOT_CA: 'a file, read when a certificate is requested',
  CHARTPILOT_LAUNCHER: 'set by the launcher',
  CLOUD_PLATFORM: 'checked before its request (cloud-platform.test.ts)',
  DOCKER_CONFIG: 'a folder, read when an image is pulled',
  ENVOY_BINARY: 'Envoy is found when it is started',
  GRPC_XDS_BOOTSTRAP: 'a file, written when the agent starts',
  HOST_IP: 'any text: the address in templates',
  ISTIOD_SAN: 'any name',
  ISTIO_BOOTSTRAP: 'a file, read when Envoy is started',
  ISTIO_BOOTSTRAP_OVERRIDE: 'a file: proxy-options.test.ts',
  ISTIO_META_CERT_SIGNER: 'any name',
  ISTIO_META_CLUSTER_ID: 'any name',
  ISTIO_META_GENERATOR: 'any name',
  ISTIO_META_INTERCEPTION_MODE: 'any text: the metadata of the node',
  KUBERNETES_SERVICE_HOST: 'set by Kubernetes',
  KUBERNETES_SERVICE_PORT: 'set by Kubernetes',
  OUTPUT_CERTS: 'a directory, created when a certificate is written',
  PATH: 'set by the system',
  POD_NAME: 'any name',
  POD_NAMESPACE: 'any name',
  PROV_CERT: 'a directory, read when the agent connects',
  SERVICE_ACCOUNT: 'any name',
  TMPDIR: 'set by the system',
  TRUST_DOMAIN: 'any name',
  WORKLOAD_IDENTITY_SOCKET_FILE: 'any name',
  XDG_CACHE_HOME: 'set by the system',
  XDS_ROOT_CA: 'a file, read when the agent connects',
  WASM_INSECURE_REGISTRIES: 'any names of registries',
};

function sourcesIn(folder: string): string {
  const root = join(packageRoot(), folder);
  return readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
    .map((name) => readFileSync(join(root, name), 'utf8'))
    .join('\n');
}

function report(resolve: () => readonly LogWarning[]): string {
  try {
    return JSON.stringify(resolve());
  } catch (error) {
    return (error as Error).message;
  }
}

/** Returns what the report lacks. */
function missingIn(text: string, name: string, value: string): string[] {
  const messageParts: [string, boolean][] = [
    ['name', text.includes(name)],
    ['value', text.includes(value) || text.includes(`${durationMsOf(value)}ms`)],
    ['expected form', /must|expected|at most|one of|"max"|--help/.test(text)],
  ];
  return messageParts
    .filter(([, isThere]) => !isThere)
    .map(([missingPart]) => `${name}=${value}: no ${missingPart} in ${text.slice(0, 200)}`);
}

test('pilot-agent reports every invalid variable with its name, its value and the expected form', () => {
  const silentVariables: string[] = [];
  for (const [name, kind] of Object.entries(agentVariables)) {
    for (const value of wrongValues[kind]) {
      const env = { ISTIO_META_DNS_CAPTURE: 'true', [name]: value };
      const text = report(
        () => resolveProxyOptions({ role: 'sidecar', flags: {}, env, directory: '/nowhere' }).warnings,
      );
      silentVariables.push(...missingIn(text, name, value));
    }
  }
  expect(silentVariables).toEqual([]);
});

/** Method of `Environment` that reads a variable. */
const kindOf: Readonly<Record<string, Kind>> = {
  boolean: 'boolean',
  number: 'integer',
  durationMs: 'duration',
  timerMs: 'duration',
  percent: 'percent',
};

test('pilot-discovery reports every invalid variable with its name, its value and the expected form', () => {
  const reads = [...sourcesIn('src/discovery').matchAll(/environment\.(\w+)\(\s*'([A-Z][A-Z0-9_]+)'/g)];
  const walked = reads.flatMap(([, method = '', name = '']) =>
    kindOf[method] ? [{ name, kind: kindOf[method] }] : [],
  );
  expect(walked.length).toBeGreaterThan(50);
  const silentVariables: string[] = [];
  for (const { name, kind } of walked) {
    for (const value of wrongValues[kind]) {
      const text = report(() => resolveDiscoveryOptions({ registries: '' }, { [name]: value }).warnings);
      silentVariables.push(...missingIn(text, name, value));
    }
  }
  expect(silentVariables).toEqual([]);
});

test('the list of tested variables contains every variable that pilot-agent reads', () => {
  const text = sourcesIn('src/agent');
  const names = [...text.matchAll(/\benv\.([A-Z][A-Z0-9_]{2,})\b|switchOf\('([A-Z][A-Z0-9_]+)'/g)];
  const foundVariables = new Set(names.map(([, property, variable]) => property ?? variable ?? ''));
  expect([...foundVariables].filter((name) => !(name in agentVariables) && !(name in notChecked))).toEqual([]);
});
