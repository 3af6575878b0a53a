import { not } from 'xstate';
import { reasonOf } from '../effect.ts';
import { discoverySetup, type Preparation } from './discovery.setup.ts';
import { discoveryTimeline } from './timeline.ts';

export type { DiscoveryInput, DiscoveryOutput, Preparation } from './discovery.setup.ts';

/**
 * The root of pilot-discovery: starts its parts in order, each stage with a separate failure, and stops them in reverse order.
 */
export const discoveryMachine = discoverySetup.createMachine({
  id: 'discovery',
  description: 'The control plane.',
  meta: { timeline: discoveryTimeline },
  context: ({ input }) => ({ ...input, trouble: [], isAnnounced: false }),
  invoke: { id: 'signals', src: 'signals' },
  initial: 'preparing environment',
  states: {
    'preparing environment': {
      description: 'Checks flags and environment. No port is open yet.',
      meta: { waitsFor: 'the files that flags name' },
      invoke: {
        id: 'environment',
        src: 'prepare',
        input: { stage: 'environment' },
        onDone: [{ ...onPreparationFailed('environment'), target: 'stopped' }, { target: 'active' }],
        onError: { ...onInternalError('environment'), target: 'stopped' },
      },
      on: { 'signal.received': 'stopped' },
    },
    active: {
      description: 'The servers exist; their ports may still be closed.',
      invoke: [
        {
          id: 'http',
          src: 'http',
          systemId: 'http',
          onError: { ...onInternalError('HTTP server'), target: 'stopped' },
        },
        {
          id: 'ads-server',
          src: 'adsServer',
          systemId: 'ads-server',
          onError: { ...onInternalError('xDS server'), target: 'stopped' },
        },
        {
          id: 'push-queue',
          src: 'pushQueue',
          systemId: 'push-queue',
          input: ({ context }) => context.settings.pushQueue,
          onError: { ...onInternalError('push queue'), target: 'stopped' },
        },
      ],
      initial: 'operating',
      states: {
        operating: {
          description: 'The sources are loaded in order, then watched. The cluster is watched from the beginning.',
          entry: ['watchCluster', 'watchConsul'],
          exit: ['stopNames', 'stopWebhooks', 'unwatchCluster', 'unwatchConsul'],
          invoke: [
            {
              id: 'push',
              src: 'push',
              systemId: 'push',
              input: ({ context }) => context.settings.push,
              onError: onInternalError('push'),
            },
            {
              id: 'service-registry',
              src: 'serviceRegistry',
              systemId: 'service-registry',
              input: ({ context }) => context.settings.registries,
              onError: onInternalError('services'),
            },
            {
              id: 'jwks',
              src: 'jwks',
              systemId: 'jwks',
              input: ({ context }) => context.settings.jwks,
              onError: onInternalError('keys of issuers'),
            },
            {
              id: 'trust-bundles',
              src: 'trustBundles',
              systemId: 'trust-bundles',
              onError: onInternalError('bundle endpoints'),
            },
            {
              id: 'credential-dates',
              src: 'credentialDates',
              onError: onInternalError('dates of credentials'),
            },
            {
              id: 'authority',
              src: 'authority',
              systemId: 'authority',
              input: ({ context }) => context.settings.authority,
              onError: onInternalError('certificate authority'),
            },
            {
              id: 'server-certificate',
              src: 'serverCertificate',
              input: ({ context }) => context.settings.serverCertificate,
              onError: onInternalError('server certificate'),
            },
            {
              id: 'config-controller',
              src: 'configController',
              systemId: 'config-controller',
              input: ({ context }) => context.settings.configs,
              onError: onInternalError('configuration'),
            },
            {
              id: 'mesh-networks',
              src: 'meshConfig',
              input: ({ context }) => ({ name: 'networks' as const, ...context.settings.networks }),
              onError: onInternalError('mesh networks'),
            },
            {
              id: 'mesh-config',
              src: 'meshConfig',
              input: ({ context }) => ({ name: 'mesh' as const, ...context.settings.mesh }),
              onError: onInternalError('mesh configuration'),
            },
          ],
          on: {
            'signal.received': 'draining',
            'xstate.error.actor.api-server-0': onInternalError('cluster'),
            'xstate.error.actor.secret-access': onInternalError('access to Secrets'),
            'xstate.error.actor.distribution': onInternalError('distribution of objects'),
            'xstate.error.actor.remote-clusters': onInternalError('remote clusters'),
            'xstate.error.actor.consul': onInternalError('Consul'),
            'xstate.error.actor.name-server': onInternalError('DNS server'),
            'xstate.error.actor.webhook-server': onInternalError('webhooks'),
            'xstate.error.actor.registrations': onInternalError('registration of workloads'),
            'xstate.error.actor.shared-authority': onInternalError('certificate authority'),
            'xstate.error.actor.elections': onInternalError('elections'),
            'replica.announced': { actions: 'recordAnnounced' },
            'elections.resigned': {},
            'http.failed': onFailure('HTTP server'),
            'ads.failed': onFailure('xDS server'),
            'settings.changed': { description: 'Recorded only: a push is requested already.' },
            'settings.rejected': { description: 'Recorded only: the last valid settings apply.' },
            'configs.rejected': { description: 'Recorded only: the last valid objects apply.' },
            'names.listening': { description: 'Recorded in the log.' },
            'names.failed': { description: 'Recorded in the log: proxies are served without it.' },
            'webhooks.listening': { description: 'Recorded in the log.' },
            'webhooks.failed': { description: 'Recorded in the log: proxies are served without them.' },
            'config.recovered': { description: 'Recorded only.' },
            'registry.failed': { description: 'Recorded only: the last services of the registry apply.' },
            'services.failed': { description: 'Recorded only: the last services apply.' },
            'context.built': { description: 'Recorded only: the context is being pushed.' },
            'context.failed': { description: 'Recorded only: the last context applies.' },
            'full-push.requested': {
              description: 'The first context includes everything.',
            },
            // Each stage waits only for its own report.
            'settings.loaded': {},
            'http.listening': {},
            'http.closed': {},
            'configs.pending': { description: 'Recorded only: /ready reports it.' },
            'sources.pending': { description: 'Recorded only: the last objects apply.' },
            'configs.synced': {},
            'configs.failed': {},
            'services.pending': { description: 'Recorded only: /ready reports it.' },
            'services.synced': {},
            'jwks.synced': {},
            'ads.listening': {},
            'ads.drained': {},
            'authority.loaded': { description: 'Recorded only: the authority signs.' },
            'authority.changed': { description: 'Recorded only: the signer and the distributed roots.' },
            'authority.failed': { description: 'Recorded only: the current signer continues to sign.' },
            'shared-authority.pending': { description: 'Recorded only: /ready reports it.' },
            'roots.pending': { description: 'Recorded only: workloads that have not acknowledged the roots.' },
            'certificate.changed': { description: 'Recorded only: new handshakes use the certificate.' },
            'certificate.rejected': { description: 'Recorded only: the current certificate is kept.' },
          },
          initial: 'starting http',
          states: {
            'starting http': {
              description: 'The HTTP port opens first, so that /ready responds with 503 during the start.',
              meta: { waitsFor: 'the operating system, which opens the port or fails at once' },
              entry: 'openHttp',
              on: { 'http.listening': 'loading mesh config' },
            },
            'loading mesh config': {
              description: 'Mesh-wide settings, such as discovery selectors, are needed by all later stages.',
              meta: { waitsFor: 'the first read of the file; /ready reports it' },
              entry: 'loadMesh',
              on: { 'settings.loaded': { guard: 'isMesh', target: 'loading networks' } },
            },
            'loading networks': {
              meta: { waitsFor: 'the first read of the file; /ready reports it' },
              entry: 'loadNetworks',
              on: { 'settings.loaded': { guard: 'isNetworks', target: 'initializing config controller' } },
            },
            'initializing config controller': {
              description:
                'Checks whether the configured sources can exist: a directory, and those of the mesh configuration.',
              meta: { waitsFor: 'the flags and the mesh configuration; /ready reports it' },
              invoke: {
                id: 'config-sources',
                src: 'prepare',
                input: { stage: 'config-sources' },
                onDone: [onPreparationFailed('configuration sources'), { target: 'initializing service controllers' }],
                onError: onInternalError('configuration sources'),
              },
            },
            'initializing service controllers': {
              description: 'One registry for each configured provider, and one for ServiceEntries.',
              meta: { waitsFor: 'the flags; /ready reports it' },
              invoke: {
                id: 'registries',
                src: 'prepare',
                input: { stage: 'registries' },
                onDone: [
                  onPreparationFailed('service registries'),
                  { guard: 'hasAuthority', target: 'loading authority' },
                  { guard: 'hasSecurePort', target: 'reading server certificates' },
                  { target: 'syncing configuration' },
                ],
                onError: onInternalError('service registries'),
              },
            },
            'loading authority': {
              description:
                'The authority that signs the certificates of workloads, and optionally that of the secure port.',
              meta: { waitsFor: 'its files or its Secret, or a new key; /ready reports it' },
              entry: 'loadAuthority',
              on: {
                'authority.loaded': 'reading server certificates',
                'authority.failed': onFailure('certificate authority'),
              },
            },
            'reading server certificates': {
              description: 'The certificate of the secure port.',
              meta: { waitsFor: 'the certificate files; /ready reports it' },
              invoke: {
                id: 'server-certificates',
                src: 'prepare',
                input: { stage: 'server-certificates' },
                onDone: [onPreparationFailed('server certificates'), { target: 'initializing authenticators' }],
                onError: onInternalError('server certificates'),
              },
            },
            'initializing authenticators': {
              description: 'Authentication of clients on the secure port.',
              meta: { waitsFor: 'the flags; /ready reports it' },
              entry: 'watchCertificate',
              invoke: {
                id: 'authenticators',
                src: 'prepare',
                input: { stage: 'authenticators' },
                onDone: [onPreparationFailed('authenticators'), { target: 'syncing configuration' }],
                onError: onInternalError('authenticators'),
              },
            },
            'syncing configuration': {
              description: 'All parts are initialized. Reads all configuration objects.',
              meta: {
                waitsFor: 'the first read of each source, repeated while it fails; /ready lists the missing ones',
              },
              entry: ['loadBundles', 'loadConfigs'],
              on: { 'configs.synced': 'syncing registries', 'configs.failed': onFailure('configuration') },
            },
            'syncing registries': {
              description: 'Computes services and endpoints from the first lists of all registries.',
              meta: {
                waitsFor: 'the first lists of registries, which have a limit; /ready lists the missing ones',
              },
              entry: 'loadServices',
              on: { 'services.synced': 'fetching issuer keys', 'services.failed': onFailure('services') },
            },
            'fetching issuer keys': {
              description:
                'A proxy that reconnects must not reject tokens that it accepted before. Issuers that do not respond do not delay the start.',
              meta: { waitsFor: 'issuers of tokens, which have a limit; /ready reports it' },
              entry: 'loadKeys',
              on: { 'jwks.synced': 'building first push context' },
            },
            'building first push context': {
              description: 'The first context includes all updates so far. No proxy is served before it is built.',
              meta: { waitsFor: 'a context; if it cannot be built, the program ends with exit code 1' },
              entry: 'startPush',
              on: {
                'context.built': [
                  { guard: not('isAnnounced'), target: 'announcing replica' },
                  { guard: 'hasSecurePort', target: 'opening secure xDS port' },
                  { target: 'opening xDS port' },
                ],
                'context.failed': onFailure('first push context'),
              },
            },
            'announcing replica': {
              description:
                'Other replicas must know of this one before a proxy connects, because the replica that writes statuses waits for its counts.',
              meta: { waitsFor: 'the Lease of this replica, which has a limit; /ready reports it' },
              on: {
                'replica.announced': [
                  { guard: 'hasSecurePort', target: 'opening secure xDS port', actions: 'recordAnnounced' },
                  { target: 'opening xDS port', actions: 'recordAnnounced' },
                ],
              },
            },
            'opening secure xDS port': {
              meta: { waitsFor: 'the operating system, which opens the port or fails at once' },
              entry: 'listenSecure',
              on: { 'ads.listening': 'opening xDS port', 'ads.failed': onFailure('secure xDS server') },
            },
            'opening xDS port': {
              meta: { waitsFor: 'the operating system, which opens the port or fails at once' },
              entry: 'listen',
              on: { 'ads.listening': 'serving' },
            },
            serving: {
              tags: 'serving',
              description: 'Proxies are served, /ready responds with 200.',
              meta: { waitsFor: 'a signal: normal operation' },
              entry: ['reportReady', 'joinElections', 'serveNames', 'serveWebhooks'],
              on: { 'full-push.requested': { actions: 'requestFullPush' } },
            },
          },
        },
        draining: {
          description: 'Sources are stopped. xDS streams, then HTTP requests, finish within the shutdown time.',
          after: { shutdownDuration: '#discovery.stopped' },
          on: {
            'signal.received': { description: 'A second signal stops at once.', target: '#discovery.stopped' },
            'http.failed': { description: 'The port is being closed.' },
            'ads.failed': { description: 'The server is being closed.' },
            'full-push.requested': { description: 'No push starts during the shutdown.' },
            'elections.resigned': {
              description: 'The Leases are given back again after all other parts have stopped.',
            },
            'xstate.error.actor.elections': {
              description: 'The Leases expire.',
              target: '#discovery.stopped',
            },
            // Responses to earlier orders.
            'replica.announced': {},
            'http.listening': {},
            'http.closed': {},
            'ads.listening': {},
            'ads.drained': {},
          },
          initial: 'closing streams',
          states: {
            'closing streams': {
              entry: ['reportNotReady', 'resignLeaders', 'drainQueue', 'drainStreams'],
              on: { 'ads.drained': 'closing http' },
            },
            'closing http': {
              entry: 'closeHttp',
              on: {
                'http.closed': [{ guard: 'isElectionEnabled', target: 'resigning' }, { target: '#discovery.stopped' }],
              },
            },
            resigning: {
              description:
                'Gives back the Leases, so that other replicas need not wait for their expiry. Resignation was requested at the start of the shutdown.',
              entry: 'resignLeaders',
              on: { 'elections.resigned': '#discovery.stopped' },
            },
          },
        },
      },
    },
    stopped: { type: 'final' },
  },
  output: ({ context }) => ({ exitCode: context.trouble.length === 0 ? 0 : 1, trouble: context.trouble }),
});

function onFailure(stage: string) {
  return {
    target: '#discovery.active.draining',
    actions: {
      type: 'recordFailure' as const,
      params: ({ event }: { event: { reason: string } }) => ({ stage, reason: event.reason }),
    },
  };
}

function onPreparationFailed(stage: string) {
  type PreparationDone = { event: { output: Preparation } };
  return {
    guard: { type: 'hasFailed' as const, params: ({ event }: PreparationDone) => event.output },
    target: '#discovery.active.draining',
    actions: {
      type: 'recordFailure' as const,
      params: ({ event }: PreparationDone) => ({ stage, reason: event.output.failure ?? '' }),
    },
  };
}

function onInternalError(stage: string) {
  return {
    target: '#discovery.active.draining',
    actions: {
      type: 'recordFailure' as const,
      params: ({ event }: { event: { error: unknown } }) => ({ stage, reason: reasonOf(event.error) }),
    },
  };
}
