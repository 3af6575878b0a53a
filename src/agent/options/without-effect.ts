/** Variables that Istio's agent reads and this one does not: people set them, and look for what they should have done. */
const variables: ReadonlySet<string> = new Set([
  'ISTIO_META_ENABLE_DNS_SERVER',
  'GRPC_XDS_BOOTSTRAP',
  ...['PROXY_XDS_DEBUG_VIA_AGENT', 'PROXY_XDS_DEBUG_VIA_AGENT_PORT', 'XDS_AUTH_PROVIDER'],
  ...['PKCS8_KEY', 'FILE_DEBOUNCE_DURATION'],
  ...['CREDENTIAL_FETCHER_TYPE', 'CREDENTIAL_IDENTITY_PROVIDER'],
  ...['WASM_INSECURE_REGISTRIES', 'WASM_MODULE_EXPIRY', 'WASM_PURGE_INTERVAL'],
  ...['WASM_HTTP_REQUEST_TIMEOUT', 'WASM_HTTP_REQUEST_MAX_RETRIES'],
]);

/** What is set and has no effect here, in order: one line, or none. */
export function withoutEffect(env: NodeJS.ProcessEnv): string[] {
  const names = Object.keys(env).filter((name) => env[name] && variables.has(name));
  return names.length === 0
    ? []
    : [`what Istio's agent reads and this one does not is set: ${names.sort().join(', ')}`];
}
