/** Who this proxy is, as it tells the control plane in Envoy's node (spec/agent.md §5.1). Pure. */
import { type ProxyConfig, proxyConfigToJson } from '../../model/mesh/proxy-config.ts';
import { messageOf } from '../../runtime/errors.ts';

export interface NodeFacts {
  readonly role: 'sidecar' | 'router';
  /** `name.namespace`. */
  readonly workloadId: string;
  readonly domain: string;
  readonly addresses: readonly string[];
  readonly config: ProxyConfig;
  readonly env: NodeJS.ProcessEnv;
  /** Of the pod, from the files of the downward API. */
  readonly podLabels: Readonly<Record<string, string>>;
  readonly podAnnotations: Readonly<Record<string, string>>;
  /** 0: no such listener. */
  readonly envoyStatusPort: number;
  readonly envoyPrometheusPort: number;
  readonly outlierLogPath?: string;
  /** Name that the control plane's certificate must have; absent without TLS. */
  readonly controlPlaneName?: string;
  /** Of the server of certificates; absent: this workload has none. */
  readonly secretSocket?: string;
}

/** Envoy's `node`, in the form of the bootstrap. */
export interface EnvoyNode {
  readonly id: string;
  readonly cluster: string;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly locality?: Readonly<Record<string, string>>;
}

/** The node, and what of the environment was left out because it could not be read. */
export function buildNode(facts: NodeFacts): { node: EnvoyNode; warnings: string[] } {
  const { values, labels, warnings } = collectFromEnvironment(facts);
  const { 'pod-template-hash': _, ...podLabels } = facts.podLabels;
  const allLabels = { ...labels, ...podLabels };
  const annotations = { ...asObject(values.ANNOTATIONS), ...facts.podAnnotations };
  const { interceptionMode, meshId } = facts.config;
  const typed: Record<string, unknown> = {
    // What a pod's own environment says of the proxy wins over what the mesh says of all.
    ...(interceptionMode !== undefined && { INTERCEPTION_MODE: interceptionMode }),
    ...(meshId !== undefined && { MESH_ID: meshId }),
    // Without a secret server in the bootstrap: a control plane that takes a version for a full agent's would send resources
    // that wait for certificates for ever. A user that adds one says so.
    ...(facts.secretSocket !== undefined && { WORKLOAD_CERTIFICATES: 'true' }),
    ...(facts.secretSocket === undefined && values.ISTIO_VERSION !== undefined && { WORKLOAD_CERTIFICATES: 'false' }),
    ...values,
    INSTANCE_IPS: [...new Set(facts.addresses)].join(','),
    ...optionMetadata(facts),
    ...environmentMetadata(facts.env),
    ...(labels !== undefined && { STATIC_LABELS: labels }),
    ...(Object.keys(allLabels).length > 0 && { LABELS: allLabels }),
    ...(Object.keys(annotations).length > 0 && { ANNOTATIONS: annotations }),
  };
  const locality = localityOf(allLabels['istio-locality']);
  return {
    node: {
      id: nodeIdOf(facts),
      cluster: serviceCluster(facts.config, typed, allLabels),
      metadata: typedFirst(typed),
      ...(locality !== undefined && { locality }),
    },
    warnings,
  };
}

/** What the control plane calls this proxy. */
export function nodeIdOf({
  role,
  addresses,
  workloadId,
  domain,
}: Pick<NodeFacts, 'role' | 'addresses' | 'workloadId' | 'domain'>): string {
  return [role, addresses[0], workloadId, domain].join('~');
}

/** Keys that the control plane knows; they come first. */
const typedKeys = [
  ...['PROXY_CONFIG', 'ISTIO_VERSION', 'ISTIO_REVISION', 'LABELS', 'STATIC_LABELS', 'ANNOTATIONS', 'INSTANCE_IPS'],
  ...['NAMESPACE', 'WORKLOAD_NAME', 'INTERCEPTION_MODE', 'SERVICE_ACCOUNT', 'HTTP_PROXY_PORT', 'MESH_ID'],
  ...['CLUSTER_ID', 'NETWORK', 'REQUESTED_NETWORK_VIEW', 'POD_PORTS', 'DNS_CAPTURE', 'DNS_AUTO_ALLOCATE'],
  ...['ENVOY_STATUS_PORT', 'ENVOY_PROMETHEUS_PORT', 'EXIT_ON_ZERO_ACTIVE_CONNECTIONS', 'NAME', 'OWNER', 'PILOT_SAN'],
  ...['OUTLIER_LOG_PATH', 'APP_CONTAINERS'],
];

function typedFirst(metadata: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const known = typedKeys.filter((key) => metadata[key] !== undefined);
  const others = Object.keys(metadata).filter((key) => !typedKeys.includes(key));
  return Object.fromEntries([...known, ...others].map((key) => [key, metadata[key]]));
}

const metaPrefix = 'ISTIO_META_';
const jsonPrefix = 'ISTIO_METAJSON_';

/** The rows of the table in their order: proxyMetadata, `ISTIO_META_*`, `ISTIO_METAJSON_*`. */
function collectFromEnvironment({ config, env }: NodeFacts): {
  values: Record<string, unknown>;
  labels: Record<string, string> | undefined;
  warnings: string[];
} {
  const values = new Map<string, unknown>();
  const warnings: string[] = [];
  let labels: Record<string, string> | undefined;
  for (const variables of [config.proxyMetadata, env]) {
    for (const [name, value] of Object.entries(variables)) {
      if (name.startsWith(metaPrefix)) values.set(name.slice(metaPrefix.length), value);
    }
  }
  for (const [name, value] of Object.entries(env)) {
    if (!name.startsWith(jsonPrefix) || value === undefined) continue;
    const object = parseObject(value);
    if (typeof object === 'string') warnings.push(`${name} is left out: ${object}`);
    else if (name === `${jsonPrefix}LABELS`) labels = object as Record<string, string>;
    else for (const [key, element] of Object.entries(object)) values.set(key, element);
  }
  return { values: Object.fromEntries(values), labels, warnings };
}

function parseObject(text: string): Record<string, unknown> | string {
  try {
    const value: unknown = JSON.parse(text);
    return asObject(value) ?? 'it is JSON, but no object';
  } catch (error) {
    return messageOf(error);
  }
}

function asObject(value: unknown): Record<string, unknown> | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : undefined;
}

function optionMetadata(facts: NodeFacts): Record<string, unknown> {
  return {
    ...(facts.envoyStatusPort !== 0 && { ENVOY_STATUS_PORT: facts.envoyStatusPort }),
    ...(facts.envoyPrometheusPort !== 0 && { ENVOY_PROMETHEUS_PORT: facts.envoyPrometheusPort }),
    EXIT_ON_ZERO_ACTIVE_CONNECTIONS: String(facts.env.EXIT_ON_ZERO_ACTIVE_CONNECTIONS === 'true'),
    ...(facts.controlPlaneName !== undefined && { PILOT_SAN: [facts.controlPlaneName] }),
    ...(facts.outlierLogPath !== undefined && { OUTLIER_LOG_PATH: facts.outlierLogPath }),
    PROXY_CONFIG: proxyConfigToJson(facts.config),
  };
}

function environmentMetadata(env: NodeJS.ProcessEnv): Record<string, string> {
  return {
    ...(env.POD_NAME && { NAME: env.POD_NAME }),
    ...(env.POD_NAMESPACE && { NAMESPACE: env.POD_NAMESPACE }),
    ...(env.SERVICE_ACCOUNT && { SERVICE_ACCOUNT: env.SERVICE_ACCOUNT }),
  };
}

function serviceCluster(
  config: ProxyConfig,
  metadata: Readonly<Record<string, unknown>>,
  labels: Readonly<Record<string, string>>,
): string {
  const namespace = metadata.NAMESPACE as string | undefined;
  const workload = metadata.WORKLOAD_NAME as string | undefined;
  const withNamespace = (name: string): string => (namespace === undefined ? name : `${name}.${namespace}`);
  const canonical = labels['service.istio.io/canonical-name'] ?? workload ?? 'istio-proxy';
  if (config.tracingServiceName === 'CANONICAL_NAME_ONLY') return canonical;
  if (config.tracingServiceName === 'CANONICAL_NAME_AND_NAMESPACE') return withNamespace(canonical);
  const explicit = config.serviceCluster;
  if (explicit !== '' && explicit !== 'istio-proxy') return explicit;
  return withNamespace(labels.app ?? workload ?? 'istio-proxy');
}

/** `/` separates; a label cannot hold it, so a value without it uses dots. */
function localityOf(label: string | undefined): Record<string, string> | undefined {
  if (label === undefined || label === '') return undefined;
  const [region, zone, subZone] = label.split(label.includes('/') ? '/' : '.');
  return { ...(region && { region }), ...(zone && { zone }), ...(subZone && { sub_zone: subZone }) };
}
