/** Fields that are used although they do not affect proxies, with the reason and the reading code. */

export interface Unobserved {
  /** Matches `Kind path`, as the test reports it. */
  readonly field: RegExp;
  readonly reason: string;
  /**
   * Evidence that the test checks: a file and the text that reads the field, or that all other values are rejected. If
   * absent, no value has an effect.
   */
  readonly readBy?: readonly [file: string, text: string] | 'others are rejected';
}

export const unobservedFields: readonly Unobserved[] = [
  {
    field: /^TrafficExtension (selector|targetRefs\[\]\.(?!namespace)|phase|priority|match|wasm|lua)/,
    reason: 'the object is validated and not applied: a warning names its wasm or lua',
  },
  { field: /^Gateway servers\[\]\.name$/, reason: 'names the server for users; names must be unique' },
  { field: /^Sidecar (ingress|egress)\[\]\.port\.name$/, reason: 'names the port for users' },
  {
    field: /^Sidecar ingress\[\]\.tls\.httpsRedirect$/,
    reason: 'true is refused, false is what happens anyway',
    readBy: 'others are rejected',
  },
  {
    field: /^MeshConfig certificates\[\]\./,
    reason: 'the leader writes the Secrets',
    readBy: ['src/discovery/controllers/duties.ts', 'mesh().certificates'],
  },
  {
    field: /^(HTTPRoute|GRPCRoute) .*filters\[\]\.(\w+\.path\.)?type$/,
    reason: 'a discriminator for another field; another value is rejected',
    readBy: 'others are rejected',
  },
  {
    field: /^BackendTLSPolicy validation\.subjectAltNames\[\]\.type$/,
    reason: 'a discriminator for another field; another value is rejected',
    readBy: 'others are rejected',
  },
  { field: /^(TCPRoute|TLSRoute) rules\[\]\.name$/, reason: 'names the rule for users' },
  {
    field: /^KubernetesGateway infrastructure/,
    reason: 'the elected replica builds the Deployment and Service of the Gateway from it',
    readBy: ['src/injection/gateway/gateway-deployment.ts', 'infrastructure.labels'],
  },
  {
    field: /^MeshConfig enablePrometheusMerge$/,
    reason: 'sidecar injection reads it',
    readBy: ['src/injection/inject.ts', 'mesh.enablePrometheusMerge'],
  },
  {
    field: /^MeshConfig defaultConfig\.holdApplicationUntilProxyStarts$/,
    reason: 'sidecar injection reads it',
    readBy: ['src/injection/inject.ts', 'proxyConfig.holdApplicationUntilProxyStarts'],
  },
  {
    field: /^MeshConfig defaultConfig\.image$/,
    reason: 'sidecar injection reads it',
    readBy: ['src/injection/template/template-input.ts', 'proxyConfig.image'],
  },
  {
    field: /^ProxyConfig (selector|concurrency|environmentVariables|image)/,
    reason: 'sidecar injection merges the objects of a pod',
    readBy: ['src/discovery/webhooks/make-webhooks.ts', 'objects().ProxyConfig'],
  },
  {
    field: /^Telemetry metrics\[\]\.overrides\[\]\.tagOverrides\{\}\.operation$/,
    reason: 'UPSERT has a value and REMOVE has none: with the other operation the object is refused',
    readBy: 'others are rejected',
  },
  { field: /^GatewayClass description$/, reason: 'describes the class for users' },
];
