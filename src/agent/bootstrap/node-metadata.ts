import { isSwitchOn } from '../../model/fields/switches.ts';
import { describeFieldErrors, type ProxyConfig, proxyConfigToJson } from '../../model/mesh/proxy-config.ts';
import { unwritableParts } from '../../model/mesh/proxy-messages.ts';
import { messageOf } from '../../runtime/errors.ts';
import type { LogWarning } from '../../runtime/log-events/log-events.ts';

export interface NodeFacts {
  readonly role: 'sidecar' | 'router';
  /** `name.namespace`. */
  readonly workloadId: string;
  readonly domain: string;
  readonly addresses: readonly string[];
  readonly config: ProxyConfig;
  readonly env: NodeJS.ProcessEnv;
  readonly podLabels: Readonly<Record<string, string>>;
  readonly podAnnotations: Readonly<Record<string, string>>;
  readonly envoyStatusPort: number;
  readonly envoyPrometheusPort: number;
  readonly outlierLogPath?: string;
  /** Required SAN of the control plane's certificate; absent for plaintext. */
  readonly controlPlaneName?: string;
  readonly hasSecrets: boolean;
  readonly accessLogSocket?: string;
  readonly agentVersion: string;
  readonly nodeId: string | undefined;
  readonly stsPort: number;
  /** Overrides {@link controlPlaneName}. */
  readonly pilotSans: readonly string[] | undefined;
  readonly platformMetadata: Readonly<Record<string, string>> | undefined;
  readonly hasCredentialServer: boolean;
}

export interface EnvoyNode {
  readonly id: string;
  readonly cluster: string;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly locality?: Readonly<Record<string, string>>;
}

/** Also returns warnings for invalid environment settings, which are omitted. */
export function buildNode(facts: NodeFacts): { node: EnvoyNode; warnings: LogWarning[] } {
  const { labels, warnings, ...collected } = collectFromEnvironment(facts);
  // The control plane decodes these keys as maps.
  const values = Object.fromEntries(
    Object.entries(collected.values).filter(([key, value]) => !mapKeys.has(key) || asObject(value) !== undefined),
  );
  const { 'pod-template-hash': _, ...podLabels } = facts.podLabels;
  const allLabels = { ...labels, ...podLabels };
  const annotations = { ...asObject(values.ANNOTATIONS), ...facts.podAnnotations };
  const { interceptionMode, meshId } = facts.config;
  const typedMetadata: Record<string, unknown> = {
    // Copy the labels, as for every JSON variable, except keys that the control plane interprets.
    ...Object.fromEntries(Object.entries(labels ?? {}).filter(([key]) => !typedMetadataKeys.includes(key))),
    // Overridden by the pod's environment (`values`).
    ...(interceptionMode !== undefined && { INTERCEPTION_MODE: interceptionMode }),
    ...(meshId !== undefined && { MESH_ID: meshId }),
    // The control plane reports this version (pilot_xds, /debug/syncz), and matches it with proxyVersion of EnvoyFilters.
    ISTIO_VERSION: facts.agentVersion,
    // From ISTIO_VERSION, the control plane infers that the agent serves certificates. If the agent does not and this key is missing, Envoy waits for
    // them without limit.
    WORKLOAD_CERTIFICATES: String(facts.hasSecrets),
    ...(facts.hasSecrets && { REVOCATION_LISTS: 'true' }),
    // The control plane sends URLs of Wasm modules only to proxies whose agent fetches them.
    WASM_FETCH: 'true',
    ...(facts.accessLogSocket !== undefined && { STANDARD_METRICS: 'true' }),
    ...values,
    INSTANCE_IPS: [...new Set(facts.addresses)].join(','),
    ...optionMetadata(facts),
    ...environmentMetadata(facts.env),
    ...(facts.hasCredentialServer && { credential: 'true' }),
    ...(labels !== undefined && { STATIC_LABELS: labels }),
    ...(Object.keys(allLabels).length > 0 && { LABELS: allLabels }),
    ...(Object.keys(annotations).length > 0 && { ANNOTATIONS: annotations }),
  };
  const locality = localityOf(allLabels['istio-locality']) ?? platformLocality(facts.platformMetadata);
  return {
    node: {
      id: nodeIdOf(facts),
      cluster: serviceCluster(facts.config, typedMetadata, allLabels),
      metadata: withTypedKeysFirst(typedMetadata),
      ...(locality !== undefined && { locality }),
    },
    warnings,
  };
}

const mapKeys: ReadonlySet<string> = new Set([
  'LABELS',
  'STATIC_LABELS',
  'ANNOTATIONS',
  'PLATFORM_METADATA',
  'PROXY_CONFIG',
]);

export function nodeIdOf({
  role,
  addresses,
  workloadId,
  domain,
  nodeId,
}: Pick<NodeFacts, 'role' | 'addresses' | 'workloadId' | 'domain' | 'nodeId'>): string {
  return nodeId ?? [role, addresses[0], workloadId, domain].join('~');
}

/** Keys that the control plane knows, in output order. */
export const typedMetadataKeys = [
  ...['PROXY_CONFIG', 'ISTIO_VERSION', 'ISTIO_REVISION', 'LABELS', 'STATIC_LABELS', 'ANNOTATIONS', 'INSTANCE_IPS'],
  ...['NAMESPACE', 'WORKLOAD_NAME', 'INTERCEPTION_MODE', 'SERVICE_ACCOUNT', 'HTTP_PROXY_PORT', 'MESH_ID'],
  ...['CLUSTER_ID', 'NETWORK', 'REQUESTED_NETWORK_VIEW', 'POD_PORTS'],
  ...['TLS_SERVER_CERT_CHAIN', 'TLS_SERVER_KEY', 'TLS_SERVER_ROOT_CERT'],
  ...['TLS_CLIENT_CERT_CHAIN', 'TLS_CLIENT_KEY', 'TLS_CLIENT_ROOT_CERT'],
  ...['BASE', 'IDLE_TIMEOUT', 'HTTP10', 'GENERATOR', 'DNS_CAPTURE', 'DNS_AUTO_ALLOCATE', 'ENABLE_HBONE'],
  ...['AUTO_REGISTER_GROUP', 'UNPRIVILEGED_POD', 'PLATFORM_METADATA', 'STS_PORT', 'ENVOY_STATUS_PORT'],
  ...['ENVOY_PROMETHEUS_PORT', 'EXIT_ON_ZERO_ACTIVE_CONNECTIONS', 'INBOUND_LISTENER_EXACT_BALANCE'],
  ...['OUTBOUND_LISTENER_EXACT_BALANCE', 'CLOUDRUN_ADDR', 'NAME', 'OWNER', 'PILOT_SAN', 'OUTLIER_LOG_PATH'],
  ...['APP_CONTAINERS', 'ISTIO_PROXY_SHA'],
];

function withTypedKeysFirst(metadata: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const presentKeys = typedMetadataKeys.filter((key) => metadata[key] !== undefined);
  const otherKeys = Object.keys(metadata).filter((key) => !typedMetadataKeys.includes(key));
  return Object.fromEntries([...presentKeys, ...otherKeys].map((key) => [key, metadata[key]]));
}

const metaPrefix = 'ISTIO_META_';
const jsonPrefix = 'ISTIO_METAJSON_';

/** Merges proxyMetadata, `ISTIO_META_*` and `ISTIO_METAJSON_*`, in this order. */
function collectFromEnvironment({ config, env }: NodeFacts): {
  values: Record<string, unknown>;
  labels: Record<string, string> | undefined;
  warnings: LogWarning[];
} {
  const values = new Map<string, unknown>();
  const warnings: LogWarning[] = [];
  let labels: Record<string, string> | undefined;
  for (const variables of [config.proxyMetadata, env]) {
    for (const [name, value] of Object.entries(variables)) {
      if (name.startsWith(metaPrefix)) values.set(name.slice(metaPrefix.length), value);
    }
  }
  for (const [name, value] of Object.entries(env)) {
    if (!name.startsWith(jsonPrefix) || value === undefined) continue;
    const isLabels = name === `${jsonPrefix}LABELS`;
    const object = parseObject(value, isLabels);
    if (typeof object === 'string') {
      warnings.push({ event: 'option.ignored', setting: name, reason: object });
    } else if (isLabels) labels = object as Record<string, string>;
    else for (const [key, element] of Object.entries(object)) values.set(key, element);
  }
  return { values: Object.fromEntries(values), labels, warnings };
}

function parseObject(text: string, requiresStrings: boolean): Record<string, unknown> | string {
  try {
    const value = asObject(JSON.parse(text));
    if (value === undefined) return 'must be a JSON object';
    const [firstError] = unwritableParts(value, '');
    if (firstError !== undefined) return describeFieldErrors([firstError]);
    const invalidEntry = requiresStrings && Object.entries(value).find(([, element]) => typeof element !== 'string');
    return invalidEntry ? `${JSON.stringify(invalidEntry[0])} must be a string` : value;
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
  const { pilotSans, controlPlaneName, platformMetadata } = facts;
  const sans = pilotSans ?? (controlPlaneName === undefined ? undefined : [controlPlaneName]);
  return {
    ...(facts.stsPort !== 0 && { STS_PORT: String(facts.stsPort) }),
    ...(facts.envoyStatusPort !== 0 && { ENVOY_STATUS_PORT: facts.envoyStatusPort }),
    ...(facts.envoyPrometheusPort !== 0 && { ENVOY_PROMETHEUS_PORT: facts.envoyPrometheusPort }),
    ...(isSwitchOn(facts.env.EXIT_ON_ZERO_ACTIVE_CONNECTIONS) && { EXIT_ON_ZERO_ACTIVE_CONNECTIONS: 'true' }),
    ...(sans !== undefined && { PILOT_SAN: sans }),
    ...(platformMetadata !== undefined &&
      Object.keys(platformMetadata).length > 0 && { PLATFORM_METADATA: platformMetadata }),
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

const canonicalNameLabels = ['service.istio.io/canonical-name', 'app.kubernetes.io/name', 'app'];

function serviceCluster(
  config: ProxyConfig,
  metadata: Readonly<Record<string, unknown>>,
  labels: Readonly<Record<string, string>>,
): string {
  const namespace = textOrNone(metadata.NAMESPACE);
  const workload = textOrNone(metadata.WORKLOAD_NAME);
  const withNamespace = (name: string): string => (namespace === undefined ? name : `${name}.${namespace}`);
  const canonicalName = canonicalNameLabels.map((label) => labels[label]).find(Boolean) ?? workload ?? 'istio-proxy';
  if (config.tracingServiceName === 'CANONICAL_NAME_ONLY') return canonicalName;
  if (config.tracingServiceName === 'CANONICAL_NAME_AND_NAMESPACE') return withNamespace(canonicalName);
  const configuredCluster = config.serviceCluster;
  if (configuredCluster !== undefined && configuredCluster !== '' && configuredCluster !== 'istio-proxy')
    return configuredCluster;
  return withNamespace(labels.app || (workload ?? 'istio-proxy'));
}

/** Empty means unset: Envoy does not start without a cluster name. */
function textOrNone(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** Separated by `/`, or by dots in a label value, which cannot contain `/`. */
function localityOf(label: string | undefined): Record<string, string> | undefined {
  if (label === undefined || label === '') return undefined;
  const [region, zone, subZone] = label.split(label.includes('/') ? '/' : '.');
  return { ...(region && { region }), ...(zone && { zone }), ...(subZone && { sub_zone: subZone }) };
}

/** A GCP zone is a region with a suffix letter. */
function platformLocality(platform: Readonly<Record<string, string>> = {}): Record<string, string> | undefined {
  const { gcp_location: google, aws_region, aws_availability_zone, azure_location, azure_zone } = platform;
  const [region, zone] =
    google !== undefined
      ? [/^(.+-.+)-[^-]+$/.exec(google)?.[1] ?? google, /^.+-.+-[^-]+$/.test(google) ? google : undefined]
      : [aws_region ?? azure_location, aws_region === undefined ? azure_zone : aws_availability_zone];
  return region ? { region, ...(zone && { zone }) } : undefined;
}
