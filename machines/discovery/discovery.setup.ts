import { assign, enqueueActions, sendTo, setup, stopChild } from 'xstate';
import { callbackEffect, promiseEffect } from '../effect.ts';
import { trustBundlesMachine } from './bundles/trust-bundles.machine.ts';
import { authorityMachine } from './ca/authority.machine.ts';
import type {
  AuthorityChanged,
  AuthorityFailed,
  AuthorityLoad,
  AuthorityLoaded,
  CertificateChanged,
  CertificateRejected,
  RootsPending,
  SharedAuthorityPending,
} from './ca/authority-protocol.ts';
import { serverCertificateMachine } from './ca/server-certificate.machine.ts';
import { sharedAuthorityMachine } from './ca/shared-authority.machine.ts';
import { configControllerMachine } from './config/config-controller.machine.ts';
import { meshConfigMachine } from './config/mesh-config.machine.ts';
import { consulMachine } from './consul/consul.machine.ts';
import { distributionMachine } from './distribution/distribution.machine.ts';
import { electionsMachine } from './election/elections.machine.ts';
import type { ElectionsResigned, ReplicaAnnounced } from './election/leader-protocol.ts';
import { jwksMachine } from './jwks/jwks.machine.ts';
import { apiServerMachine } from './kubernetes/api-server.machine.ts';
import { nameServerMachine } from './names/name-server.machine.ts';
import type { NamesReport } from './names/name-server-protocol.ts';
import type {
  AdsDrained,
  AdsFailed,
  AdsListen,
  AdsListening,
  AdsOrder,
  ConfigRecovered,
  ConfigsFailed,
  ConfigsPending,
  ConfigsRejected,
  ConfigsSynced,
  ContextBuilt,
  ContextFailed,
  FullPushRequested,
  HttpClosed,
  HttpFailed,
  HttpListening,
  HttpOrder,
  JwksSynced,
  PreparedStage,
  RegistryFailed,
  ServicesFailed,
  ServicesPending,
  ServicesSynced,
  SettingsReport,
  SignalReceived,
  SourcesPending,
} from './protocol.ts';
import { pushMachine } from './push/push.machine.ts';
import { pushQueueMachine } from './push/push-queue.machine.ts';
import { registrationsMachine } from './registration/registrations.machine.ts';
import { serviceRegistryMachine } from './registry/service-registry.machine.ts';
import { remoteClustersMachine } from './remote/remote-clusters.machine.ts';
import { credentialDatesMachine } from './secrets/credential-dates.machine.ts';
import { secretAccessMachine } from './secrets/secret-access.machine.ts';
import type { DiscoverySettings } from './settings.ts';
import { webhookServerMachine } from './webhooks/webhook-server.machine.ts';
import type { WebhooksReport } from './webhooks/webhook-server-protocol.ts';

type StageReport =
  | SettingsReport
  | HttpListening
  | HttpFailed
  | HttpClosed
  | FullPushRequested
  | ConfigsPending
  | SourcesPending
  | ConfigsSynced
  | ConfigsFailed
  | ConfigsRejected
  | ConfigRecovered
  | JwksSynced
  | RegistryFailed
  | ServicesPending
  | ServicesSynced
  | ServicesFailed
  | ContextBuilt
  | ContextFailed
  | AdsListening
  | AdsFailed
  | AdsDrained
  | AuthorityLoaded
  | AuthorityChanged
  | AuthorityFailed
  | SharedAuthorityPending
  | RootsPending
  | CertificateChanged
  | CertificateRejected;

export interface DiscoveryInput {
  settings: DiscoverySettings;
}

interface DiscoveryContext extends DiscoveryInput {
  /** Why the control plane stops without an order; empty otherwise. */
  trouble: string[];
  /** Whether other replicas know this one, or its Lease could not be written. */
  isAnnounced: boolean;
}

export interface DiscoveryOutput {
  exitCode: number;
  trouble: string[];
}

export interface Preparation {
  failure?: string;
}

export const discoverySetup = setup({
  types: {
    context: {} as DiscoveryContext,
    input: {} as DiscoveryInput,
    output: {} as DiscoveryOutput,
    events: {} as SignalReceived | StageReport | ReplicaAnnounced | ElectionsResigned | NamesReport | WebhooksReport,
    children: {} as {
      signals: 'signals';
      environment: 'prepare';
      'config-sources': 'prepare';
      registries: 'prepare';
      'server-certificates': 'prepare';
      authenticators: 'prepare';
      http: 'http';
      'api-server-0': 'apiServer';
      'secret-access': 'secretAccess';
      distribution: 'distribution';
      'remote-clusters': 'remoteClusters';
      consul: 'consul';
      'name-server': 'nameServer';
      'webhook-server': 'webhookServer';
      registrations: 'registrations';
      elections: 'elections';
      'ads-server': 'adsServer';
      'push-queue': 'pushQueue';
      'mesh-config': 'meshConfig';
      'mesh-networks': 'meshConfig';
      'config-controller': 'configController';
      'service-registry': 'serviceRegistry';
      jwks: 'jwks';
      'trust-bundles': 'trustBundles';
      'credential-dates': 'credentialDates';
      authority: 'authority';
      'shared-authority': 'sharedAuthority';
      'server-certificate': 'serverCertificate';
      push: 'push';
    },
  },
  actors: {
    signals: callbackEffect<{ type: never }, undefined>('signals'),
    prepare: promiseEffect<Preparation, { stage: PreparedStage }>('prepare'),
    /** Serves /ready, /metrics and /debug. Stopping it closes every connection. */
    http: callbackEffect<HttpOrder, undefined>('http'),
    /** Serves xDS with an `ads-connection` per stream. Stopping it closes every stream. */
    adsServer: callbackEffect<AdsOrder, undefined>('adsServer'),
    apiServer: apiServerMachine,
    secretAccess: secretAccessMachine,
    distribution: distributionMachine,
    remoteClusters: remoteClustersMachine,
    consul: consulMachine,
    nameServer: nameServerMachine,
    webhookServer: webhookServerMachine,
    registrations: registrationsMachine,
    elections: electionsMachine,
    meshConfig: meshConfigMachine,
    configController: configControllerMachine,
    serviceRegistry: serviceRegistryMachine,
    jwks: jwksMachine,
    trustBundles: trustBundlesMachine,
    credentialDates: credentialDatesMachine,
    authority: authorityMachine,
    sharedAuthority: sharedAuthorityMachine,
    serverCertificate: serverCertificateMachine,
    push: pushMachine,
    pushQueue: pushQueueMachine,
  },
  delays: { shutdownDuration: ({ context }) => context.settings.shutdownMs },
  guards: {
    isMesh: ({ event }) => event.type === 'settings.loaded' && event.name === 'mesh',
    isNetworks: ({ event }) => event.type === 'settings.loaded' && event.name === 'networks',
    hasFailed: (_, params: { failure?: string }) => params.failure !== undefined,
    isAnnounced: ({ context }) => context.isAnnounced || context.settings.elections === null,
    hasSecurePort: ({ context }) => context.settings.secure,
    isElectionEnabled: ({ context }) => context.settings.elections !== null,
    hasAuthority: ({ context }) => context.settings.hasAuthority,
  },
  actions: {
    recordFailure: assign({
      trouble: ({ context }, params: { stage: string; reason: string }) => [
        ...context.trouble,
        `${params.stage}: ${params.reason}`,
      ],
    }),
    watchCluster: enqueueActions(({ context: { settings }, enqueue }) => {
      if (settings.cluster === null) return;
      enqueue.spawnChild('apiServer', { id: 'api-server-0', input: settings.cluster });
      enqueue.spawnChild('secretAccess', { id: 'secret-access' });
      enqueue.spawnChild('distribution', { id: 'distribution' });
      enqueue.spawnChild('remoteClusters', { id: 'remote-clusters' });
      enqueue.spawnChild('registrations', { id: 'registrations', input: settings.registrations });
      if (isAuthorityShared(settings)) {
        enqueue.spawnChild('sharedAuthority', {
          id: 'shared-authority',
          input: { checkMs: settings.authority.checkMs },
        });
      }
      if (settings.elections !== null) {
        enqueue.spawnChild('elections', { id: 'elections', input: settings.elections });
        enqueue.sendTo('elections', { type: 'replica.announce' });
      }
    }),
    recordAnnounced: assign({ isAnnounced: true }),
    watchConsul: enqueueActions(({ context: { settings }, enqueue }) => {
      if (settings.readsConsul) enqueue.spawnChild('consul', { id: 'consul', systemId: 'consul' });
    }),
    unwatchConsul: stopChild('consul'),
    serveNames: enqueueActions(({ context: { settings }, enqueue }) => {
      if (settings.servesNames) enqueue.spawnChild('nameServer', { id: 'name-server' });
    }),
    stopNames: stopChild('name-server'),
    serveWebhooks: enqueueActions(({ context: { settings }, enqueue }) => {
      if (settings.servesWebhooks) enqueue.spawnChild('webhookServer', { id: 'webhook-server' });
    }),
    stopWebhooks: stopChild('webhook-server'),
    unwatchCluster: enqueueActions(({ enqueue }) => {
      const clusterActors = ['shared-authority', 'registrations', 'remote-clusters', 'distribution', 'secret-access'];
      for (const actor of [...clusterActors, 'api-server-0']) enqueue.stopChild(actor);
    }),
    joinElections: enqueueActions(({ context: { settings }, enqueue }) => {
      if (settings.elections !== null) enqueue.sendTo('elections', { type: 'elections.join' });
    }),
    resignLeaders: enqueueActions(({ context: { settings }, enqueue }) => {
      if (settings.elections !== null) enqueue.sendTo('elections', { type: 'elections.resign' });
    }),
    loadMesh: sendTo('mesh-config', { type: 'settings.load' }),
    loadNetworks: sendTo('mesh-networks', { type: 'settings.load' }),
    openHttp: sendTo('http', { type: 'http.open' }),
    loadConfigs: sendTo('config-controller', { type: 'configs.load' }),
    loadKeys: sendTo('jwks', { type: 'jwks.load' }),
    loadBundles: sendTo('trust-bundles', { type: 'bundles.load' }),
    loadAuthority: sendTo(({ context }) => (isAuthorityShared(context.settings) ? 'shared-authority' : 'authority'), {
      type: 'authority.load',
    } satisfies AuthorityLoad),
    watchCertificate: sendTo('server-certificate', { type: 'certificate.watch' }),
    loadServices: sendTo('service-registry', { type: 'services.load' }),
    startPush: sendTo('push', { type: 'push.start' }),
    listenSecure: sendTo('ads-server', { type: 'ads.listen', port: 'secure' } satisfies AdsListen),
    listen: sendTo('ads-server', { type: 'ads.listen', port: 'plaintext' } satisfies AdsListen),
    reportReady: sendTo('http', { type: 'readiness.began' }),
    reportNotReady: sendTo('http', { type: 'readiness.ended' }),
    requestFullPush: sendTo('push', { type: 'push.request', configs: [], forced: true, reasons: { debug: 1 } }),
    drainQueue: sendTo('push-queue', { type: 'queue.drain' }),
    drainStreams: sendTo('ads-server', { type: 'ads.drain' }),
    closeHttp: sendTo('http', { type: 'http.close' }),
  },
});

function isAuthorityShared({ hasAuthority, sharesAuthority }: DiscoverySettings): boolean {
  return hasAuthority && sharesAuthority;
}
