/** Fields that are used although no proxy is given anything else for them: why, and what reads them. */

export interface Unobserved {
  /** `Kind path`, as the test reports it. */
  readonly field: RegExp;
  readonly reason: string;
  /** A file, and the text by which it reads the field; absent: nothing is expected of the field. */
  readonly readBy?: readonly [file: string, text: string];
}

export const unobserved: readonly Unobserved[] = [
  { field: /^Gateway servers\[\]\.name$/, reason: 'names the server for people; names must be unique' },
  { field: /^Sidecar (ingress|egress)\[\]\.port\.name$/, reason: 'names the port for people' },
  {
    field: /^Sidecar ingress\[\]\.tls\.httpsRedirect$/,
    reason: 'true is refused, false is what happens anyway',
    readBy: ['src/model/kinds/sidecar.decode.ts', 'tls?.httpsRedirect === true'],
  },
  {
    field: /^MeshConfig caCertificates\[\]\./,
    reason: 'roots are distributed to agents',
    readBy: [
      'src/discovery/authority/mesh-roots.ts',
      'mesh.caCertificates.forEach(({ pem, spiffeBundleUrl, trustDomains }',
    ],
  },
  {
    field: /^MeshConfig certificates\[\]\./,
    reason: 'the leader writes the Secrets',
    readBy: ['src/discovery/leader/duties.ts', 'mesh().certificates'],
  },
  {
    field: /^MeshConfig configSources\[\]\.address$/,
    reason: 'says where the control plane reads objects',
    readBy: ['src/discovery/config/config-sources.ts', 'address'],
  },
  {
    field: /^MeshConfig serviceSettings\[\]\./,
    reason: 'differs only where there are several clusters',
    readBy: ['src/model/mesh/cluster-local-hosts.ts', 'said?.clusterLocal'],
  },
  {
    field: /^MeshConfig extensionProviders\[\]\.prometheus$/,
    reason: 'has no fields, and a provider without a type is left out',
    readBy: ['src/networking/telemetry/metrics-in-force.ts', "'prometheus'"],
  },
  {
    field: /^MeshConfig defaultConfig\.binaryPath$/,
    reason: 'the agent looks for its Envoy there',
    readBy: ['src/agent/envoy/envoy-binary.ts', 'binaryPath'],
  },
  {
    field: /^MeshConfig defaultConfig\.customConfigFile$/,
    reason: 'the file is read instead of a bootstrap that is generated',
    readBy: ['src/agent/bootstrap/preparation.ts', 'customConfigFile'],
  },
  {
    field: /^MeshConfig defaultConfig\.proxyBootstrapTemplatePath$/,
    reason: 'a file is read',
    readBy: ['src/agent/options/bootstrap-template.ts', 'proxyBootstrapTemplatePath'],
  },
  {
    field: /^MeshConfig defaultConfig\.terminationDrainDuration$/,
    reason: 'says how long an agent that ends waits',
    readBy: ['src/agent/agent-program.ts', 'config.terminationDrainDurationMs'],
  },
  {
    field: /^MeshConfig defaultConfig\.discoveryAddress$/,
    reason: 'the agent connects there',
    readBy: ['src/agent/xds/upstream.ts', 'parseHostAndPort(discoveryAddress)'],
  },
  {
    field: /^(HTTPRoute|GRPCRoute) .*(filters\[\]|path)\.type$/,
    reason: 'says which field is beside it, and another value is refused',
    readBy: ['src/model/kinds/gateway-api/http-route-filter.decode.ts', 'type === one.type'],
  },
  {
    field: /^BackendTLSPolicy validation\.subjectAltNames\[\]\.type$/,
    reason: 'says which field is beside it, and another value is refused',
    readBy: ['src/model/kinds/gateway-api/backend-tls-policy.ts', "type === 'Hostname'"],
  },
  { field: /^(TCPRoute|TLSRoute) rules\[\]\.name$/, reason: 'names the rule for people' },
  { field: /^GatewayClass description$/, reason: 'describes the class for people' },
];
