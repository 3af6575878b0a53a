/**
 * Every event that passes between two actors of pilot-discovery (ADS connections have theirs in ads-protocol.ts),
 * declared once: who sends it, who receives it. The order in which they may pass is in sequences/*.mmd; as a table they are
 * in event-catalogue.ts.
 *
 * `noun.happened` is a fact, `noun.order` an order. Events name objects and versions; the objects themselves never
 * travel in them: they lie in immutable snapshots on the side of the effects (src/discovery).
 */

/** `Kind/namespace/name` of a configuration object; for services and endpoints the name is the host name. */
export type ConfigKeyText = string;

/** What became of one object. */
export type ConfigEventKind = 'add' | 'update' | 'delete';

/** One object that is not what it was. */
export type ConfigChange = { key: ConfigKeyText; event: ConfigEventKind };

/**
 * Where a person corrects it: in a line of a file (1-based; 0 when the whole file is meant), or in a source whose objects
 * have no files, as a cluster's: then the problem's object and field say where in it.
 */
export type ConfigPlace = { file: string; line: number } | { source: string };

/** What a person must correct: where, and what is wrong. */
export type ConfigProblem = {
  /** An error keeps the object out of force, a warning does not. */
  severity: 'error' | 'warning';
  place: ConfigPlace;
  /** `VirtualService shop/web`, empty when what is there cannot even be parsed. */
  object: string;
  /** Path within the object, `spec.http[0].route`; empty when the object as a whole is meant. */
  field: string;
  message: string;
  /** Stable name of what is wrong, `FIELD_REQUIRED`; absent where a file or a source cannot be read. */
  code?: string;
  /** What is closed, because there is no earlier version of the object; absent: the last good one is in force, or none is needed. */
  closed?: string;
};

/** Why a push is asked for: the label of `pilot_push_triggers` (spec/discovery.md §6.1). */
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

// ---- outside → discovery (the signal effect)

export type StopSignal = 'SIGTERM' | 'SIGINT';

/** discovery/signals → discovery. The operating system delivered a signal to this process. */
export type SignalReceived = { type: 'signal.received'; signal: StopSignal };

// ---- stages of the start that prepare something and end

/** Each is an effect of `discovery` with this name, in this order (spec/discovery.md §2.1); they report by ending. */
export type PreparedStage = 'environment' | 'config-sources' | 'registries' | 'server-certificates' | 'authenticators';

// ---- discovery ↔ mesh-config, mesh-networks (two actors of one machine)

export type SettingsName = 'mesh' | 'networks';

/** discovery → mesh-config, mesh-networks. Watch the file and read it. */
export type SettingsLoad = { type: 'settings.load' };
/**
 * mesh-config, mesh-networks → discovery. There is a first value: the file's, or the defaults when there is no file or
 * no valid one.
 */
export type SettingsLoaded = {
  type: 'settings.loaded';
  what: SettingsName;
  origin: 'file' | 'config map' | 'defaults';
  version: string;
};
/** mesh-config, mesh-networks → discovery. Another value is in force. */
export type SettingsChanged = { type: 'settings.changed'; what: SettingsName; version: string };
/** mesh-config → config-controller, trust-bundles. Another mesh configuration is in force: it may name other sources, or other bundle endpoints. */
export type MeshChanged = { type: 'mesh.changed' };
/** mesh-config, mesh-networks → discovery. The file is no good; what was in force stays in force. */
export type SettingsRejected = { type: 'settings.rejected'; what: SettingsName; problems: ConfigProblem[] };

// ---- discovery ↔ discovery/http

/** discovery → discovery/http. Open the HTTP ports. */
export type HttpOpen = { type: 'http.open' };
/** discovery/http → discovery. All HTTP ports are open. */
export type HttpListening = { type: 'http.listening'; addresses: string[] };
/** discovery/http → discovery. A port cannot be opened, or its server broke. */
export type HttpFailed = { type: 'http.failed'; reason: string };
/** discovery → discovery/http. `/ready` answers 200 from now on. */
export type ReadinessBegan = { type: 'readiness.began' };
/** discovery → discovery/http. `/ready` answers 503 from now on. */
export type ReadinessEnded = { type: 'readiness.ended' };
/** discovery/http → discovery. Somebody wants everything pushed to everyone (`/debug/adsz?push=true`). */
export type PushWanted = { type: 'push.wanted' };
/** discovery → discovery/http. Close the ports once running requests are answered. */
export type HttpClose = { type: 'http.close' };
/** discovery/http → discovery. All HTTP ports are closed. */
export type HttpClosed = { type: 'http.closed' };

// ---- discovery ↔ config-controller

/** discovery → config-controller. Find the sources of configuration, watch them and read them. */
export type ConfigsLoad = { type: 'configs.load' };
/** config-controller → discovery. These have not been read: nothing is known of what to serve. */
export type ConfigsAwaited = { type: 'configs.awaited'; sources: string[] };
/** config-controller → discovery. These were named while the program runs, and have not been read: what is in force stays. */
export type SourcesAwaited = { type: 'sources.awaited'; sources: string[] };
/** config-controller → discovery. The sources were read once, whatever was wrong in them. */
export type ConfigsSynced = { type: 'configs.synced'; version: string; objects: number; problems: number };
/** config-controller → discovery. A source is not there to be read: what to serve is unknown. */
export type ConfigsFailed = { type: 'configs.failed'; reason: string };
/** config-controller, service-registry → discovery. Objects or files are invalid; their last valid versions still apply. */
export type ConfigsRejected = { type: 'configs.rejected'; problems: ConfigProblem[] };
/** config-controller, service-registry → discovery. Reported problems are resolved. */
export type ConfigRecovered = { type: 'config.recovered'; places: string[] };

// ---- config-controller ↔ config-controller/sources

/** config-controller → config-controller/sources. Say which sources there are now. */
export type SourcesList = { type: 'sources.list' };
/**
 * config-controller/sources → config-controller. These there are, and no others: addresses (`fs:///etc/mesh`), the first that
 * has an object counts.
 */
export type SourcesListed = { type: 'sources.listed'; sources: string[] };
/** config-controller/sources → config-controller. What is asked for cannot be sources: an address is none. */
export type SourcesRefused = { type: 'sources.refused'; reason: string };

// ---- config-source-N → config-controller

/** config-source-N → config-controller. It was read; the first time, or with something that is not what it was. */
export type SourceRead = { type: 'source.read'; source: string; objects: number; problems: number };
/** config-source-N → config-controller. There is nothing to read where it should be; what it had stays in force. */
export type SourceMissing = { type: 'source.missing'; source: string; reason: string };
/** config-source-N → config-controller. It could not be read or watched; what it had stays in force, and it is tried again. */
export type SourceFailed = { type: 'source.failed'; source: string; reason: string };

// ---- config-source-N/watch → config-source-N

/** config-source-N/watch → config-source-N. Something happened: in a directory, the path of it. `isBurst`: very much happens at once. */
export type SourceMoved = {
  type: 'source.moved';
  place: string;
  /** One of very many events at once, as of `git checkout`: until the source is quiet, readings show mixed states. */
  isBurst?: true;
};

// ---- config-controller → service-registry, jwks

/**
 * config-controller → service-registry, jwks. Objects that services, or keys, are made from changed. `alongside`: keys of other objects that
 * changed with them, which the push of the services includes: routes must not be pushed before the services that they lead to.
 */
export type ConfigsChanged = {
  type: 'configs.changed';
  version: string;
  changes: ConfigChange[];
  alongside?: string[];
};

// ---- discovery, config-controller ↔ jwks

/** discovery → jwks. Have the keys of the issuers that RequestAuthentications name. */
export type JwksLoad = { type: 'jwks.load' };
/**
 * jwks → discovery. Each issuer was asked once; `unanswered` counts those that have not answered, which nobody waits for
 * any longer.
 */
export type JwksSynced = { type: 'jwks.synced'; sources: number; unanswered: number };
// config-controller → jwks: configs.changed, as to service-registry. RequestAuthentications changed.

// ---- key-set-N ↔ jwks

/** key-set-N → jwks. It is time to ask the issuer again, as soon as a slot is free. */
export type KeyFetchRequested = { type: 'key-fetch.requested'; source: string };
/** key-set-N → jwks. The issuer has answered or failed: its slot is free. */
export type KeyFetchFinished = { type: 'key-fetch.finished'; source: string };
/** jwks → key-set-N. A slot is free: ask the issuer now. */
export type KeyFetchGranted = { type: 'key-fetch.granted' };
/** key-set-N → jwks. The issuer's keys are others than before; they are in force under this version. */
export type KeySetFetched = { type: 'key-set.fetched'; source: string; version: string };
/** key-set-N → jwks. The issuer was asked in vain. What was fetched before stays in force: `version`, empty for nothing. */
export type KeySetFailed = { type: 'key-set.failed'; source: string; version: string; reason: string };
/** key-set-N → jwks. The issuer has neither answered nor failed, and objects are not to wait for it any longer. */
export type KeySetLate = { type: 'key-set.late'; source: string };

// ---- discovery → trust-bundles, trust-bundle-N → trust-bundles

/** discovery → trust-bundles. Have the roots that the mesh configuration names by an address. Nobody waits for them. */
export type BundlesLoad = { type: 'bundles.load' };
/** trust-bundle-N → trust-bundles. The endpoint's roots are others than before; they are in force under this version. */
export type TrustBundleFetched = { type: 'trust-bundle.fetched'; endpoint: string; version: string };
/**
 * trust-bundle-N → trust-bundles. The endpoint was asked in vain. What was fetched before stays in force: `version`, empty for
 * nothing.
 */
export type TrustBundleFailed = { type: 'trust-bundle.failed'; endpoint: string; version: string; reason: string };

// ---- secret-access/accounts → secret-access, access-review-N → secret-access

/** secret-access/accounts → secret-access. Proxies of these service accounts ask for Secrets: `namespace/name`, all that there are. */
export type AccountsWanted = { type: 'accounts.wanted'; accounts: string[] };
/** access-review-N → secret-access. The API server says otherwise than before whether the account may read the Secrets of its namespace. */
export type AccessReviewed = { type: 'access.reviewed'; account: string; allowed: boolean };
/** access-review-N → secret-access. The API server was asked in vain; the last answer holds, and without one there are no Secrets. */
export type AccessUnanswered = { type: 'access.unanswered'; account: string; reason: string };

// ---- distribution/facts → distribution

/**
 * distribution/facts → distribution. Objects of the cluster are others, a proxy rejects what some of them led to or takes it again, or one
 * of them is refused: told once before each look.
 */
export type DistributionStirred = { type: 'distribution.stirred' };

// ---- service-registry/registries → service-registry

/** Which registry: `Provider/cluster`. Another revision: another registry in its place, as after new credentials. */
export type ListedRegistry = { registry: string; revision: string };
/** service-registry/registries → service-registry. These registries there are, and no others. */
export type RegistriesListed = { type: 'registries.listed'; registries: ListedRegistry[] };
/** service-registry/registries → service-registry. Names of networks' gateways resolve to other addresses. */
export type GatewaysResolved = { type: 'gateways.resolved' };
/** gateway-names/wanted → gateway-names. Gateways have these host names, and no others. */
export type GatewayNamesWanted = { type: 'gateway-names.wanted'; hostnames: string[] };
/** gateway-name-N → gateway-names. It resolves to other addresses than before; they are in force. */
export type GatewayNameResolved = { type: 'gateway-name.resolved'; hostname: string; addresses: string[] };
/** gateway-name-N → gateway-names. It does not resolve, for now. The last addresses stay in force: `addresses`, which may be none. */
export type GatewayNameFailed = {
  type: 'gateway-name.failed';
  hostname: string;
  addresses: string[];
  reason: string;
};

// ---- registry-N/feed → registry-N → service-registry

/** registry-N/feed → registry-N → service-registry. All that the registry has was handed over. */
export type RegistrySynced = { type: 'registry.synced'; registry: string };
/**
 * registry-N/feed → registry-N → service-registry; of the followed cluster, service-registry/registries → service-registry. The registry has
 * changes, the configuration has none.
 */
export type RegistryChanged = { type: 'registry.changed'; registry: string };
/**
 * registry-N/feed → registry-N → service-registry → discovery. It cannot be had, and is tried again; what it handed over
 * stays in force.
 */
export type RegistryFailed = { type: 'registry.failed'; registry: string; reason: string };

// ---- discovery ↔ service-registry

/** discovery → service-registry. Make services and endpoints of what there is. */
export type ServicesLoad = { type: 'services.load' };
/** service-registry → discovery. Services and endpoints were made once. */
export type ServicesSynced = {
  type: 'services.synced';
  services: number;
  endpoints: number;
  /** `Provider/cluster` of registries whose first list did not come in time: what they have follows. */
  missing: string[];
};
/** service-registry → discovery. These have not handed over their first list: proxies are not served yet. */
export type ServicesAwaited = { type: 'services.awaited'; registries: string[] };
/** service-registry → discovery. They could not be made: a fault of ours; the last ones stay in force. */
export type ServicesFailed = { type: 'services.failed'; reason: string };

// ---- mesh-config, mesh-networks, config-controller, service-registry, jwks, discovery → push

/** What is asked of `push`. `configs` may be empty when it is forced. */
export type PushOrder = {
  configs: ConfigKeyText[];
  /** Everything is made anew for everyone. */
  forced: boolean;
  reasons: Partial<Record<PushReason, number>>;
};
/** mesh-config, mesh-networks, config-controller, service-registry, jwks, secret-access, discovery → push. Proxies may need an update. */
export type PushRequest = { type: 'push.request' } & PushOrder;

// ---- discovery ↔ push

/** discovery → push. The sources are complete: build the first context, then serve requests. */
export type PushStart = { type: 'push.start' };
/** push → discovery. A context was built and published. `updates` counts the requests that it answers. */
export type ContextBuilt = { type: 'context.built'; version: string; updates: number };
/** push → discovery. A context could not be built: a fault of ours; the last one stays in force. */
export type ContextFailed = { type: 'context.failed'; reason: string };

// ---- push ↔ push-queue, discovery → push-queue

/**
 * push → push-queue. Bring every connected proxy that this concerns to the context of this version. `startedAt`: when that
 * was published, Unix time in milliseconds.
 */
export type ClientsPush = {
  type: 'clients.push';
  version: string;
  forced: boolean;
  configs: ConfigKeyText[];
  startedAt: number;
};
/** push-queue → push. Every proxy has had its turn with all that was pushed. */
export type ClientsServed = { type: 'clients.served' };
/** discovery → push-queue. Take nothing new; serve those who wait. */
export type QueueDrain = { type: 'queue.drain' };

// ---- push-queue ↔ discovery/ads-server

/**
 * push-queue → discovery/ads-server. Bring these proxies up to date, in this order: `connections` are the N of
 * `ads-connection-N`, `configs` all that has changed for them since their last turn, `startedAt` is the time of the earliest
 * of the pushes that they have waited with.
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
 * discovery/ads-server → push-queue. They have taken it over: what they are to be sent is on its way, or waits for them
 * alone. Connections that have ended meanwhile may be among them.
 */
export type ProxiesServed = { type: 'proxies.served'; connections: number[] };
/** discovery/ads-server → push-queue. The client of a stream was accepted; it will be answered from the present context. */
export type ProxyJoined = { type: 'proxy.joined'; connection: number };
/** discovery/ads-server → push-queue. An accepted client is gone. */
export type ProxyLeft = { type: 'proxy.left'; connection: number };

// ---- discovery ↔ discovery/ads-server

/** `secure` is the port with TLS (`--secureGRPCAddr`), `plaintext` the one without (`--grpcAddr`). */
export type XdsPort = 'secure' | 'plaintext';

/** discovery → discovery/ads-server. Open one gRPC port. */
export type AdsListen = { type: 'ads.listen'; port: XdsPort };
/** discovery/ads-server → discovery. This gRPC port is open. */
export type AdsListening = { type: 'ads.listening'; port: XdsPort; addresses: string[] };
/** discovery/ads-server → discovery. The port cannot be opened, or its server broke. */
export type AdsFailed = { type: 'ads.failed'; reason: string };
/** discovery → discovery/ads-server. Take no new streams, and let those end that there are. */
export type AdsDrain = { type: 'ads.drain' };
/** discovery/ads-server → discovery. No stream is left. */
export type AdsDrained = { type: 'ads.drained' };

// ---- machines ↔ their file effects

/** mesh-config/files, mesh-networks/files, authority/directory, server-certificate/files → their machine. Something happened to a watched file. */
export type FilesChanged = { type: 'files.changed'; path: string };

/** What `discovery` orders its HTTP server to do. */
export type HttpOrder = HttpOpen | HttpClose | ReadinessBegan | ReadinessEnded;

/** What `discovery` and `push-queue` order the xDS server to do. */
export type AdsOrder = AdsListen | AdsDrain | ProxiesServe;

/** What the xDS server tells `push-queue`. */
export type ProxyReport = ProxyJoined | ProxyLeft | ProxiesServed;

/** What the settings actors tell their parent. */
export type SettingsReport = SettingsLoaded | SettingsChanged | SettingsRejected;

/**
 * The ordinary run of the push queue: each passes for every proxy, or for every few proxies of every push. A trace leaves
 * them out unless all is asked for; `clients.push` and the queue's changes of state are in every trace.
 */
export const routineQueueMessages = [
  'proxy.joined',
  'proxy.left',
  'proxies.serve',
  'proxies.served',
] as const satisfies readonly (ProxyReport | ProxiesServe)['type'][];
