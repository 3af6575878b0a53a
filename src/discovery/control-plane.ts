import { hostname } from 'node:os';
import { boundedLogger } from '../runtime/output/bounded-log.ts';
import type { Logger } from '../runtime/output/log.ts';
import { type Ca, makeCa } from './ca/make-ca.ts';
import { makeChanges } from './changes/make-changes.ts';
import type { FollowedCluster } from './cluster/followed-cluster.ts';
import { makeCluster } from './cluster/make-cluster.ts';
import { makeConfig } from './config/make-config.ts';
import { makeConfigServer } from './config-server/make-config-server.ts';
import { makeConsul } from './consul/make-consul.ts';
import { makeControllers } from './controllers/make-controllers.ts';
import { discoveryWithEffects } from './discovery.effects.ts';
import type { DiscoveryProgram } from './discovery-program.ts';
import { type DistributionService, makeDistribution } from './distribution/make-distribution.ts';
import { makeJwks } from './jwks/make-jwks.ts';
import { makeMonitor } from './monitor/make-monitor.ts';
import { makeNames } from './names/make-names.ts';
import type { DiscoveryOptions } from './options/discovery-options.ts';
import { makePush } from './push/make-push.ts';
import { makeRegistration } from './registration/make-registration.ts';
import { makeRegistry } from './registry/make-registry.ts';
import { makeRemote } from './remote/make-remote.ts';
import { makeSecrets } from './secrets/make-secrets.ts';
import { makeStages } from './start-stages.ts';
import { makeWebhooks } from './webhooks/make-webhooks.ts';
import type { Authenticator } from './xds/access/authenticator.ts';
import { makeXds } from './xds/make-xds.ts';

export type ControlPlaneParts = ReturnType<typeof makeControlPlane>;

export function makeControlPlane(program: DiscoveryProgram) {
  const { options, recorder, version } = program;
  // Lines are limited in length, because they contain text from clients.
  const log = boundedLogger(program.log);
  const { cluster, problem } = clusterOf(options, log.scope('cluster'));
  const authenticators: Authenticator[] = [];
  // Assigned below, because some parts report to parts that are created later.
  let distribution: DistributionService | undefined;
  let ca: Ca | undefined;

  const config = makeConfig({
    options: { ...options, cluster: [...(cluster?.sources.keys() ?? [])] },
    adapters: { ...(cluster && { k8s: cluster.open }), ...program.sources },
    cluster: cluster && {
      read: (settingsKind) => cluster.settings.read(settingsKind),
      watch: (onChanged) => cluster.watchSettings(onChanged),
    },
    mesh: () => mesh(),
    ownIdentity: () => ca?.signing?.identityOf(options.namespace),
    ...{ recorder, log },
  });
  const { configs, settings } = config;
  const jwks = makeJwks({
    addresses: options.jwksAddresses,
    policies: () => state.configs.set.RequestAuthentication,
    log: log.scope('jwks'),
  });
  const changes = makeChanges(cluster?.workloads);
  const push = makePush({
    ...{ options, settings, meshConfigs: configs, cluster: cluster?.workloads, log: log.scope('ads') },
    ...{ keySets: jwks.keySets, responses: changes.history },
    ...(cluster && {
      secretAccess: cluster.secretAccess,
      onCredentialsNeeded: (node, references) => cluster.referencedObjects.setReferences(node, references),
      readingOf: (reference) => cluster.referencedObjects.stateOf(reference),
    }),
    rejections: {
      onRejected: (node, typeUrl) => distribution?.objects.onRejected(node, typeUrl),
      onAccepted: (node, typeUrl) => distribution?.objects.onAccepted(node, typeUrl),
      disconnected: (node) => distribution?.objects.disconnected(node),
    },
  });
  const { state, cache, resources } = push;
  const mesh = () => state.mesh;
  const remote = makeRemote({
    secrets: cluster?.remoteSecrets,
    ownCluster: options.clusterId,
    settings: () => state.registrySettings,
    log: log.scope('cluster'),
  });
  const remotes = remote.clusters;
  const consul = makeConsul(options.consul, () => state.registrySettings, log.scope('consul'));
  const xds = makeXds(options);
  const configServer = makeConfigServer({
    ...{ configs, requiresIdentity: options.configNeedsIdentity, log: log.scope('config-server') },
    rootNamespace: () => mesh().rootNamespace,
    push: (change) => xds.push(change),
  });
  ca = makeCa({
    ...{ settings: options.authority, securePort: options.securePort, names: options.ownNames },
    ...{ cluster, mesh, authenticators, recorder, log, bundleAuthorities: program.bundleAuthorities },
    rootsChanged: (change) => xds.push(change),
  });
  const { signing, ofCluster, portCertificate } = ca;
  const names = makeNames({ options, context: () => state.context, mesh, ca });
  const webhooks = makeWebhooks({
    ...{
      options,
      configMap: cluster?.injectorSettings,
      cluster: cluster?.injection,
      mesh,
      objects: () => state.configs.set,
      ca,
      log: log.scope('webhooks'),
    },
  });
  const monitor = makeMonitor({
    ...{ options, version, access: program.access, trace: program.trace, log, authenticators },
    ...{ state, cache, resources, configSources: config.xdsSources, history: changes.history, ...ca.known },
    keyFetches: jwks.keySets.counts,
    reportWarnings: (warnings) => controllers?.writes.reportWarnings(warnings),
    isOnlyReplica: () => distribution?.isOnlyReplica() !== false,
    ...(cluster && { refusedObjects: () => cluster.informers.refusedObjects() }),
    consul: consul.registries,
    ...(names && { nameQueries: names.counts }),
    ...(webhooks && { webhooks: webhooks.counts, describeInjection: webhooks.describe }),
    ...(signing && { certificates: { expiry: () => signing.expiry, issuance: signing.issuance } }),
    connections: () => xds.connections(),
    disconnect: ({ id }) => xds.disconnect(id),
    secretOfCluster: (id) => remotes.secretOf(id),
    unreachableCluster: (id) => (id === options.clusterId ? cluster?.unreachableReason : remotes.unreachableReason(id)),
    authority: signing && {
      describe: () => signing.describe(),
      missingWorkloads: () => signing.ledger.missingWorkloads,
      ...ca.ordered,
    },
    grpc: (socket) => xds.serveSocket(socket),
    unreadable: () => configs.unreadable,
    awaitedText: () =>
      [cluster?.awaitedText ?? '', remotes.unsyncedText, ofCluster.shared?.unavailableReason ?? '']
        .filter((text) => text !== '')
        .join(', '),
  });
  const { metrics, progress } = monitor;
  distribution =
    cluster &&
    makeDistribution({
      ...{ cluster, limits: push, log: log.scope('status') },
      options: { namespace: options.namespace, revision: options.revision, leaseMs: options.leaseMs },
      configs: () => configs.snapshot,
      proxies: () => resources.nodes,
      generate: (context, typeUrl, shape, names) => cache.generate(context, typeUrl, shape, names),
      isWriter: (): boolean => controllers?.writes.writesStatuses === true,
      onReplicasChanged: () => metrics.replicasChanged(),
    });
  const onInputsChanged = (): void => controllers?.inputsChanged();

  changes.follow(state, configs);
  state.onPublished((publication) => {
    distribution?.objects.onPublished(publication);
    cluster?.setSelectors(state.mesh.discoverySelectors);
    cluster?.readGranted(publication);
  });
  state.onPublished(onInputsChanged);
  configs.onChanges(onInputsChanged);
  configs.onChanges((changedObjects, touchedKeys) => {
    metrics.configsChanged(changedObjects);
    distribution?.objects.objectsComposed(touchedKeys, new Set(changedObjects.map(({ key }) => key)));
  });
  state.onReported(({ events }) => {
    if (events.length === 0) return;
    metrics.configsChanged(events);
    onInputsChanged();
  });
  const controllers =
    cluster &&
    makeControllers({
      ...{ cluster, options, signing, clusterSigning: ofCluster, mesh, log: log.scope('status') },
      distribution: distribution!.objects,
      limits: push,
      isComplete: () => state.context !== undefined,
      objects: () => state.objects,
      onMesh: (changedObjects) => state.onPublished(changedObjects),
      ...(webhooks && { injection: webhooks }),
    });
  state.onPublished(ca.meshChanged);

  const registration = makeRegistration({
    ...{ registrations: cluster?.registrations, options: options.registration, clusterAliases: options.clusterAliases },
    orphans: () => controllers?.writes.orphans,
  });
  const secrets = makeSecrets({ access: cluster?.secretAccess, credentials: () => state.context?.credentials });
  const registry = makeRegistry({ state, offers: consul.joinOffersOfConsul(program.registries ?? remotes.offers) });
  const source = () =>
    configServer.withFallback(registration.extend(signing?.roots.addRootsTo(resources) ?? resources));

  const stages = makeStages({ options, cluster, problem, config, ca, remotes, mesh, authenticators, log });

  const machine = () =>
    discoveryWithEffects({
      signals: program.signals ?? process,
      stages,
      actors: {
        ...config.actors(() => {
          remotes.onSettingsChanged();
          consul.registries?.onSettingsChanged();
        }),
        ...consul.actors(),
        ...(names && { nameServer: names.actor() }),
        ...(webhooks && { webhookServer: webhooks.actor() }),
        ...ca.actors(),
        ...(cluster && { apiServer: cluster.machine() }),
        ...secrets.actors(),
        ...registration.actors(),
        ...distribution?.actors(),
        ...controllers?.actors(),
        ...remote.actors(),
        ...registry.actors(),
        ...jwks.actors(),
        push: push.actor((ms) => metrics.contextPublished(ms)),
        http: monitor.actor(),
        adsServer: xds.actor({
          ...{ source: source(), recorder, observer: metrics, authenticators, oneShot: monitor.oneShot },
          logger: log.scope('ads'),
          // Tools such as istioctl expect the component name of Istio.
          identifier: JSON.stringify({ Component: 'istiod', ID: options.podName || hostname(), Info: { version } }),
          isReady: () => state.context !== undefined,
          credentials: () => portCertificate!.credentials,
          references: push.references,
          // Loads message types after startup, because loading would delay it.
          onOpened: () => void configServer.load(),
          ...(signing && { unary: signing.service }),
        }),
      },
    });
  return {
    metrics,
    progress,
    cluster,
    servesWebhooks: webhooks !== undefined,
    consul: consul.registries,
    controllers,
    machine,
  };
}

/** The first stage of startup reports an invalid cluster. */
function clusterOf(
  options: DiscoveryOptions,
  log: Logger,
): { readonly cluster: FollowedCluster | undefined; readonly problem?: unknown } {
  try {
    return { cluster: makeCluster(options, log) };
  } catch (problem) {
    return { cluster: undefined, problem };
  }
}
