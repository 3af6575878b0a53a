/**
 * Everything that `pilot-discovery discovery` was told, by flags and environment (spec/discovery.md §1.2, §1.4). A flag
 * that makes no sense ends the program; an environment variable that makes none has its default, with a warning.
 */

import { availableParallelism, totalmem } from 'node:os';
import { durationMsOf, longestTimerMs } from '../model/fields/duration.ts';
import { defaultFeatures, type Features } from '../model/mesh/features.ts';
import type { RegistryOptions } from '../model/services/service-registry.ts';
import { ChartpilotError } from '../runtime/errors.ts';
import { allowedVariable, BlockedAddresses, blockedVariable } from '../runtime/fences/blocked-addresses.ts';
import { connectionsOfPort } from '../runtime/fences/http-fence.ts';
import { openFilesLimit } from '../runtime/fences/open-files.ts';
import type { LogEntry, LogWarning } from '../runtime/log-events/log-events.ts';
import { addressPaceLimits } from './ads/admission/address-pace.ts';
import { strangerLimits } from './ads/admission/strangers.ts';
import { type AdsLimits, defaultMakeBeforeBreakMs, defaultMaxNames, defaultRemovalDelayMs } from './ads/ads-limits.ts';
import { maxServedStreamsWithin } from './ads/stream/stream-shares.ts';
import {
  type AuthoritySettings,
  authoritySettingsOf,
  isAuthorityGiven,
  isAuthorityShared,
  kubernetesRegistration,
} from './authority/authority-settings.ts';
import { ownNames } from './authority/own-certificate.ts';
import { type ConfigLimits, configLimitsOf } from './config/config-limits.ts';
import { booleanOf, Environment, variablesWithoutEffect } from './environment.ts';
import { shortestLeaseMs, usualLeaseMs } from './leader/lease-times.ts';
import { type ListenAddress, parseListenAddress } from './listen-address.ts';
import { registryNames } from './registry-names.ts';
import { type SecurePort, type SecurePortFlags, securePortOf } from './secure-port.ts';

/** The flags of `discovery`, as texts; absent when not given. */
export interface DiscoveryFlags extends SecurePortFlags {
  readonly registries?: string;
  readonly configDir?: string;
  readonly meshConfig?: string;
  readonly networksConfig?: string;
  readonly domain?: string;
  readonly clusterID?: string;
  readonly clusterAliases?: string;
  readonly httpAddr?: string;
  readonly grpcAddr?: string;
  readonly monitoringAddr?: string;
  readonly httpsAddr?: string;
  readonly namespace?: string;
  readonly clusterRegistriesNamespace?: string;
  readonly kubeconfig?: string;
  /** True: the flag came without a value. */
  readonly profile?: string | boolean;
  readonly heapSnapshots?: string | boolean;
  readonly shutdownDuration?: string;
  readonly keepaliveInterval?: string;
  readonly keepaliveTimeout?: string;
  readonly keepaliveMaxServerConnectionAge?: string;
}

export interface DiscoveryOptions {
  /** `--registries`, each once; whether they are known is found out when they are made. */
  readonly registries: readonly string[];
  /** What the environment says of services and endpoints. */
  readonly registryOptions: Pick<RegistryOptions, 'systemNamespace' | 'selectWorkloadEntries' | 'selectPods'>;
  /** What it says of what is generated. */
  readonly features: Features;
  /** The control plane's own. */
  readonly namespace: string;
  /** Where the Secrets of remote clusters lie. */
  readonly clusterRegistriesNamespace: string;
  /** Empty: none was named. */
  readonly kubeconfig: string;
  /** Where the API server of our pod's cluster is, as the kubelet says it; empty: this is no pod. */
  readonly pod: Readonly<Record<string, string>>;
  /** REVISION: objects of Istio's that are labelled for another one are not there. Empty: the default one. */
  readonly revision: string;
  /** POD_NAME, for people who ask who leads; empty: it is the host's. */
  readonly podName: string;
  /** How long a replica is waited for that has something to write and says nothing (PILOT_LEASE_DURATION). */
  readonly leaseMs: number;
  /** PILOT_CA_CERT_CONFIGMAP: where pods find the root of the mesh. */
  readonly rootConfigMap: string;
  /** What becomes of the Gateway API's objects is written to their status (PILOT_ENABLE_GATEWAY_API_STATUS). */
  readonly writesGatewayApiStatus: boolean;
  /** GatewayClass `istio` is created where it does not exist (PILOT_ENABLE_GATEWAY_API_GATEWAYCLASS_CONTROLLER). */
  readonly createsGatewayClass: boolean;
  /** SHARED_MESH_CONFIG: a ConfigMap beneath the own one; empty: none. */
  readonly sharedMeshConfig: string;
  /** Empty: no directory. */
  readonly configDir: string;
  readonly meshConfigFile: string;
  readonly networksConfigFile: string;
  readonly domain: string;
  readonly clusterId: string;
  readonly clusterAliases: Readonly<Record<string, string>>;
  /** Each with the same pages. */
  readonly httpAddresses: readonly ListenAddress[];
  /** Undefined: xDS is served on the HTTP port. */
  readonly grpcAddress: ListenAddress | undefined;
  /** Undefined: xDS is not served over TLS. */
  readonly securePort: SecurePort | undefined;
  /** Undefined: nothing is signed here. */
  readonly authority: AuthoritySettings | undefined;
  /** Names of hosts by which agents know this control plane. */
  readonly ownNames: readonly string[];
  readonly shutdownMs: number;
  readonly keepaliveIntervalMs: number;
  readonly keepaliveTimeoutMs: number;
  /** 0: without limit. */
  readonly maxConnectionAgeMs: number;
  readonly push: {
    readonly debounceAfterMs: number;
    readonly debounceMaxMs: number;
    readonly debounceEndpoints: boolean;
  };
  /** Proxies that are brought up to date at a time. */
  readonly pushThrottle: number;
  readonly streamsPerSecond: number;
  readonly maxConcurrentStreams: number;
  readonly maxRequestBytes: number;
  /** What one stream, one address and all of them may take of the server. */
  readonly clientLimits: Pick<AdsLimits, 'maxNames' | 'maxServedStreams' | 'strangers' | 'addressPace'>;
  /** Connections of each HTTP port. */
  readonly httpConnections: number;
  /** What files of configuration may be. */
  readonly configLimits: ConfigLimits;
  /** 0: nothing is kept. Any number unless said: bytes are the limit then. */
  readonly cacheEntries: number;
  readonly cacheBytes: number;
  /** Clusters and routes may be left out of what is kept. */
  readonly keepsClusters: boolean;
  readonly keepsRoutes: boolean;
  readonly servesDebug: boolean;
  /** `/debug/pprof`. */
  readonly profile: boolean;
  /** `/debug/pprof/heap`. */
  readonly heapSnapshots: boolean;
  /** `/debug/force_disconnect`. */
  readonly unsafeAdminEndpoints: boolean;
  /** Callers from other hosts see debug pages of their own namespace only. */
  readonly debugNamespaceAuth: boolean;
  /** Callers on this host need the debugger's token for every debug page. */
  readonly debugLocalNeedsToken: boolean;
  /** Namespaces whose callers see debug pages of all namespaces. */
  readonly debugNamespaces: readonly string[];
  /** What a proxy says of its namespace and service account must agree with who it was found to be. */
  readonly checksIdentity: boolean;
  /** Secrets go to whoever asks on the port without TLS (PILOT_SECRETS_ON_PLAINTEXT): for tests and laptops. */
  readonly secretsOnPlaintext: boolean;
  /** Clients of the port with TLS must say who they are. */
  readonly authenticates: boolean;
  /** Workloads that register themselves. */
  readonly registration: RegistrationOptions;
  /** How long listeners and routes wait for clusters that are new to a client; 0: they do not (PILOT_XDS_MAKE_BEFORE_BREAK_TIMEOUT). */
  readonly makeBeforeBreakMs: number;
  /** How long clusters that are no longer configured stay at a client that no longer names them (PILOT_XDS_CLUSTER_REMOVAL_DELAY). */
  readonly removalDelayMs: number;
  /** How long the start waits for the first list of a registry (PILOT_REMOTE_CLUSTER_TIMEOUT). */
  readonly firstListsMs: number;
  /** How often issuers of tokens are asked for their keys (PILOT_JWT_PUB_KEY_REFRESH_INTERVAL). */
  readonly keyRefreshMs: number;
  /** JWT_RULE as it is written; empty: none. */
  readonly jwtRule: string;
  /** Networks whose proxies may say who their clients are. */
  readonly trustedGateways: readonly string[];
  /** Addresses that key sets of RequestAuthentications are not fetched from. */
  readonly jwksAddresses: BlockedAddresses;
  /** What is as it should be, and worth knowing: lines for the log. */
  readonly notes: readonly LogEntry[];
  /** What was strange, but no mistake: lines for the log. */
  readonly warnings: readonly LogWarning[];
}

export interface RegistrationOptions {
  /** PILOT_ENABLE_WORKLOAD_ENTRY_AUTOREGISTRATION. */
  readonly enabled: boolean;
  /** What they say of their health counts (PILOT_ENABLE_WORKLOAD_ENTRY_HEALTHCHECKS). */
  readonly healthChecks: boolean;
  /** Since a workload is gone, until its entry is deleted (PILOT_WORKLOAD_ENTRY_GRACE_PERIOD). */
  readonly graceMs: number;
}

const oneSecondMs = 1_000;

/**
 * @param openFiles that the process may have at the same time
 * @throws ChartpilotError FLAG_INVALID
 */
export function resolveDiscoveryOptions(
  flags: DiscoveryFlags,
  env: NodeJS.ProcessEnv,
  openFiles = openFilesLimit() ?? Number.POSITIVE_INFINITY,
): DiscoveryOptions {
  const warnings: LogWarning[] = [];
  const notes: LogEntry[] = [];
  const warn = (warning: LogWarning): void => void warnings.push(warning);
  const from = new Environment(env, warn);
  const unread = variablesWithoutEffect.filter((name) => from.isSet(name));
  if (unread.length > 0) warn({ event: 'option.withoutEffect', settings: unread.join(', ') });
  if (flags.httpsAddr) {
    warn({ event: 'option.withoutEffect', settings: '--httpsAddr', reason: 'webhooks are not supported yet' });
  }
  const namespace = flags.namespace || from.text('POD_NAMESPACE', 'istio-system');
  const features = featuresOf(from);
  const secretsOnPlaintext = from.boolean('PILOT_SECRETS_ON_PLAINTEXT', false);
  if (secretsOnPlaintext) {
    warn({ event: 'option.secretsOnPlaintext', setting: 'PILOT_SECRETS_ON_PLAINTEXT' });
  }
  const authority = authoritySettingsOf(from);
  if (isAuthorityShared(authority) && authority.stateDirectory !== '') {
    throw new ChartpilotError('FLAG_INVALID', 'SELF_SIGNED_CA_DIR and SELF_SIGNED_CA_SECRET are mutually exclusive', {
      hint: 'Use the Secret for several replicas, the directory for a single process.',
    });
  }
  refuseOtherSigners(from.text('EXTERNAL_CA', ''), authority);
  const mayHaveAuthority = from.boolean('ENABLE_CA_SERVER', true);
  const hasAuthority = mayHaveAuthority && isAuthorityGiven(authority);
  const securePort = securePortOf(flags, {
    ...{ hasAuthority, mayHaveAuthority, warn },
    note: (note) => void notes.push(note),
  });
  return {
    ...addressesOf(flags),
    registries: registryNames(flags.registries ?? 'Kubernetes', warn),
    registryOptions: {
      systemNamespace: namespace,
      selectWorkloadEntries: from.boolean('PILOT_ENABLE_K8S_SELECT_WORKLOAD_ENTRIES', true),
      selectPods: from.boolean('PILOT_ENABLE_SERVICEENTRY_SELECT_PODS', true),
    },
    features,
    namespace,
    clusterRegistriesNamespace: flags.clusterRegistriesNamespace || namespace,
    kubeconfig: flags.kubeconfig ?? '',
    pod: podOf(env),
    revision: from.text('REVISION', ''),
    podName: from.text('POD_NAME', ''),
    leaseMs: leaseMsOf(from, warn),
    rootConfigMap: from.text('PILOT_CA_CERT_CONFIGMAP', 'istio-ca-root-cert'),
    writesGatewayApiStatus: from.boolean('PILOT_ENABLE_GATEWAY_API_STATUS', true),
    createsGatewayClass: from.boolean('PILOT_ENABLE_GATEWAY_API_GATEWAYCLASS_CONTROLLER', true),
    sharedMeshConfig: from.text('SHARED_MESH_CONFIG', ''),
    configDir: flags.configDir ?? '',
    meshConfigFile: flags.meshConfig ?? './etc/istio/config/mesh',
    networksConfigFile: flags.networksConfig ?? './etc/istio/config/meshNetworks',
    domain: (flags.domain ?? 'cluster.local').toLowerCase(),
    clusterId: flags.clusterID ?? from.text('CLUSTER_ID', 'Kubernetes'),
    clusterAliases: parseAliases(flags.clusterAliases ?? ''),
    securePort,
    authority: securePort !== undefined && (hasAuthority || securePort.files === undefined) ? authority : undefined,
    ownNames: ownNames(namespace, from.text('REVISION', ''), from.list('ISTIOD_CUSTOM_HOST')),
    shutdownMs: duration('--shutdownDuration', flags.shutdownDuration, 10_000),
    keepaliveIntervalMs: duration(
      '--keepaliveInterval',
      flags.keepaliveInterval,
      from.timerMs('GRPC_KEEPALIVE_INTERVAL', 30_000),
    ),
    keepaliveTimeoutMs: duration('--keepaliveTimeout', flags.keepaliveTimeout, 10_000),
    maxConnectionAgeMs: maxConnectionAge(flags.keepaliveMaxServerConnectionAge),
    push: {
      debounceAfterMs: from.timerMs('PILOT_DEBOUNCE_AFTER', 100),
      debounceMaxMs: from.timerMs('PILOT_DEBOUNCE_MAX', 10_000),
      debounceEndpoints: from.boolean('PILOT_ENABLE_EDS_DEBOUNCE', true),
    },
    pushThrottle: from.number('PILOT_PUSH_THROTTLE', 0) || byProcessors(),
    streamsPerSecond: from.number('PILOT_MAX_REQUESTS_PER_SECOND', 0) || byProcessors(),
    maxConcurrentStreams: from.number('ISTIO_GPRC_MAXSTREAMS', 100_000, 1),
    maxRequestBytes: from.number('ISTIO_GPRC_MAXRECVMSGSIZE', 4 * 1024 * 1024, 1),
    clientLimits: clientLimitsOf(from, openFiles, (note) => void notes.push(note)),
    // The two ports may take half of what xDS leaves.
    httpConnections: Math.min(connectionsOfPort(openFiles), Math.max(1, Math.floor(filesBeside(openFiles) / 4))),
    configLimits: configLimitsOf(from),
    ...cacheOptionsOf(from),
    ...debugOptionsOf(flags, from),
    checksIdentity: from.boolean('PILOT_ENABLE_XDS_IDENTITY_CHECK', true),
    secretsOnPlaintext,
    authenticates: from.boolean('XDS_AUTH', true),
    registration: {
      enabled: from.boolean('PILOT_ENABLE_WORKLOAD_ENTRY_AUTOREGISTRATION', true),
      healthChecks: from.boolean('PILOT_ENABLE_WORKLOAD_ENTRY_HEALTHCHECKS', true),
      graceMs: from.timerMs('PILOT_WORKLOAD_ENTRY_GRACE_PERIOD', 10_000),
    },
    makeBeforeBreakMs: from.timerMs('PILOT_XDS_MAKE_BEFORE_BREAK_TIMEOUT', defaultMakeBeforeBreakMs),
    removalDelayMs: Math.max(1, from.timerMs('PILOT_XDS_CLUSTER_REMOVAL_DELAY', defaultRemovalDelayMs)),
    firstListsMs: from.timerMs('PILOT_REMOTE_CLUSTER_TIMEOUT', 30_000),
    keyRefreshMs: from.timerMs('PILOT_JWT_PUB_KEY_REFRESH_INTERVAL', 20 * 60_000) || 20 * 60_000,
    jwtRule: from.text('JWT_RULE', ''),
    trustedGateways: from.list('TRUSTED_GATEWAY_CIDR'),
    jwksAddresses: new BlockedAddresses({ blocked: from.list(blockedVariable), allowed: from.list(allowedVariable) }),
    notes,
    warnings,
  };
}

/** A Lease says whole seconds. */
function leaseMsOf(from: Environment, warn: (warning: LogWarning) => void): number {
  const ms = from.timerMs('PILOT_LEASE_DURATION', usualLeaseMs);
  if (ms >= shortestLeaseMs && ms % 1_000 === 0) return ms;
  warn({
    event: 'option.defaulted',
    setting: 'PILOT_LEASE_DURATION',
    value: `${ms}ms`,
    default: `${usualLeaseMs}ms`,
    reason: `must be whole seconds, >= ${shortestLeaseMs / 1_000}s`,
  });
  return usualLeaseMs;
}

function podOf({ KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port }: NodeJS.ProcessEnv) {
  return host && port ? { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } : {};
}

/** What is kept of encoded resources, and how much of it. */
function cacheOptionsOf(from: Environment) {
  const cacheSize = 'PILOT_XDS_CACHE_SIZE';
  const cacheEntries = from.isSet(cacheSize) ? from.number(cacheSize, 60_000) : Number.POSITIVE_INFINITY;
  return {
    cacheEntries: from.boolean('PILOT_ENABLE_XDS_CACHE', true) ? cacheEntries : 0,
    cacheBytes: from.number('PILOT_XDS_CACHE_BYTES', quarterOfMemory(), 1),
    keepsClusters: from.boolean('PILOT_ENABLE_CDS_CACHE', true),
    keepsRoutes: from.boolean('PILOT_ENABLE_RDS_CACHE', true),
  };
}

/** What people may look at, and who of them. */
function debugOptionsOf(flags: DiscoveryFlags, from: Environment) {
  return {
    servesDebug: from.boolean('ENABLE_DEBUG_ON_HTTP', true),
    profile: switchOf('--profile', flags.profile, true),
    heapSnapshots: switchOf('--heapSnapshots', flags.heapSnapshots, false),
    unsafeAdminEndpoints: from.boolean('UNSAFE_ENABLE_ADMIN_ENDPOINTS', false),
    debugNamespaceAuth: from.boolean('ENABLE_DEBUG_ENDPOINT_AUTH', true),
    debugLocalNeedsToken: from.boolean('DEBUG_ENDPOINT_AUTH_LOCALHOST', false),
    debugNamespaces: from.list('DEBUG_ENDPOINT_AUTH_ALLOWED_NAMESPACES'),
  };
}

/** A limit of none would be a server that serves nobody. */
function clientLimitsOf(
  from: Environment,
  openFiles: number,
  note: (entry: LogEntry) => void,
): DiscoveryOptions['clientLimits'] {
  const { maxPerAddress, maxIdlePerAddress } = strangerLimits;
  const wanted = from.number('PILOT_XDS_MAX_CONNECTIONS', strangerLimits.maxInWhole, 1);
  const maxInWhole = Math.min(wanted, connectionsWithin(openFiles));
  if (maxInWhole < wanted) {
    note({ event: 'option.connectionsLimited', connections: maxInWhole, wanted, openFiles });
  }
  const perSecond = from.number('PILOT_XDS_UNIDENTIFIED_RATE_PER_ADDRESS', addressPaceLimits.perSecond, 1);
  return {
    maxServedStreams: from.number('PILOT_XDS_MAX_STREAMS', maxServedStreamsWithin(), 1),
    maxNames: from.number('PILOT_XDS_MAX_NAMES_PER_STREAM', defaultMaxNames, 1),
    strangers: {
      maxInWhole,
      // Silent connections leave room for those that speak.
      maxIdleInWhole: Math.min(strangerLimits.maxIdleInWhole, Math.ceil(maxInWhole / 2)),
      maxPerAddress: from.number('PILOT_XDS_MAX_CONNECTIONS_PER_ADDRESS', maxPerAddress, 1),
      maxIdlePerAddress: from.number('PILOT_XDS_MAX_UNIDENTIFIED_PER_ADDRESS', maxIdlePerAddress, 1),
    },
    addressPace: { perSecond, most: perSecond * secondsAtOnce },
  };
}

/** What an address may use up at once, in seconds of what comes back to it. */
const secondsAtOnce = addressPaceLimits.most / addressPaceLimits.perSecond;

/** Files that are left for what else there is: configuration that is read, probes and debug pages, sources. */
const otherFiles = 1_024;

/** A process that has no file left to open answers no probe either, and is taken for dead. */
function connectionsWithin(openFiles: number): number {
  return Math.max(1, openFiles - filesBeside(openFiles));
}

/** Open files that xDS leaves to everything else. */
function filesBeside(openFiles: number): number {
  return Math.min(otherFiles, Math.ceil(openFiles / 2));
}

function featuresOf(from: Environment): Features {
  const byDefault = defaultFeatures;
  return {
    sendUnhealthy: from.boolean('PILOT_SEND_UNHEALTHY_ENDPOINTS', byDefault.sendUnhealthy),
    autoSendUnhealthy: from.boolean('PILOT_AUTO_SEND_UNHEALTHY_ENDPOINTS', byDefault.autoSendUnhealthy),
    drainingLabel: from.text('PILOT_DRAINING_LABEL', byDefault.drainingLabel),
    persistentSessionLabel: from.text('PILOT_PERSISTENT_SESSION_LABEL', byDefault.persistentSessionLabel),
    dnsJitterMs: from.durationMs('PILOT_DNS_JITTER_DURATION', byDefault.dnsJitterMs),
    http10: from.boolean('PILOT_HTTP10', byDefault.http10),
    mongoFilter: from.boolean('PILOT_ENABLE_MONGO_FILTER', byDefault.mongoFilter),
    redisFilter: from.boolean('PILOT_ENABLE_REDIS_FILTER', byDefault.redisFilter),
    mysqlFilter: from.boolean('PILOT_ENABLE_MYSQL_FILTER', byDefault.mysqlFilter),
    endpointsForHeadless: from.boolean('PILOT_ENABLE_EDS_FOR_HEADLESS_SERVICES', byDefault.endpointsForHeadless),
    multiclusterHeadless: from.boolean('ENABLE_MULTICLUSTER_HEADLESS', byDefault.multiclusterHeadless),
    autoAllocate: from.boolean('PILOT_ENABLE_IP_AUTOALLOCATE', byDefault.autoAllocate),
    absoluteNames: from.boolean('PILOT_ENABLE_ABSOLUTE_FQDN_VHOST_DOMAIN', byDefault.absoluteNames),
    gatewaysOfOwnNamespace: from.boolean('PILOT_SCOPE_GATEWAY_TO_NAMESPACE', byDefault.gatewaysOfOwnNamespace),
    onlyReferencedClusters: from.boolean('PILOT_FILTER_GATEWAY_CLUSTER_CONFIG', byDefault.onlyReferencedClusters),
    gatewayHandshakeTimeoutMs: from.durationMs(
      'PILOT_GATEWAY_TRANSPORT_SOCKET_CONNECT_TIMEOUT',
      byDefault.gatewayHandshakeTimeoutMs,
    ),
    quicListeners: from.boolean('PILOT_ENABLE_QUIC_LISTENERS', byDefault.quicListeners),
    traceSampling: from.percent('PILOT_TRACE_SAMPLING', byDefault.traceSampling),
  };
}

function addressesOf(flags: DiscoveryFlags): Pick<DiscoveryOptions, 'httpAddresses' | 'grpcAddress'> {
  const http = parseListenAddress('--httpAddr', flags.httpAddr ?? ':8080');
  const monitoring = parseListenAddress('--monitoringAddr', flags.monitoringAddr ?? ':15014');
  const grpcAddress = parseListenAddress('--grpcAddr', flags.grpcAddr ?? ':15010');
  if (grpcAddress === undefined && http === undefined) {
    throw new ChartpilotError('FLAG_INVALID', '--grpcAddr, --httpAddr: at least one must be set, to serve xDS');
  }
  return { httpAddresses: [http, monitoring].flatMap((address) => address ?? []), grpcAddress };
}

/** A quarter of the memory, in bytes, that the machine has or lets this process have. */
function quarterOfMemory(): number {
  const allowed = process.constrainedMemory() || Number.POSITIVE_INFINITY;
  return Math.floor(Math.min(allowed, totalmem()) / 4);
}

/** What the reference takes for as many processors (§1.4): `min(15 + 5 × processors, 100)`. */
function byProcessors(): number {
  return Math.min(15 + 5 * availableParallelism(), 100);
}

/** A flag that may come without a value: `--profile`, `--profile=false`. */
function switchOf(flag: string, value: string | boolean | undefined, byDefault: boolean): boolean {
  if (value === undefined || value === '') return byDefault;
  const on = typeof value === 'boolean' ? value : booleanOf(value);
  if (on === undefined) throw new ChartpilotError('FLAG_INVALID', `${flag}: must be true or false, got ${value}`);
  return on;
}

/** @throws ChartpilotError FLAG_INVALID: who asked for another signer is not signed for by a root that nobody asked for */
function refuseOtherSigners(asked: string, authority: AuthoritySettings): void {
  if (asked === '') return;
  const refuse = (detail: string, hint: string): never => {
    throw new ChartpilotError('FLAG_INVALID', `EXTERNAL_CA=${asked}: ${detail}`, { hint });
  };
  if (!authority.registers) refuse('unknown value', `Use ${kubernetesRegistration}.`);
  if (authority.kubernetesSigner === '')
    refuse('K8S_SIGNER is not set', 'Set it to a signer such as example.com/mesh.');
  if (!isAuthorityGiven(authority)) {
    refuse(
      'no CA signs the certificate of the TLS port',
      'Set a CA, for example SELF_SIGNED_CA_SECRET=istio-ca-secret.',
    );
  }
}

/** `alias1=cluster1,alias2=cluster2`. */
function parseAliases(text: string): Record<string, string> {
  const aliases = new Map<string, string>();
  for (const item of text.split(',').filter(Boolean)) {
    const [alias = '', cluster = '', ...rest] = item.split('=');
    if (alias === '' || cluster === '' || rest.length > 0) {
      throw new ChartpilotError(
        'FLAG_INVALID',
        `--clusterAliases: must be ALIAS=CLUSTER,…, got ${JSON.stringify(item)}`,
      );
    }
    const other = [...aliases].find(([, known]) => known === cluster)?.[0];
    if (other !== undefined) {
      throw new ChartpilotError(
        'FLAG_INVALID',
        `--clusterAliases: cluster ${cluster} has two aliases, ${other} and ${alias}`,
      );
    }
    aliases.set(alias, cluster);
  }
  return Object.fromEntries(aliases);
}

function duration(flag: string, text: string | undefined, defaultMs: number): number {
  if (text === undefined || text === '') return defaultMs;
  const ms = durationMsOf(text);
  if (ms === undefined || ms < 0) {
    throw new ChartpilotError(
      'FLAG_INVALID',
      `${flag}: must be a duration such as 300ms, 30s or 1h30m, got ${JSON.stringify(text)}`,
    );
  }
  if (ms > longestTimerMs && flag !== connectionAge) {
    throw new ChartpilotError('FLAG_INVALID', `${flag}: must be at most ${longestTimerMs / 3_600_000}h, got ${text}`);
  }
  return ms;
}

const connectionAge = '--keepaliveMaxServerConnectionAge';

/** What is longer than a timer can be is for ever: Istio's default is Go's longest duration. */
function maxConnectionAge(text: string | undefined): number {
  const ms = duration(connectionAge, text, 0);
  if (ms > longestTimerMs) return 0;
  if (text !== undefined && text !== '' && ms < oneSecondMs) {
    throw new ChartpilotError('FLAG_INVALID', `${connectionAge}: must be at least 1s, got ${text}`);
  }
  return ms;
}
