/** Istio's agent reads these variables and chartpilot does not. A warning reports this, so that users expect no effect. */
import type { LogWarning } from '../../runtime/log-events/log-events.ts';

const variables: ReadonlySet<string> = new Set([
  'ISTIO_META_ENABLE_DNS_SERVER',
  ...['PROXY_XDS_DEBUG_VIA_AGENT', 'PROXY_XDS_DEBUG_VIA_AGENT_PORT', 'XDS_AUTH_PROVIDER'],
  ...['PKCS8_KEY', 'FILE_DEBOUNCE_DURATION'],
  ...['CREDENTIAL_FETCHER_TYPE', 'CREDENTIAL_IDENTITY_PROVIDER'],
  // Expired modules are removed when a module is stored.
  'WASM_PURGE_INTERVAL',
]);

export function ineffectiveOptionWarnings(env: NodeJS.ProcessEnv): LogWarning[] {
  const names = Object.keys(env).filter((name) => env[name] && variables.has(name));
  return names.length === 0 ? [] : [{ event: 'option.withoutEffect', settings: names.sort().join(', ') }];
}
