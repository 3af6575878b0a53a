/** What Istio's agent reads and this one does not: people set it, and look for what it should have done. */
import type { ProxyConfig } from '../../model/mesh/proxy-config.ts';

const variables: ReadonlySet<string> = new Set([
  ...['ISTIO_BOOTSTRAP', 'DISABLE_ENVOY', 'ENVOY_SKIP_DEPRECATED_LOGS', 'ISTIO_ENVOY_ENABLE_CORE_DUMP'],
  ...['ISTIO_KUBE_APP_PROBERS', 'ISTIO_PROMETHEUS_ANNOTATIONS', 'ISTIO_ENABLE_HTTP2_PROBING'],
  ...['REWRITE_PROBE_LEGACY_LOCALHOST_DESTINATION', 'ENABLE_PROBE_KEEPALIVE_CONNECTIONS'],
  ...['ENVOY_SECURE_METRICS_PORT', 'ENVOY_SECURE_MERGED_METRICS_PORT'],
  'ISTIO_META_ENABLE_DNS_SERVER',
  ...['GRPC_XDS_BOOTSTRAP', 'BOOTSTRAP_XDS_AGENT'],
  ...['PROXY_XDS_DEBUG_VIA_AGENT', 'PROXY_XDS_DEBUG_VIA_AGENT_PORT', 'XDS_AUTH_PROVIDER'],
  ...['PKCS8_KEY', 'FILE_DEBOUNCE_DURATION'],
  ...['CREDENTIAL_FETCHER_TYPE', 'CREDENTIAL_IDENTITY_PROVIDER', 'CLOUD_PLATFORM'],
  ...['WASM_INSECURE_REGISTRIES', 'WASM_MODULE_EXPIRY', 'WASM_PURGE_INTERVAL'],
  ...['WASM_HTTP_REQUEST_TIMEOUT', 'WASM_HTTP_REQUEST_MAX_RETRIES'],
]);
/** Of the proxy configuration. What the control plane or the injector reads of it is not among them. */
const fields: readonly (keyof ProxyConfig)[] = [
  ...(['proxyBootstrapTemplatePath', 'statNameLength', 'availabilityZone', 'holdApplicationUntilProxyStarts'] as const),
  ...(['caCertificatesPem', 'sds', 'readinessProbe', 'privateKeyProvider'] as const),
];

/** What is set and has no effect here, in order: one line, or none. */
export function withoutEffect(env: NodeJS.ProcessEnv, said: Partial<ProxyConfig>): string[] {
  const names = Object.keys(env).filter((name) => env[name] && variables.has(name));
  const all = [...names.sort(), ...fields.filter((field) => said[field] !== undefined)];
  return all.length === 0 ? [] : [`what Istio's agent reads and this one does not is set: ${all.join(', ')}`];
}
