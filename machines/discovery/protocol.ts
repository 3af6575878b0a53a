/**
 * Every event between two actors of pilot-discovery, with sender and receiver. `noun.happened` is a fact, `noun.order` an order. Events contain names
 * and versions of objects; the objects are in immutable snapshots of the effects (src/discovery).
 */

/** `Kind/namespace/name` of a configuration object. The name of services and endpoints is the host name. */
export type ConfigKeyText = string;

export type ConfigEventKind = 'add' | 'update' | 'delete';

export type ConfigChange = { key: ConfigKeyText; event: ConfigEventKind };

/**
 * Location of a problem: a line of a file (1-based; 0: the whole file), or a source without files, such as a cluster, in which object and
 * field identify the location.
 */
export type ConfigPlace = { file: string; line: number } | { source: string };

export type ConfigProblem = {
  /** An error excludes the object, a warning does not. */
  severity: 'error' | 'warning';
  place: ConfigPlace;
  /** An object such as `VirtualService shop/web`; empty if the content cannot be parsed. */
  object: string;
  /** Path within the object, such as `spec.http[0].route`; empty for the whole object. */
  field: string;
  message: string;
  /** Stable error code, such as `FIELD_REQUIRED`; absent if a file or source cannot be read. */
  code?: string;
  /**
   * Effect of the placeholder that denies traffic because the object has no valid earlier version; absent if the last valid version applies or no
   * placeholder is needed.
   */
  closed?: string;
};

/** Reason of a push: label of `pilot_push_triggers`. */
export type PushReason =
  | 'config'
  | 'service'
  | 'endpoint'
  | 'headlessendpoint'
  | 'proxy'
  | 'cluster'
  | 'global'
  | 'networks'
  | 'secret'
  | 'debug'
  | 'unknown';

export type StopSignal = 'SIGTERM' | 'SIGINT';

/** discovery/signals → discovery. The operating system delivered a signal to this process. */
export type SignalReceived = { type: 'signal.received'; signal: StopSignal };

/**
 * Preparing stages of the start, in this order. Each is an effect of `discovery` with this name, and ends when it
 * has reported.
 */
export type PreparedStage = 'environment' | 'config-sources' | 'registries' | 'server-certificates' | 'authenticators';

export type SettingsName = 'mesh' | 'networks';

/** discovery → mesh-config, mesh-networks. Watch the file and read it. */
export type SettingsLoad = { type: 'settings.load' };
/** mesh-config, mesh-networks → discovery. The first settings apply: those of the file, or the defaults if there is no valid file. */
export type SettingsLoaded = {
  type: 'settings.loaded';
  name: SettingsName;
  origin: 'file' | 'config map' | 'defaults';
  version: string;
};
/** mesh-config, mesh-networks → discovery. Different settings apply. */
export type SettingsChanged = { type: 'settings.changed'; name: SettingsName; version: string };
/** mesh-config → config-controller, trust-bundles. The mesh configuration changed and may name other sources or bundle endpoints. */
export type MeshChanged = { type: 'mesh.changed' };
/** mesh-config, mesh-networks → discovery. The file is invalid: the last valid settings apply. */
export type SettingsRejected = { type: 'settings.rejected'; name: SettingsName; problems: ConfigProblem[] };

/** discovery → discovery/http. Open the HTTP ports. */
export type HttpOpen = { type: 'http.open' };
/** discovery/http → discovery. All HTTP ports are open. */
export type HttpListening = { type: 'http.listening'; addresses: string[] };
/** discovery/http → discovery. A port cannot be opened, or its server failed. */
export type HttpFailed = { type: 'http.failed'; reason: string };
/** discovery → discovery/http. `/ready` responds with 200. */
export type ReadinessBegan = { type: 'readiness.began' };
/** discovery → discovery/http. `/ready` responds with 503. */
export type ReadinessEnded = { type: 'readiness.ended' };
/** discovery/http → discovery. An operator requests a full push to all proxies (`/debug/adsz?push=true`). */
export type FullPushRequested = { type: 'full-push.requested' };
/** discovery → discovery/http. Close the ports after pending requests. */
export type HttpClose = { type: 'http.close' };
/** discovery/http → discovery. All HTTP ports are closed. */
export type HttpClosed = { type: 'http.closed' };

/** discovery → config-controller. List the sources of configuration, watch and read them. */
export type ConfigsLoad = { type: 'configs.load' };
/** config-controller → discovery. These sources have not been read, so the configuration is unknown. */
export type ConfigsPending = { type: 'configs.pending'; sources: string[] };
/**
 * config-controller → discovery. These sources were added while the program runs, and have not been read: the previous configuration
 * applies.
 */
export type SourcesPending = { type: 'sources.pending'; sources: string[] };
/** config-controller → discovery. All sources were read once, with or without errors in them. */
export type ConfigsSynced = { type: 'configs.synced'; version: string; objects: number; problems: number };
/** config-controller → discovery. A source does not exist, so the configuration is unknown. */
export type ConfigsFailed = { type: 'configs.failed'; reason: string };
/** config-controller, service-registry → discovery. Objects or files are invalid: their last valid versions apply. */
export type ConfigsRejected = { type: 'configs.rejected'; problems: ConfigProblem[] };
/** config-controller, service-registry → discovery. Reported problems are resolved. */
export type ConfigRecovered = { type: 'config.recovered'; places: string[] };

/** config-controller → config-controller/sources. List the sources. */
export type SourcesList = { type: 'sources.list' };
/**
 * config-controller/sources → config-controller. Addresses of all sources, such as `fs:///etc/mesh`. The first source that has an object
 * has precedence.
 */
export type SourcesListed = { type: 'sources.listed'; sources: string[] };
/** config-controller/sources → config-controller. An address of a source is invalid. */
export type SourcesInvalid = { type: 'sources.invalid'; reason: string };

/** config-source-N → config-controller. The source was read for the first time, or has changes. */
export type SourceRead = { type: 'source.read'; source: string; objects: number; problems: number };
/** config-source-N → config-controller. The source does not exist: its last objects apply. */
export type SourceMissing = { type: 'source.missing'; source: string; reason: string };
/** config-source-N → config-controller. The source could not be read or watched: its last objects apply, and it is read again. */
export type SourceFailed = { type: 'source.failed'; source: string; reason: string };

/** config-source-N/watch → config-source-N. The source changed. `place`: path in a directory. */
export type SourceChanged = {
  type: 'source.changed';
  place: string;
  /** Part of a burst, such as `git checkout`: reads before its end may return mixed states. */
  isBurst?: true;
};

/**
 * config-controller → service-registry, jwks. Objects that define services or keys changed. `alongside`: keys of other objects that changed with
 * them. The push of the services includes these.
 */
export type ConfigsChanged = {
  type: 'configs.changed';
  version: string;
  changes: ConfigChange[];
  alongside?: string[];
};

/** discovery → jwks. Fetch the keys of the issuers that RequestAuthentications name. */
export type JwksLoad = { type: 'jwks.load' };
/** jwks → discovery. Each issuer was requested once. `unresponsive`: number of issuers that did not respond within the limit. */
export type JwksSynced = { type: 'jwks.synced'; sources: number; unresponsive: number };

/** key-set-N → jwks. A fetch is due, and starts when a slot is free. */
export type KeyFetchRequested = { type: 'key-fetch.requested'; source: string };
/** key-set-N → jwks. The fetch succeeded or failed, and its slot is free. */
export type KeyFetchFinished = { type: 'key-fetch.finished'; source: string };
/** jwks → key-set-N. A slot is free: start the fetch. */
export type KeyFetchGranted = { type: 'key-fetch.granted' };
/** key-set-N → jwks. The keys of the issuer changed; `version` applies. */
export type KeySetFetched = { type: 'key-set.fetched'; source: string; version: string };
/** key-set-N → jwks. The fetch failed. The last keys apply: `version`, empty before the first fetch. */
export type KeySetFailed = { type: 'key-set.failed'; source: string; version: string; reason: string };
/** key-set-N → jwks. The issuer did not respond within the limit: objects do not wait for it any more. */
export type KeySetLate = { type: 'key-set.late'; source: string };

/** discovery → trust-bundles. Fetch the roots of the bundle endpoints, for which the start does not wait. */
export type BundlesLoad = { type: 'bundles.load' };
/** trust-bundle-N → trust-bundles. The roots of the endpoint changed; `version` applies. */
export type TrustBundleFetched = { type: 'trust-bundle.fetched'; endpoint: string; version: string };
/** trust-bundle-N → trust-bundles. The request failed. The last bundle applies: `version`, empty before the first fetch. */
export type TrustBundleFailed = { type: 'trust-bundle.failed'; endpoint: string; version: string; reason: string };

/** secret-access/accounts → secret-access. Service accounts whose proxies use Secrets: `namespace/name`. */
export type AccountsListed = { type: 'accounts.listed'; accounts: string[] };
/** access-review-N → secret-access. Whether the account may read the Secrets of its namespace has changed. */
export type AccessReviewed = { type: 'access.reviewed'; account: string; allowed: boolean };
/** access-review-N → secret-access. The review failed. The last result applies; without one, no Secrets are served. */
export type AccessUnavailable = { type: 'access.unavailable'; account: string; reason: string };

/** distribution/facts → distribution. Objects of the cluster changed, a proxy rejects or accepts a resource, or an object is rejected. */
export type DistributionChanged = { type: 'distribution.changed' };

/** `Provider/cluster`. Another revision replaces the registry, for example after a change of credentials. */
export type ListedRegistry = { registry: string; revision: string };
/** service-registry/registries → service-registry. All registries. */
export type RegistriesListed = { type: 'registries.listed'; registries: ListedRegistry[] };
/** service-registry/registries → service-registry. Names of network gateways resolve to other addresses. */
export type GatewaysResolved = { type: 'gateways.resolved' };
/** gateway-names/names → gateway-names. All host names of gateways. */
export type GatewayNamesListed = { type: 'gateway-names.listed'; hostnames: string[] };
/** gateway-name-N → gateway-names. The name resolves to other addresses, which apply now. */
export type GatewayNameResolved = { type: 'gateway-name.resolved'; hostname: string; addresses: string[] };
/** gateway-name-N → gateway-names. The name does not resolve. The last `addresses` apply, which may be empty. */
export type GatewayNameFailed = {
  type: 'gateway-name.failed';
  hostname: string;
  addresses: string[];
  reason: string;
};

/** registry-N/feed → registry-N → service-registry. The registry has sent its complete list. */
export type RegistrySynced = { type: 'registry.synced'; registry: string };
/**
 * registry-N/feed → registry-N → service-registry; for the watched cluster, service-registry/registries → service-registry. Services of the
 * registry changed without a change of configuration.
 */
export type RegistryChanged = { type: 'registry.changed'; registry: string };
/** registry-N/feed → registry-N → service-registry → discovery. The registry is unavailable and is restarted: its last services apply. */
export type RegistryFailed = { type: 'registry.failed'; registry: string; reason: string };

/** discovery → service-registry. Compute services and endpoints. */
export type ServicesLoad = { type: 'services.load' };
/** service-registry → discovery. Services and endpoints were computed for the first time. */
export type ServicesSynced = {
  type: 'services.synced';
  services: number;
  endpoints: number;
  /** `Provider/cluster` of registries whose first list exceeded the limit; their services follow later. */
  missing: string[];
};
/** service-registry → discovery. These registries have not sent their first list, so no proxy is served. */
export type ServicesPending = { type: 'services.pending'; registries: string[] };
/** service-registry → discovery. The computation had an internal error: the last services apply. */
export type ServicesFailed = { type: 'services.failed'; reason: string };

/** `configs` may be empty if `forced` is set. */
export type PushOrder = {
  configs: ConfigKeyText[];
  /** All resources are generated again for all proxies. */
  forced: boolean;
  reasons: Partial<Record<PushReason, number>>;
};
/** mesh-config, mesh-networks, config-controller, service-registry, jwks, secret-access, discovery → push. Proxies may need an update. */
export type PushRequest = { type: 'push.request' } & PushOrder;

/** discovery → push. The sources are complete: build the first context, then handle requests. */
export type PushStart = { type: 'push.start' };
/** push → discovery. A context was built and published. `updates`: number of requests that it includes. */
export type ContextBuilt = { type: 'context.built'; version: string; updates: number };
/** push → discovery. Building a context had an internal error: the last one applies. */
export type ContextFailed = { type: 'context.failed'; reason: string };

/** push → push-queue. Push the context of this version to all connected proxies. `startedAt`: time of its publication, Unix time in milliseconds. */
export type ClientsPush = {
  type: 'clients.push';
  version: string;
  forced: boolean;
  configs: ConfigKeyText[];
  startedAt: number;
};
/** push-queue → push. All streams were ordered to push. Their responses may not be sent or acknowledged yet. */
export type ClientsServed = { type: 'clients.served' };
/** discovery → push-queue. Ignore new pushes. Queued proxies get the changes from the server to which they connect next. */
export type QueueDrain = { type: 'queue.drain' };

/**
 * push-queue → discovery/ads-server. Push to these proxies, in this order. `connections`: the N of `ads-connection-N`. `configs`:
 * all changes since their last push. `startedAt`: publication time of the earliest context that they have waited for.
 */
export type ProxiesServe = {
  type: 'proxies.serve';
  connections: number[];
  version: string;
  forced: boolean;
  configs: ConfigKeyText[];
  startedAt: number;
};
/**
 * discovery/ads-server → push-queue. These connections were ordered to push, and slow proxies receive the responses later. Some connections
 * may have ended.
 */
export type ProxiesServed = { type: 'proxies.served'; connections: number[] };
/** discovery/ads-server → push-queue. The client of a stream was accepted, and gets the current context with its first requests. */
export type ProxyConnected = { type: 'proxy.connected'; connection: number };
/** discovery/ads-server → push-queue. The stream of an accepted client ended. */
export type ProxyDisconnected = { type: 'proxy.disconnected'; connection: number };

/** `secure`: the TLS port (`--secureGRPCAddr`). `plaintext`: `--grpcAddr`. */
export type XdsPort = 'secure' | 'plaintext';

/** discovery → discovery/ads-server. Open one gRPC port. */
export type AdsListen = { type: 'ads.listen'; port: XdsPort };
/** discovery/ads-server → discovery. This gRPC port is open. */
export type AdsListening = { type: 'ads.listening'; port: XdsPort; addresses: string[] };
/** discovery/ads-server → discovery. The port cannot be opened, or its server failed. */
export type AdsFailed = { type: 'ads.failed'; reason: string };
/** discovery → discovery/ads-server. Accept no streams any more, and end the existing ones. */
export type AdsDrain = { type: 'ads.drain' };
/** discovery/ads-server → discovery. All streams have ended. */
export type AdsDrained = { type: 'ads.drained' };

/**
 * mesh-config/files, mesh-networks/files, authority/directory, server-certificate/files → the machine that started the effect. A watched file
 * changed.
 */
export type FilesChanged = { type: 'files.changed'; path: string };

export type HttpOrder = HttpOpen | HttpClose | ReadinessBegan | ReadinessEnded;

export type AdsOrder = AdsListen | AdsDrain | ProxiesServe;

export type ProxyReport = ProxyConnected | ProxyDisconnected | ProxiesServed;

export type SettingsReport = SettingsLoaded | SettingsChanged | SettingsRejected;

/** Events that occur for each proxy of every push. Recorded only at trace level `full`. */
export const routineQueueMessages = [
  'proxy.connected',
  'proxy.disconnected',
  'proxies.serve',
  'proxies.served',
] as const satisfies readonly (ProxyReport | ProxiesServe)['type'][];
