/** What the control plane consists of: its statecharts with their effects, and what these work on. */

import { hostname } from 'node:os';
import { fromCallback, fromPromise } from 'xstate';
import {
  type CertificateReading,
  serverCertificateMachine,
} from '../../machines/discovery/authority/server-certificate.machine.ts';
import {
  type ConfigReading,
  configControllerMachine,
} from '../../machines/discovery/config/config-controller.machine.ts';
import { configSourceMachine, type SourceSummary } from '../../machines/discovery/config/config-source.machine.ts';
import { meshConfigMachine, type SettingsReading } from '../../machines/discovery/config/mesh-config.machine.ts';
import { discoveryMachine } from '../../machines/discovery/discovery.machine.ts';
import { jwksMachine, type KeySource } from '../../machines/discovery/jwks/jwks.machine.ts';
import { type IssuerAnswer, keySetMachine } from '../../machines/discovery/jwks/key-set.machine.ts';
import type {
  SettingsName,
  SourcesList,
  SourcesListed,
  SourcesRefused,
  StopSignal,
} from '../../machines/discovery/protocol.ts';
import { type PublishedContext, pushMachine } from '../../machines/discovery/push/push.machine.ts';
import { registryMachine } from '../../machines/discovery/registry/registry.machine.ts';
import {
  type ServicesOrder,
  type ServicesReading,
  serviceRegistryMachine,
} from '../../machines/discovery/registry/service-registry.machine.ts';
import { trustDomainsOf } from '../model/mesh/trust-domains.ts';
import { messageOf } from '../runtime/errors.ts';
import { guardedFetch } from '../runtime/fences/guarded-fetch.ts';
import { faultLog } from '../runtime/fences/uncaught.ts';
import { boundedLogger } from '../runtime/output/bounded-log.ts';
import type { Logger } from '../runtime/output/log.ts';
import { scalarText } from '../runtime/scalar-text.ts';
import type { DebuggerAccess } from '../runtime/trace/debugger-access.ts';
import type { Recorder } from '../runtime/trace/recorder.ts';
import type { TraceEndpoint } from '../runtime/trace/trace-endpoint.ts';
import { adsEffect } from './ads/ads-effect.ts';
import type { AdsServer } from './ads/ads-server.ts';
import type { Authenticator } from './ads/authentication.ts';
import type { ResourceSource } from './ads/resource-source.ts';
import type { AuthoritySettings } from './authority/authority-settings.ts';
import { Signing } from './authority/signing.ts';
import { trustBundlesWithEffects } from './bundles/trust-bundle-effects.ts';
import { type ClusterSigning, clusterSigning, orderedBy, refuseWithoutCluster } from './cluster-signing.ts';
import { ClusterWrites } from './cluster-writes.ts';
import type { SourceAdapters } from './config/config-source.ts';
import { type AskedSources, configSources } from './config/config-sources.ts';
import { watchFile } from './config/file-watch.ts';
import { MeshConfigs } from './config/mesh-configs.ts';
import { SettingsFiles } from './config/settings-files.ts';
import { watchEffect } from './config/watch-effect.ts';
import { credentialDatesWithEffects } from './credentials/credential-dates.ts';
import type { DiscoveryOptions } from './discovery-options.ts';
import { distributionWithEffects } from './distribution/distribution-effects.ts';
import { type FollowedCluster, followedCluster } from './followed-cluster.ts';
import { KeySets } from './jwks/key-sets.ts';
import { secretAccessWithEffects } from './kubernetes/secret-access-effects.ts';
import { StatusInputs } from './leader/status/status-inputs.ts';
import type { ListenAddress } from './listen-address.ts';
import { callerNamespace } from './monitor/debug/known-caller.ts';
import type { DebugAccess, DebugSources } from './monitor/debug-endpoints.ts';
import { httpEffect, type PageOrders } from './monitor/http-effect.ts';
import { DiscoveryMetrics } from './monitor/metrics.ts';
import { StartProgress } from './monitor/start-progress.ts';
import { XdsDebug } from './monitor/xds-debug.ts';
import { PortCertificate } from './port-certificate.ts';
import { EncodedCache } from './push/encoded-cache.ts';
import { MeshResources } from './push/mesh-resources.ts';
import { MeshState } from './push/mesh-state.ts';
import { resourceReferences } from './push/resource-references.ts';
import { ServiceComputations } from './push/service-computations.ts';
import { registeringSource } from './registration/registering-source.ts';
import { registrationsWithEffects } from './registration/registration-effects.ts';
import type { RegistryOffers } from './registry/registry.ts';
import { gatewayNamesWithEffects, listRegistries, runRegistry } from './registry/registry-effects.ts';
import { supportedRegistries } from './registry-names.ts';
import { RemoteClusters } from './remote/remote-clusters.ts';
import { authenticatorsOf, prepareEffect, prepareEnvironment, type StartStages } from './start-stages.ts';

export interface DiscoveryProgram {
  readonly options: DiscoveryOptions;
  readonly log: Logger;
  readonly recorder: Recorder;
  /** Version in one line, for `/version`. */
  readonly version: string;
  /** Offered at every HTTP port; absent: not at all. The caller that made it ends it. */
  /** Of the pages that need a token. The caller that made it withdraws it. */
  readonly access: DebuggerAccess;
  readonly trace?: TraceEndpoint;
  /** Registries beside those that `--registries` names; they may change by themselves, come and go. */
  readonly registries?: RegistryOffers;
  /** Sources of configuration beside directories, by the scheme of their addresses. */
  readonly sources?: SourceAdapters;
  /** PEM: by whom bundle endpoints are known, instead of the roots that Node knows; for tests. */
  readonly bundleAuthorities?: string;
  /** The source of signals; the process itself unless a test says otherwise. */
  readonly signals?: Pick<NodeJS.Process, 'on' | 'off'>;
}

/** Where xDS is served when its only way in is the HTTP port. */
const onlyForHttp: ListenAddress = { host: '127.0.0.1', port: 0 };

/** Characters of what a stranger asked for that are told in the log. */
const longestTarget = 200;

/** What the statecharts' effects work on. */
export class ControlPlane {
  readonly metrics: DiscoveryMetrics;
  readonly progress = new StartProgress();
  /** The cluster that is followed; undefined: none is, or there is none as it was asked for. */
  readonly cluster: FollowedCluster | undefined;
  /** What is written there, by this replica when it is elected to. */
  readonly writes: ClusterWrites | undefined;
  readonly #program: DiscoveryProgram;
  /** Why there is no cluster as it was asked for. */
  #clusterMistake: unknown;
  readonly #configs: MeshConfigs;
  readonly #keySets: KeySets;
  readonly #state: MeshState;
  readonly #cache: EncodedCache;
  readonly #resources: MeshResources;
  #ads: AdsServer | undefined;
  /** What a person orders on a page, once the HTTP server is there. */
  #orders: PageOrders | undefined;
  /** The xDS server listens. */
  #isGrpcOpen = false;
  /** What was said of sources that are passed over. */
  readonly #services = new ServiceComputations();
  #ignoredSources: ReadonlySet<string> = new Set();
  /** Made by a stage of the start, when there is a port with TLS. */
  readonly #authenticators: Authenticator[] = [];
  readonly #portCertificate: PortCertificate | undefined;
  readonly #signing: Signing | undefined;
  readonly #clusterSigning: ClusterSigning;
  readonly #remotes: RemoteClusters;
  readonly #statusInputs = new StatusInputs({
    isWhole: () => this.#state.context !== undefined,
    objects: () => this.#configs.snapshot.set,
    settings: () => this.#state.mesh,
  });

  constructor(program: DiscoveryProgram) {
    const { options } = program;
    // What strangers say goes into lines here and there.
    const log = boundedLogger(program.log);
    this.cluster = this.#follow(options, log);
    const sources = { ...(this.cluster && { k8s: this.cluster.open }), ...program.sources };
    this.#program = { ...program, log, sources };
    const settings = new SettingsFiles(
      ({ file, line, field, message: reason }) =>
        log.scope('mesh-config').warn('settings.warning', { place: `${file}:${line}`, field, reason }),
      options.configLimits,
    );
    const { domain, clusterId } = options;
    this.#configs = new MeshConfigs({
      mesh: () => settings.mesh,
      domain,
      limits: options.configLimits,
      adapters: sources,
    });
    this.#keySets = new KeySets(guardedFetch(options.jwksAddresses), (fields) =>
      log.scope('jwks').warn('issuers.limitExceeded', fields),
    );
    this.#state = new MeshState({
      settings,
      domain,
      clusterId,
      directory: this.#configs,
      registries: options.registries,
      registryOptions: options.registryOptions,
      features: options.features,
      keySets: this.#keySets,
    });
    this.#cache = new EncodedCache({
      maxEntries: options.cacheEntries,
      maxBytes: options.cacheBytes,
      thrashing: ({ remade, entries, bytes }) => {
        log.scope('ads').warn('cache.thrashing', { remade, entries, bytes });
      },
      unencodable: ({ name, schema }, error) => {
        const fields = { resource: name, type: schema.typeName, error: messageOf(error) };
        log.scope('ads').error('resource.unencodable', fields);
      },
      keepsClusters: options.keepsClusters,
      keepsRoutes: options.keepsRoutes,
    });
    this.#resources = new MeshResources({
      context: () => this.#state.context,
      cache: this.#cache,
      clusterAliases: options.clusterAliases,
      ...(this.cluster && {
        secretAccess: this.cluster.secretAccess,
        credentialsWanted: (node, references) => this.cluster?.referenced.refer(node, references),
        readingOf: (reference) => this.cluster?.referenced.readingOf(reference) ?? 'unread',
      }),
      rejections: {
        rejected: (node, typeUrl) => this.writes?.distribution.rejected(node, typeUrl),
        accepted: (node, typeUrl) => this.writes?.distribution.accepted(node, typeUrl),
        left: (node) => this.writes?.distribution.left(node),
      },
      warn: (node, reason) => log.scope('ads').warn('proxy.degraded', { node, reason }),
    });
    this.#state.onPublished((published) => {
      this.#resources.published(published);
      this.writes?.distribution.published(published);
      this.cluster?.select(this.#state.mesh.discoverySelectors);
      this.cluster?.readGranted(published);
    });
    this.#remotes = new RemoteClusters({
      secrets: this.cluster?.remoteSecrets,
      ownCluster: clusterId,
      settings: () => this.#state.registrySettings,
      log: log.scope('cluster'),
    });
    this.metrics = new DiscoveryMetrics({
      version: program.version,
      state: this.#state,
      cache: this.#cache,
      connectedVersions: () => this.#connectedVersions(),
      keyFetches: this.#keySets.counts,
      nodes: () => this.#resources.nodes,
      warned: (warnings) => this.writes?.distribution.warned(warnings),
      isOnlyReplica: () => this.writes?.isOnlyReplica() !== false,
      ...(this.cluster && { refusedObjects: () => this.cluster!.informers.refusedObjects() }),
    });
    this.#configs.onChanges(this.#statusInputs.changed);
    this.#state.onPublished(this.#statusInputs.changed);
    this.#clusterSigning = clusterSigning({
      settings: options.authority,
      cluster: this.cluster,
      trustDomain: () => this.#state.mesh.trustDomain,
      roots: () => this.#signing?.rootsBeside ?? [],
      recorder: program.recorder,
      log: log.scope('authority'),
    });
    this.#configs.onChanges((changes, touched) => {
      this.metrics.configsChanged(changes);
      this.writes?.distribution.joined(touched, new Set(changes.map(({ key }) => key)));
    });
    this.#signing = options.authority && this.#makeSigning(options.authority);
    this.writes = this.cluster && this.#makeWrites(this.cluster);
    this.#portCertificate =
      options.securePort &&
      new PortCertificate({
        port: options.securePort,
        names: options.ownNames,
        inForce: () => this.#signing?.authority.inForce,
        trusted: () => this.#signing?.trusted,
      });
    // The mesh configuration may name other roots.
    this.#state.onPublished(() => {
      if (this.#signing?.meshChanged() === true) this.#portCertificate?.authorityChanged();
    });
  }

  #follow(options: DiscoveryOptions, log: Logger): FollowedCluster | undefined {
    try {
      return followedCluster(options, log.scope('cluster'));
    } catch (error) {
      // Said by the stage of the start that is about it.
      this.#clusterMistake = error;
      return undefined;
    }
  }

  #makeWrites(cluster: FollowedCluster): ClusterWrites {
    return new ClusterWrites({
      ...{ cluster, options: this.#program.options },
      signing: this.#signing,
      clusterSigning: this.#clusterSigning,
      statusInputs: this.#statusInputs,
      configs: () => this.#configs.snapshot,
      limits: {
        onLimited: (listener) => {
          this.#configs.onLimited(listener);
          this.#keySets.onLimited(listener);
        },
      },
      proxies: () => this.#resources.nodes,
      made: (context, typeUrl, shape, names) => this.#cache.made(context, typeUrl, shape, names),
      mesh: () => this.#state.mesh,
      onMesh: (changed) => this.#state.onPublished(changed),
      replicasChanged: () => this.metrics.replicasChanged(),
      log: this.#log('status'),
    });
  }

  #makeSigning(settings: AuthoritySettings): Signing {
    const { shared, signer } = this.#clusterSigning;
    const signing = new Signing({
      settings,
      trustDomains: () => trustDomainsOf(this.#state.mesh),
      mesh: () => this.#state.mesh,
      authenticators: this.#authenticators,
      rootsChanged: (change) => this.#ads?.push(change),
      logger: this.#log('authority'),
      ...(shared && { shared }),
      ...(settings.registers && signer && { registrar: signer }),
      ...(this.#program.bundleAuthorities !== undefined && { bundleAuthorities: this.#program.bundleAuthorities }),
    });
    // In the same turn: whoever is told of other roots finds the port so.
    signing.authority.onChanged(() => this.#portCertificate?.authorityChanged());
    return signing;
  }

  machine() {
    const authority = this.#signing?.machine();
    const serviceRegistry = serviceRegistryMachine.provide({
      actors: {
        listRegistries: listRegistries(this.#state, this.#program.registries ?? this.#remotes.offers),
        gatewayNames: gatewayNamesWithEffects(this.#state.registries.gatewayNames),
        registry: registryMachine.provide({ actors: { runRegistry: runRegistry(this.#state.registries) } }),
        computeServices: fromPromise<ServicesReading, ServicesOrder>(({ input, signal }) =>
          this.#services.run(this.#state.computeServicesInTurns(input.changes, input.registries ?? undefined, signal)),
        ),
      },
    });
    const jwks = jwksMachine.provide({
      actors: {
        findKeySources: fromPromise<KeySource[], undefined>(async () =>
          this.#keySets.sourcesOf(this.#state.configs.set.RequestAuthentication),
        ),
        keySet: keySetMachine.provide({
          actors: {
            fetchKeySet: fromPromise<IssuerAnswer, { source: string; timeoutMs: number }>(({ input, signal }) =>
              this.#keySets.ask(input.source, input.timeoutMs, signal),
            ),
          },
        }),
      },
    });
    const trustBundles = trustBundlesWithEffects(this.#signing?.bundles, () => {
      this.#signing?.bundlesChanged();
      this.#portCertificate?.authorityChanged();
    });
    const push = pushMachine.provide({
      actors: {
        buildContext: fromPromise<PublishedContext, { forced: boolean; configs: string[] }>(({ input }) =>
          this.#buildContext(input),
        ),
      },
    });
    return discoveryMachine.provide({
      actors: {
        ...(this.cluster && {
          apiServer: this.cluster.machine(),
          secretAccess: secretAccessWithEffects(this.cluster.secretAccess),
          registrations: registrationsWithEffects(this.cluster.registrations, this.writes?.orphans),
        }),
        ...(this.writes && { distribution: distributionWithEffects(this.writes.distribution) }),
        remoteClusters: this.#remotes.machine(),
        ...(authority && { authority }),
        ...(this.#clusterSigning.shared && { sharedAuthority: this.#clusterSigning.shared.machine() }),
        ...(this.writes && { elections: this.writes.elections.machine() }),
        ...(this.#portCertificate && { serverCertificate: this.#certificateMachine(this.#portCertificate) }),
        signals: signalEffect(this.#program.signals ?? process),
        prepare: prepareEffect(this.#stages()),
        http: this.#httpEffect(),
        adsServer: this.#adsEffect(),
        meshConfig: this.#settingsMachine(),
        configController: this.#configMachine(),
        serviceRegistry,
        jwks,
        trustBundles,
        credentialDates: credentialDatesWithEffects(() => this.#state.context?.credentials),
        push,
      },
    });
  }

  #settingsMachine() {
    return meshConfigMachine.provide({
      actors: {
        watchFile: watchEffect<{ file: string }>(
          ({ file }, handlers) => {
            const stops = [
              watchFile(file, handlers),
              this.cluster?.watchSettings(() => handlers.changed('the cluster')),
            ];
            return () => {
              for (const stop of stops) stop?.();
            };
          },
          'files.changed',
          this.#log('mesh-config'),
        ),
        readSettings: fromPromise<SettingsReading, { what: SettingsName; file: string }>(({ input }) =>
          this.#readSettings(input),
        ),
      },
      actions: {
        adopt: ({ context }, { version }) => {
          this.#state.settings.adopt(context.what, version);
          this.#remotes.settingsChanged();
        },
      },
    });
  }

  /** A file counts before what a cluster has. */
  async #readSettings({ what, file }: { what: SettingsName; file: string }): Promise<SettingsReading> {
    const { settings } = this.#state;
    const reading = settings.read(what, file);
    if (reading.outcome !== 'absent' || this.cluster === undefined) return reading;
    return settings.readTexts(what, await this.cluster.settings.read(what));
  }

  #configMachine() {
    return configControllerMachine.provide({
      actors: {
        configSource: configSourceMachine.provide({
          actors: {
            watchSource: watchEffect<{ source: string }>(
              ({ source }, handlers) => this.#configs.watch(source, handlers),
              'source.moved',
              this.#log('config-controller'),
            ),
            readSource: fromPromise<SourceSummary, { source: string; places: string[] }>(async ({ input }) =>
              this.#configs.readSource(input.source, input.places),
            ),
          },
        }),
        listSources: fromCallback<SourcesList, undefined>(({ sendBack, receive }) => {
          receive(() => sendBack(this.#listSources()));
        }),
        joinSources: fromPromise<ConfigReading, { sources: string[]; known: string[] }>(({ input, signal }) =>
          this.#configs.join(input.sources, input.known, signal),
        ),
      },
    });
  }

  #certificateMachine(certificate: PortCertificate) {
    return serverCertificateMachine.provide({
      actors: {
        watchCertificate: watchEffect<undefined>(
          (_, handlers) => certificate.watch(handlers),
          'files.changed',
          this.#log('server-certificate'),
        ),
        readCertificate: fromPromise<CertificateReading, undefined>(async () => certificate.read()),
      },
    });
  }

  #log(scope: string): Logger {
    return this.#program.log.scope(scope);
  }

  #stages(): StartStages {
    const { options, log } = this.#program;
    return {
      environment: () => {
        if (this.#clusterMistake !== undefined) throw this.#clusterMistake;
        if (options.authority !== undefined) refuseWithoutCluster(options.authority, this.#clusterSigning);
        prepareEnvironment(options, this.cluster?.url, log);
      },
      'config-sources': () => {
        configSources(this.#askedSources, this.#state.mesh, this.#program.sources);
      },
      registries: () => {
        supportedRegistries(options.registries);
      },
      'server-certificates': () => {
        const { serialNumber, notAfter } = this.#portCertificate!.begin();
        log.info('certificate.loaded', { serialNumber, notAfter: notAfter.toISOString() });
      },
      authenticators: async () => {
        const mesh = () => this.#state.mesh;
        const { revoked } = this.#signing ?? {};
        const remoteServer = (id: string) => this.#remotes.serverOf(id);
        this.#authenticators.push(
          ...(await authenticatorsOf(options, mesh, revoked, this.cluster?.server, remoteServer)),
        );
      },
    };
  }

  /** Which clusters are waited for, in words for people. */
  get #awaited(): string {
    return [this.cluster?.awaited ?? '', this.#remotes.awaited, this.#clusterSigning.shared?.awaited ?? '']
      .filter((text) => text !== '')
      .join(', ');
  }

  get #askedSources(): AskedSources {
    return { ...this.#program.options, cluster: [...(this.cluster?.sources.keys() ?? [])] };
  }

  #listSources(): SourcesListed | SourcesRefused {
    const { log, sources: adapters } = this.#program;
    try {
      const { sources, ignored } = configSources(this.#askedSources, this.#state.mesh, adapters);
      for (const [source, reason] of ignored) {
        if (!this.#ignoredSources.has(source)) log.warn('option.configSourceIgnored', { source, reason });
      }
      this.#ignoredSources = new Set(ignored.keys());
      return { type: 'sources.listed', sources: [...sources] };
    } catch (error) {
      return { type: 'sources.refused', reason: messageOf(error) };
    }
  }

  async #buildContext({ forced, configs }: { forced: boolean; configs: string[] }): Promise<PublishedContext> {
    const start = performance.now();
    await this.#services.settled();
    const { version } = await this.#state.publishContextInTurns({ forced, changed: configs });
    this.metrics.contextPublished(performance.now() - start);
    return { version, publishedAt: Date.now() };
  }

  #httpEffect() {
    const { options, access, trace, version } = this.#program;
    const report = faultLog(this.#log('http'), 'http.requestFailed');
    return httpEffect({
      failed: (error, { method, target }) => report(error, { method, target: target.slice(0, longestTarget) }),
      addresses: options.httpAddresses,
      connections: options.httpConnections,
      version,
      metrics: this.metrics,
      // Without a port of its own, xDS is served here as well.
      ...(options.grpcAddress === undefined && { grpc: (socket) => this.#isGrpcOpen && this.#ads!.take(socket) }),
      ...(options.servesDebug && { debug: { ...this.#debugSources(), access: this.#debugAccess() } }),
      opened: (orders) => {
        this.#orders = orders;
      },
      access,
      profile: options.profile,
      heapSnapshots: options.heapSnapshots,
      waitsFor: () => this.progress.textWith(this.#awaited),
      unreadable: () => this.#configs.unreadable,
      ...(trace !== undefined && { trace }),
    });
  }

  #debugSources(): DebugSources {
    const { options } = this.#program;
    return {
      state: this.#state,
      resources: this.#resources,
      cache: this.#cache,
      connections: () => this.#ads?.connections() ?? [],
      disconnect: ({ id }) => this.#ads?.disconnect(id) ?? false,
      pushAll: () => this.#orders?.pushAll(),
      ...(this.#signing && {
        authority: {
          describe: () => this.#signing!.describe(),
          missing: () => this.#signing!.ledger.missing,
          rotate: (order) => this.#orders?.rotateRoot(order),
          ...orderedBy(this.cluster),
        },
      }),
      clusterId: options.clusterId,
      secretOfCluster: (cluster) => this.#remotes.secretOf(cluster),
      unreachableCluster: (cluster) =>
        cluster === options.clusterId ? this.cluster?.unreachable : this.#remotes.unreachable(cluster),
      unsafeAdmin: options.unsafeAdminEndpoints,
    };
  }

  #debugAccess(): DebugAccess {
    const { options, access } = this.#program;
    return {
      token: access,
      localNeedsToken: options.debugLocalNeedsToken,
      namespaceOf: callerNamespace(this.#authenticators),
      checksNamespace: options.debugNamespaceAuth,
      rootNamespace: () => this.#state.mesh.rootNamespace,
      allowedNamespaces: options.debugNamespaces,
    };
  }

  #adsEffect() {
    const { options, recorder, version } = this.#program;
    const sources = this.#debugSources();
    const debug = new XdsDebug({ sources, access: this.#debugAccess() });
    return adsEffect({
      address: options.grpcAddress ?? onlyForHttp,
      ...(options.securePort !== undefined && {
        securePort: { address: options.securePort.address, credentials: () => this.#portCertificate!.credentials },
      }),
      shutdownMs: options.shutdownMs,
      source: this.#source,
      // Tools such as istioctl look for the component by its name in Istio.
      identifier: JSON.stringify({ Component: 'istiod', ID: hostname(), Info: { version } }),
      logger: this.#log('ads'),
      recorder,
      observer: this.metrics,
      isReady: () => this.#state.context !== undefined,
      authenticators: this.#authenticators,
      checksIdentity: options.checksIdentity,
      secretsOnPlaintext: options.secretsOnPlaintext,
      oneShot: (question) => debug.answer(question),
      ...(this.#signing && { unary: this.#signing.service }),
      limits: {
        ...options.clientLimits,
        streamsPerSecond: options.streamsPerSecond,
        maxRequestBytes: options.maxRequestBytes,
        maxConcurrentStreams: options.maxConcurrentStreams,
        keepaliveTimeMs: options.keepaliveIntervalMs,
        keepaliveTimeoutMs: options.keepaliveTimeoutMs,
        maxConnectionAgeMs: options.maxConnectionAgeMs,
        makeBeforeBreakMs: options.makeBeforeBreakMs,
        removalDelayMs: options.removalDelayMs,
      },
      ...(options.makeBeforeBreakMs > 0 && { references: resourceReferences }),
      made: (server) => {
        this.#ads = server;
      },
      listening: () => {
        this.#isGrpcOpen = true;
      },
    });
  }

  /** What proxies are served from. */
  get #source(): ResourceSource {
    const { clusterAliases, registration } = this.#program.options;
    const source = this.#signing?.roots.beside(this.#resources) ?? this.#resources;
    if (this.cluster === undefined || !registration.enabled) return source;
    const { registrations } = this.cluster;
    return registeringSource(source, { registrations, clusterAliases, healthChecks: registration.healthChecks });
  }

  *#connectedVersions(): Iterable<string> {
    for (const { proxy } of this.#resources.nodes) yield scalarText(proxy.metadata.ISTIO_VERSION) || 'unknown';
  }
}

function signalEffect(source: Pick<NodeJS.Process, 'on' | 'off'>) {
  return fromCallback<{ type: never }, undefined>(({ sendBack }) => {
    const handled: readonly StopSignal[] = ['SIGTERM', 'SIGINT'];
    const listener = (signal: NodeJS.Signals): void => {
      sendBack({ type: 'signal.received', signal });
    };
    for (const signal of handled) source.on(signal, listener);
    return () => {
      for (const signal of handled) source.off(signal, listener);
    };
  });
}
