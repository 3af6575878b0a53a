/** For an invalid variable, the default applies, with a warning. */

import { existsSync } from 'node:fs';
import { availableParallelism, totalmem } from 'node:os';
import type { Features } from '../../model/mesh/features.ts';
import type { RegistryOptions } from '../../model/services/service-registry.ts';
import { ChartpilotError } from '../../runtime/errors.ts';
import { allowedVariable, BlockedAddresses, blockedVariable } from '../../runtime/fences/blocked-addresses.ts';
import { connectionsOfPort } from '../../runtime/fences/http-fence.ts';
import { openFilesLimit } from '../../runtime/fences/open-files.ts';
import type { LogEntry, LogWarning } from '../../runtime/log-events/log-events.ts';
import {
  type AuthoritySettings,
  authoritySettingsOf,
  isAuthorityConfigured,
  isSharedAuthority,
  kubernetesExternalCa,
} from '../ca/authority-settings.ts';
import { controlPlaneNames } from '../ca/server-certificate/own-certificate.ts';
import { type ConfigLimits, configLimitsOf } from '../config/files/config-limits.ts';
import { type XdsSourceLimits, xdsSourceLimitsOf } from '../config/xds/xds-source-limits.ts';
import { type ConsulSettings, consulSettingsOf } from '../consul/consul-settings.ts';
import { defaultLeaseMs, minLeaseMs } from '../election/lease-times.ts';
import { Environment, variablesWithoutEffect } from '../environment.ts';
import { isInCluster } from '../kubernetes/access/in-cluster.ts';
import { type ListenAddress, parseListenAddress } from '../listen-address.ts';
import { registryNames } from '../registry/registry-names.ts';
import { type AdsLimits, defaultMakeBeforeBreakMs, defaultRemovalDelayMs } from '../xds/ads-limits.ts';
import { type SecurePort, securePortOf } from '../xds/secure-port/secure-port.ts';
import { clientLimitsOf, reservedFiles } from './client-limits.ts';
import {
  addressesOf,
  clusterDomainOf,
  type DiscoveryFlags,
  duration,
  maxConnectionAge,
  parseAliases,
  parseSwitch,
  requireNamespace,
} from './discovery-flags.ts';
import { featuresOf } from './feature-options.ts';

export interface DiscoveryOptions {
  /** `--registries` without duplicates. Unknown names are detected when registries are created. */
  readonly registries: readonly string[];
  readonly consul: ConsulSettings | undefined;
  readonly registryOptions: Pick<RegistryOptions, 'systemNamespace' | 'selectWorkloadEntries' | 'selectPods'>;
  readonly features: Features;
  readonly namespace: string;
  readonly clusterRegistriesNamespace: string;
  readonly kubeconfig: string;
  /** The kubelet provides the address of the API server in these variables. Empty outside a pod. */
  readonly pod: Readonly<Record<string, string>>;
  /** REVISION. Istio objects with the label of another revision are ignored. Empty for the default revision. */
  readonly revision: string;
  /** POD_NAME, shown as leader. If empty, the host name is shown. */
  readonly podName: string;
  /** PILOT_LEASE_DURATION: maximum time for which a leader can be unresponsive before it is replaced. */
  readonly leaseMs: number;
  /** PILOT_CA_CERT_CONFIGMAP: ConfigMap from which pods mount the mesh root. */
  readonly rootConfigMap: string;
  /** PILOT_ENABLE_GATEWAY_API_STATUS. */
  readonly writesGatewayApiStatus: boolean;
  /** PILOT_ENABLE_GATEWAY_API_GATEWAYCLASS_CONTROLLER: creates the GatewayClass `istio` if it does not exist. */
  readonly createsGatewayClass: boolean;
  /** PILOT_ENABLE_GATEWAY_API_DEPLOYMENT_CONTROLLER. */
  readonly deploysGateways: boolean;
  /** SHARED_MESH_CONFIG: a ConfigMap with settings that the ConfigMap of the revision can override. */
  readonly sharedMeshConfig: string;
  readonly configDir: string;
  readonly meshConfigFile: string;
  readonly networksConfigFile: string;
  readonly domain: string;
  readonly clusterId: string;
  readonly clusterAliases: Readonly<Record<string, string>>;
  /** All addresses serve the same pages. */
  readonly httpAddresses: readonly ListenAddress[];
  /** If `undefined`, xDS is served on the HTTP port. */
  readonly grpcAddress: ListenAddress | undefined;
  /** If `undefined`, xDS is not served over TLS. */
  readonly securePort: SecurePort | undefined;
  /** DNS_ADDR: address of the DNS server over TLS. */
  readonly namesAddress: ListenAddress | undefined;
  /** `--httpsAddr`. */
  readonly webhooksAddress: ListenAddress | undefined;
  /** `undefined` if this process does not sign certificates. */
  readonly authority: AuthoritySettings | undefined;
  /** Agents connect to this control plane by these DNS names. */
  readonly ownNames: readonly string[];
  readonly shutdownMs: number;
  readonly keepaliveIntervalMs: number;
  readonly keepaliveTimeoutMs: number;
  /** 0 means unlimited. */
  readonly maxConnectionAgeMs: number;
  readonly push: {
    readonly debounceAfterMs: number;
    readonly debounceMaxMs: number;
    readonly debounceEndpoints: boolean;
  };
  readonly pushThrottle: number;
  readonly streamsPerSecond: number;
  readonly maxConcurrentStreams: number;
  readonly maxRequestBytes: number;
  readonly clientLimits: Pick<AdsLimits, 'maxNames' | 'maxServedStreams' | 'unidentified' | 'addressPace'>;
  readonly httpConnections: number;
  readonly configLimits: ConfigLimits;
  readonly xdsSources: XdsSourceLimits;
  /** 0 disables the cache. By default, only the size is limited. */
  readonly cacheEntries: number;
  readonly cacheBytes: number;
  readonly cachesCds: boolean;
  readonly cachesRds: boolean;
  readonly servesDebug: boolean;
  /** Whether `/debug/pprof` is served. */
  readonly profile: boolean;
  /** Whether `/debug/pprof/heap` is served. */
  readonly heapSnapshots: boolean;
  /** Whether `/debug/force_disconnect` is served. */
  readonly unsafeAdminEndpoints: boolean;
  /** Whether remote callers may access debug pages only for their own namespace. */
  readonly debugNamespaceAuth: boolean;
  /** Whether local callers need the debugger's token for every debug page. */
  readonly debugLocalNeedsToken: boolean;
  readonly localLogLevels: boolean;
  readonly debugNamespaces: readonly string[];
  /** Whether the namespace and service account that a proxy reports must match its authenticated identity. */
  readonly checksIdentity: boolean;
  /** PILOT_SECRETS_ON_PLAINTEXT: sends Secrets to any client on the plaintext port, for tests and laptops. */
  readonly secretsOnPlaintext: boolean;
  /** ENABLE_XDS_API_GENERATOR_AUTH: clients that read configuration must be in the root namespace. */
  readonly configNeedsIdentity: boolean;
  /** If true, clients of the TLS port must authenticate. */
  readonly authenticates: boolean;
  readonly registration: RegistrationOptions;
  /**
   * PILOT_XDS_MAKE_BEFORE_BREAK_TIMEOUT: maximum time for which listeners and routes wait for clusters that are new to a client. 0 disables waiting.
   */
  readonly makeBeforeBreakMs: number;
  /** PILOT_XDS_CLUSTER_REMOVAL_DELAY: time for which removed clusters are kept after a client's last reference. */
  readonly removalDelayMs: number;
  /** PILOT_REMOTE_CLUSTER_TIMEOUT: maximum time that startup waits for the first list of a registry. */
  readonly firstListsMs: number;
  /** PILOT_JWT_PUB_KEY_REFRESH_INTERVAL. */
  readonly keyRefreshMs: number;
  /** JWT_RULE as written. */
  readonly jwtRule: string;
  readonly trustedGateways: readonly string[];
  /** The keys of RequestAuthentications must not be fetched from these addresses. */
  readonly jwksAddresses: BlockedAddresses;
  readonly notes: readonly LogEntry[];
  readonly warnings: readonly LogWarning[];
}

export interface RegistrationOptions {
  /** PILOT_ENABLE_WORKLOAD_ENTRY_AUTOREGISTRATION. */
  readonly enabled: boolean;
  /** PILOT_ENABLE_WORKLOAD_ENTRY_HEALTHCHECKS: uses the health that workloads report. */
  readonly healthChecks: boolean;
  /** PILOT_WORKLOAD_ENTRY_GRACE_PERIOD: from disconnection to deletion of the entry. */
  readonly graceMs: number;
}

/** @throws ChartpilotError FLAG_INVALID */
export function resolveDiscoveryOptions(
  flags: DiscoveryFlags,
  env: NodeJS.ProcessEnv,
  openFiles = openFilesLimit() ?? Number.POSITIVE_INFINITY,
): DiscoveryOptions {
  const warnings: LogWarning[] = [];
  const optionNotes: LogEntry[] = [];
  const warn = (warning: LogWarning): void => void warnings.push(warning);
  const environment = new Environment(env, warn);
  const unreadVariables = variablesWithoutEffect.filter((name) => environment.hasValue(name));
  if (unreadVariables.length > 0) warn({ event: 'option.withoutEffect', settings: unreadVariables.join(', ') });
  requireNamespace('--namespace', flags.namespace);
  requireNamespace('--clusterRegistriesNamespace', flags.clusterRegistriesNamespace);
  const namespace = flags.namespace || environment.text('POD_NAMESPACE', 'istio-system');
  const features = featuresOf(environment);
  const secretsOnPlaintext = environment.boolean('PILOT_SECRETS_ON_PLAINTEXT', false);
  if (secretsOnPlaintext) {
    warn({ event: 'option.secretsOnPlaintext', setting: 'PILOT_SECRETS_ON_PLAINTEXT' });
  }
  const configNeedsIdentity = environment.boolean('ENABLE_XDS_API_GENERATOR_AUTH', true);
  if (!configNeedsIdentity) {
    warn({ event: 'option.configServedUnverified', setting: 'ENABLE_XDS_API_GENERATOR_AUTH' });
  }
  const authority = authoritySettingsOf(environment);
  const configLimits = configLimitsOf(environment);
  if (isSharedAuthority(authority) && authority.stateDirectory !== '') {
    throw new ChartpilotError('FLAG_INVALID', 'SELF_SIGNED_CA_DIR and SELF_SIGNED_CA_SECRET are mutually exclusive', {
      hint: 'Use the Secret for several replicas, the directory for a single process.',
    });
  }
  rejectOtherSigners(environment.text('EXTERNAL_CA', ''), authority);
  const mayHaveAuthority = environment.boolean('ENABLE_CA_SERVER', true);
  const hasAuthority = mayHaveAuthority && isAuthorityConfigured(authority);
  const securePort = securePortOf(flags, {
    ...{ hasAuthority, mayHaveAuthority, warn },
    writeEntry: (note) => void optionNotes.push(note),
  });
  const registries = registryNames(flags.registries ?? 'Kubernetes', warn);
  const hasCluster =
    Boolean(flags.kubeconfig) || (registries.includes('Kubernetes') && !flags.configDir && isInCluster(podOf(env)));
  const consulFlags = (['consulServerURL', 'consulserverURL', 'consulTokenFile', 'consulDatacenters'] as const).filter(
    (flag) => flags[flag],
  );
  if (consulFlags.length > 0 && !registries.includes('Consul')) {
    const settings = consulFlags.map((flag) => `--${flag}`).join(', ');
    warn({ event: 'option.withoutEffect', settings, reason: '--registries does not name Consul' });
  }
  for (const [setting, file] of [
    ['--meshConfig', flags.meshConfig],
    ['--networksConfig', flags.networksConfig],
  ] as const) {
    if (file === undefined || existsSync(file)) continue;
    // In a cluster, a ConfigMap usually replaces the file, so this is only a note.
    if (registries.includes('Kubernetes')) optionNotes.push({ event: 'option.fileMissing', setting, file });
    else {
      warn({
        ...{ event: 'option.ignored', setting, value: file },
        reason: 'does not exist; the default applies until it does',
      });
    }
  }
  return {
    ...addressesOf(flags),
    registries,
    consul: registries.includes('Consul') ? consulSettingsOf(flags, environment) : undefined,
    registryOptions: {
      systemNamespace: namespace,
      selectWorkloadEntries: environment.boolean('PILOT_ENABLE_K8S_SELECT_WORKLOAD_ENTRIES', true),
      selectPods: environment.boolean('PILOT_ENABLE_SERVICEENTRY_SELECT_PODS', true),
    },
    features,
    namespace,
    clusterRegistriesNamespace: flags.clusterRegistriesNamespace || namespace,
    kubeconfig: flags.kubeconfig ?? '',
    pod: podOf(env),
    revision: environment.text('REVISION', ''),
    podName: environment.text('POD_NAME', ''),
    leaseMs: leaseMsOf(environment, warn),
    rootConfigMap: environment.text('PILOT_CA_CERT_CONFIGMAP', 'istio-ca-root-cert'),
    writesGatewayApiStatus: environment.boolean('PILOT_ENABLE_GATEWAY_API_STATUS', true),
    createsGatewayClass: environment.boolean('PILOT_ENABLE_GATEWAY_API_GATEWAYCLASS_CONTROLLER', true),
    deploysGateways: environment.boolean('PILOT_ENABLE_GATEWAY_API_DEPLOYMENT_CONTROLLER', true),
    sharedMeshConfig: environment.text('SHARED_MESH_CONFIG', ''),
    configDir: flags.configDir ?? '',
    meshConfigFile: flags.meshConfig ?? './etc/istio/config/mesh',
    networksConfigFile: flags.networksConfig ?? './etc/istio/config/meshNetworks',
    domain: clusterDomainOf(flags.domain),
    clusterId: flags.clusterID ?? environment.text('CLUSTER_ID', 'Kubernetes'),
    clusterAliases: parseAliases(flags.clusterAliases ?? ''),
    securePort,
    namesAddress: namesAddressOf(environment, securePort, warn),
    webhooksAddress: webhooksAddressOf(flags, hasCluster, securePort, warn),
    authority: securePort !== undefined && (hasAuthority || securePort.files === undefined) ? authority : undefined,
    ownNames: controlPlaneNames(namespace, environment.text('REVISION', ''), environment.list('ISTIOD_CUSTOM_HOST')),
    shutdownMs: duration('--shutdownDuration', flags.shutdownDuration, 10_000),
    keepaliveIntervalMs: duration(
      '--keepaliveInterval',
      flags.keepaliveInterval,
      environment.timerMs('GRPC_KEEPALIVE_INTERVAL', 30_000),
    ),
    keepaliveTimeoutMs: duration('--keepaliveTimeout', flags.keepaliveTimeout, 10_000),
    maxConnectionAgeMs: maxConnectionAge(flags.keepaliveMaxServerConnectionAge),
    push: {
      debounceAfterMs: environment.timerMs('PILOT_DEBOUNCE_AFTER', 100),
      debounceMaxMs: environment.timerMs('PILOT_DEBOUNCE_MAX', 10_000),
      debounceEndpoints: environment.boolean('PILOT_ENABLE_EDS_DEBOUNCE', true),
    },
    pushThrottle: environment.number('PILOT_PUSH_THROTTLE', 0) || processorDefault(),
    streamsPerSecond: environment.number('PILOT_MAX_REQUESTS_PER_SECOND', 0),
    maxConcurrentStreams: environment.number('ISTIO_GPRC_MAXSTREAMS', 100_000, 1),
    maxRequestBytes: environment.number('ISTIO_GPRC_MAXRECVMSGSIZE', 4 * 1024 * 1024, 1),
    clientLimits: clientLimitsOf(environment, openFiles, (note) => void optionNotes.push(note)),
    // The two HTTP ports share half of the file descriptors that are not reserved for xDS.
    httpConnections: Math.min(connectionsOfPort(openFiles), Math.max(1, Math.floor(reservedFiles(openFiles) / 4))),
    configLimits,
    xdsSources: xdsSourceLimitsOf(environment, configLimits),
    ...cacheOptionsOf(environment),
    ...debugOptionsOf(flags, environment),
    checksIdentity: environment.boolean('PILOT_ENABLE_XDS_IDENTITY_CHECK', true),
    secretsOnPlaintext,
    configNeedsIdentity,
    authenticates: environment.boolean('XDS_AUTH', true),
    registration: {
      enabled: environment.boolean('PILOT_ENABLE_WORKLOAD_ENTRY_AUTOREGISTRATION', true),
      healthChecks: environment.boolean('PILOT_ENABLE_WORKLOAD_ENTRY_HEALTHCHECKS', true),
      graceMs: environment.timerMs('PILOT_WORKLOAD_ENTRY_GRACE_PERIOD', 10_000),
    },
    makeBeforeBreakMs: environment.timerMs('PILOT_XDS_MAKE_BEFORE_BREAK_TIMEOUT', defaultMakeBeforeBreakMs),
    removalDelayMs: Math.max(1, environment.timerMs('PILOT_XDS_CLUSTER_REMOVAL_DELAY', defaultRemovalDelayMs)),
    firstListsMs: environment.timerMs('PILOT_REMOTE_CLUSTER_TIMEOUT', 30_000),
    keyRefreshMs: environment.timerMs('PILOT_JWT_PUB_KEY_REFRESH_INTERVAL', 20 * 60_000) || 20 * 60_000,
    jwtRule: environment.text('JWT_RULE', ''),
    trustedGateways: environment.list('TRUSTED_GATEWAY_CIDR'),
    jwksAddresses: new BlockedAddresses({
      blocked: environment.list(blockedVariable),
      allowed: environment.list(allowedVariable),
    }),
    notes: optionNotes,
    warnings,
  };
}

/** A Lease contains integer seconds. */
function leaseMsOf(environment: Environment, warn: (warning: LogWarning) => void): number {
  const ms = environment.timerMs('PILOT_LEASE_DURATION', defaultLeaseMs);
  if (ms >= minLeaseMs && ms % 1_000 === 0) return ms;
  warn({
    event: 'option.defaulted',
    setting: 'PILOT_LEASE_DURATION',
    value: `${ms}ms`,
    default: `${defaultLeaseMs}ms`,
    reason: `must be an integer number of seconds, >= ${minLeaseMs / 1_000}s`,
  });
  return defaultLeaseMs;
}

/** The DNS server uses the certificate of the TLS port. */
function namesAddressOf(
  environment: Environment,
  securePort: SecurePort | undefined,
  warn: (warning: LogWarning) => void,
): ListenAddress | undefined {
  const address = parseListenAddress('DNS_ADDR', environment.text('DNS_ADDR', ''));
  if (address === undefined || securePort !== undefined) return address;
  warn({
    event: 'option.withoutEffect',
    settings: 'DNS_ADDR',
    reason: 'the TLS port is closed, which has its certificate',
  });
  return undefined;
}

/** Webhooks use the certificate of the TLS port, and only the API server of a cluster calls them. */
function webhooksAddressOf(
  { httpsAddr }: DiscoveryFlags,
  hasCluster: boolean,
  securePort: SecurePort | undefined,
  warn: (warning: LogWarning) => void,
): ListenAddress | undefined {
  const address = parseListenAddress('--httpsAddr', httpsAddr ?? ':15017');
  if (address === undefined || (hasCluster && securePort !== undefined)) return address;
  if (httpsAddr !== undefined) {
    warn({
      event: 'option.withoutEffect',
      settings: '--httpsAddr',
      reason: hasCluster ? 'the TLS port is closed, which has its certificate' : 'no cluster is followed',
    });
  }
  return undefined;
}

function podOf({ KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port }: NodeJS.ProcessEnv) {
  return host && port ? { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } : {};
}

function cacheOptionsOf(environment: Environment) {
  const cacheSize = 'PILOT_XDS_CACHE_SIZE';
  const cacheEntries = environment.hasValue(cacheSize)
    ? environment.number(cacheSize, 60_000)
    : Number.POSITIVE_INFINITY;
  return {
    cacheEntries: environment.boolean('PILOT_ENABLE_XDS_CACHE', true) ? cacheEntries : 0,
    cacheBytes: environment.number('PILOT_XDS_CACHE_BYTES', computeQuarterOfMemory(), 1),
    cachesCds: environment.boolean('PILOT_ENABLE_CDS_CACHE', true),
    cachesRds: environment.boolean('PILOT_ENABLE_RDS_CACHE', true),
  };
}

function debugOptionsOf(flags: DiscoveryFlags, environment: Environment) {
  return {
    servesDebug: environment.boolean('ENABLE_DEBUG_ON_HTTP', true),
    profile: parseSwitch('--profile', flags.profile, true),
    heapSnapshots: parseSwitch('--heapSnapshots', flags.heapSnapshots, false),
    unsafeAdminEndpoints: environment.boolean('UNSAFE_ENABLE_ADMIN_ENDPOINTS', false),
    debugNamespaceAuth: environment.boolean('ENABLE_DEBUG_ENDPOINT_AUTH', true),
    debugLocalNeedsToken: environment.boolean('DEBUG_ENDPOINT_AUTH_LOCALHOST', false),
    localLogLevels: environment.boolean('PILOT_LOG_LEVELS_FROM_LOCALHOST', false),
    debugNamespaces: environment.list('DEBUG_ENDPOINT_AUTH_ALLOWED_NAMESPACES'),
  };
}

function computeQuarterOfMemory(): number {
  const maxMemory = process.constrainedMemory() || Number.POSITIVE_INFINITY;
  return Math.floor(Math.min(maxMemory, totalmem()) / 4);
}

/** Istio's default: `min(15 + 5 × processors, 100)`. */
function processorDefault(): number {
  return Math.min(15 + 5 * availableParallelism(), 100);
}

/**
 * Users who configured another signer must not get certificates from another root.
 *
 * @throws ChartpilotError FLAG_INVALID
 */
function rejectOtherSigners(externalCa: string, authority: AuthoritySettings): void {
  if (externalCa === '') return;
  const rejectFlag = (detail: string, hint: string): never => {
    throw new ChartpilotError('FLAG_INVALID', `EXTERNAL_CA=${externalCa}: ${detail}`, { hint });
  };
  if (!authority.usesExternalCa) rejectFlag('unknown value', `Use ${kubernetesExternalCa}.`);
  if (authority.kubernetesSigner === '')
    rejectFlag('K8S_SIGNER is not set', 'Set it to a signer such as example.com/mesh.');
  if (!isAuthorityConfigured(authority)) {
    rejectFlag(
      'no CA signs the certificate of the TLS port',
      'Set a CA, for example SELF_SIGNED_CA_SECRET=istio-ca-secret.',
    );
  }
}
