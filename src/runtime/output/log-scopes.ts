/** Names of the parts of a program whose log levels can be set (`--log_output_level SCOPE:LEVEL`). */

/** `default` and `all` stand for several scopes. */
const logScopes: readonly string[] = [
  ...['default', 'all', 'bootstrap', 'debugger', 'envoy', 'secrets'],
  // pilot-agent
  ...['agent', 'cert-watcher', 'metrics', 'probe', 'status', 'xds'],
  // pilot-discovery
  ...[
    'ads',
    'authority',
    'cluster',
    'config-controller',
    'config-server',
    'config-source',
    'consul',
    'consul-catalog',
    'discovery',
    'discovery/ads-server',
    'discovery/http',
    'elections',
    'http',
  ],
  ...['gateway-name', 'gateway-names', 'jwks', 'key-set', 'leader', 'mesh-config', 'mesh-networks', 'push', 'registry'],
  ...['name-server', 'server-certificate', 'service-registry', 'shared-authority', 'trust-bundle'],
  ...['webhook-server', 'webhooks'],
];

/** The scope of an actor: actors of one kind, such as `key-set-1` and `key-set-2`, share one. */
export function scopeOfActor(name: string): string {
  return name.replaceAll(/-\d+(?=$|\/)/g, '');
}

/** @returns those that do not exist, each once */
export function unknownScopes(scopes: Iterable<string>): string[] {
  return [...new Set(scopes)].filter((scope) => !logScopes.includes(scope));
}

/** All scopes, sorted, for a message. */
export const scopesInWords = (): string => [...logScopes].sort().join(', ');
