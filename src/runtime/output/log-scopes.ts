/** The scopes whose log levels can be set (`--log_output_level SCOPE:LEVEL`, `/scopej`). */

type Program = 'pilot-agent' | 'pilot-discovery';

interface LogScope {
  /** Subject of its lines, for the help text. */
  readonly about: string;
  readonly program?: Program;
}

const agent = 'pilot-agent';
const discovery = 'pilot-discovery';

const logScopes: Readonly<Record<string, LogScope>> = {
  default: { about: 'start, stop and everything without a scope of its own' },
  bootstrap: { about: "patches of Envoy's bootstrap", program: agent },
  debugger: { about: 'traces and connections of the debugger' },
  envoy: { about: 'output of Envoy', program: agent },
  secrets: { about: 'certificates and secrets', program: agent },
  agent: { about: 'state changes of the agent', program: agent },
  'cert-watcher': { about: 'certificate files', program: agent },
  metrics: { about: 'metrics of the application and of Envoy', program: agent },
  probe: { about: 'probes of the application', program: agent },
  status: { about: 'status port; in pilot-discovery, statuses that are written to objects' },
  xds: { about: 'xDS streams to the control plane', program: agent },
  ads: { about: 'xDS streams of proxies: requests, responses, rejections', program: discovery },
  authority: { about: 'certificate authority', program: discovery },
  cluster: { about: 'API servers: lists, watches, writes', program: discovery },
  'config-controller': { about: 'configuration: changes and errors', program: discovery },
  'config-server': { about: 'configuration that is served over xDS', program: discovery },
  'config-source': { about: 'sources of configuration over xDS', program: discovery },
  consul: { about: 'Consul', program: discovery },
  'consul-catalog': { about: 'catalogs of Consul', program: discovery },
  discovery: { about: 'state changes of the control plane', program: discovery },
  'discovery/ads-server': { about: 'server of xDS streams', program: discovery },
  'discovery/http': { about: 'HTTP ports', program: discovery },
  elections: { about: 'leader elections and what the leader writes', program: discovery },
  http: { about: 'failed requests at HTTP ports', program: discovery },
  'gateway-name': { about: 'DNS name of one gateway', program: discovery },
  'gateway-names': { about: 'DNS names of gateways', program: discovery },
  jwks: { about: 'keys that verify JWTs', program: discovery },
  'key-set': { about: 'one set of keys that verify JWTs', program: discovery },
  leader: { about: 'one leader election', program: discovery },
  'mesh-config': { about: 'MeshConfig', program: discovery },
  'mesh-networks': { about: 'MeshNetworks', program: discovery },
  push: { about: 'pushes: causes and durations', program: discovery },
  registry: { about: 'one registry of services', program: discovery },
  'name-server': { about: 'DNS over TLS for the mesh', program: discovery },
  'server-certificate': { about: 'certificate of the TLS ports', program: discovery },
  'service-registry': { about: 'services of all registries', program: discovery },
  'shared-authority': { about: 'authority that replicas share', program: discovery },
  'trust-bundle': { about: 'roots of other trust domains', program: discovery },
  'webhook-server': { about: 'HTTPS port of the webhooks', program: discovery },
  webhooks: { about: 'injection and validation', program: discovery },
};

export const allScopes = 'all';

export function scopesOf(program: Program): [name: string, about: string][] {
  return Object.entries(logScopes)
    .filter(([, scope]) => scope.program === undefined || scope.program === program)
    .map(([name, { about }]): [string, string] => [name, about])
    .sort(([name], [other]) => (name < other ? -1 : 1));
}

/** Actors such as `key-set-1` and `key-set-2` share one scope. */
export function scopeOfActor(name: string): string {
  return name.replaceAll(/-\d+(?=$|\/)/g, '');
}

export function unknownScopes(scopes: Iterable<string>): string[] {
  return [...new Set(scopes)].filter((scope) => scope !== allScopes && !Object.hasOwn(logScopes, scope));
}

export const describeScopes = (): string => [allScopes, ...Object.keys(logScopes)].sort().join(', ');
