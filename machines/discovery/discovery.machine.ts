import { not } from 'xstate';
import { reasonOf } from '../effect.ts';
import { discoverySetup, type Preparation } from './discovery.setup.ts';
import { discoveryTimeline } from './timeline.ts';

export type { DiscoveryInput, DiscoveryOutput, Preparation } from './discovery.setup.ts';

/**
 * The root of pilot-discovery: brings its parts up one after the other (spec/discovery.md §2.1 G4, §2.2), each stage with
 * its own failure, and takes them down again (§2.3).
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
      description: 'What was asked for by flags and environment is had, or cannot be had here. Nothing is open yet.',
      meta: { waitsFor: 'the files that flags name' },
      invoke: {
        id: 'environment',
        src: 'prepare',
        input: { stage: 'environment' },
        onDone: [{ ...unprepared('environment'), target: 'stopped' }, { target: 'at work' }],
        onError: { ...brokenDown('environment'), target: 'stopped' },
      },
      on: { 'signal.received': 'stopped' },
    },
    'at work': {
      description: 'The servers are there, open or not.',
      invoke: [
        { id: 'http', src: 'http', systemId: 'http', onError: { ...brokenDown('HTTP server'), target: 'stopped' } },
        {
          id: 'ads-server',
          src: 'adsServer',
          systemId: 'ads-server',
          onError: { ...brokenDown('xDS server'), target: 'stopped' },
        },
        {
          id: 'push-queue',
          src: 'pushQueue',
          systemId: 'push-queue',
          input: ({ context }) => context.settings.pushQueue,
          onError: { ...brokenDown('push queue'), target: 'stopped' },
        },
      ],
      initial: 'operating',
      states: {
        operating: {
          description:
            'The sources are there, and being read in their order or watched; a cluster is followed from the first moment.',
          entry: ['followCluster', 'followConsul'],
          exit: ['stopNames', 'stopWebhooks', 'leaveCluster', 'stopConsul'],
          invoke: [
            {
              id: 'push',
              src: 'push',
              systemId: 'push',
              input: ({ context }) => context.settings.push,
              onError: brokenDown('push'),
            },
            {
              id: 'service-registry',
              src: 'serviceRegistry',
              systemId: 'service-registry',
              input: ({ context }) => context.settings.registries,
              onError: brokenDown('services'),
            },
            {
              id: 'jwks',
              src: 'jwks',
              systemId: 'jwks',
              input: ({ context }) => context.settings.jwks,
              onError: brokenDown('keys of issuers'),
            },
            {
              id: 'trust-bundles',
              src: 'trustBundles',
              systemId: 'trust-bundles',
              onError: brokenDown('bundle endpoints'),
            },
            {
              id: 'credential-dates',
              src: 'credentialDates',
              onError: brokenDown('dates of credentials'),
            },
            {
              id: 'authority',
              src: 'authority',
              systemId: 'authority',
              input: ({ context }) => context.settings.authority,
              onError: brokenDown('certificate authority'),
            },
            {
              id: 'server-certificate',
              src: 'serverCertificate',
              input: ({ context }) => context.settings.serverCertificate,
              onError: brokenDown('server certificate'),
            },
            {
              id: 'config-controller',
              src: 'configController',
              systemId: 'config-controller',
              input: ({ context }) => context.settings.configs,
              onError: brokenDown('configuration'),
            },
            {
              id: 'mesh-networks',
              src: 'meshConfig',
              input: ({ context }) => ({ what: 'networks' as const, ...context.settings.networks }),
              onError: brokenDown('mesh networks'),
            },
            {
              id: 'mesh-config',
              src: 'meshConfig',
              input: ({ context }) => ({ what: 'mesh' as const, ...context.settings.mesh }),
              onError: brokenDown('mesh configuration'),
            },
          ],
          on: {
            'signal.received': 'draining',
            'xstate.error.actor.api-server-0': brokenDown('cluster'),
            'xstate.error.actor.secret-access': brokenDown('access to Secrets'),
            'xstate.error.actor.distribution': brokenDown('distribution of objects'),
            'xstate.error.actor.remote-clusters': brokenDown('remote clusters'),
            'xstate.error.actor.consul': brokenDown('Consul'),
            'xstate.error.actor.name-server': brokenDown('DNS server'),
            'xstate.error.actor.webhook-server': brokenDown('webhooks'),
            'xstate.error.actor.registrations': brokenDown('registration of workloads'),
            'xstate.error.actor.shared-authority': brokenDown('certificate authority'),
            'xstate.error.actor.elections': brokenDown('elections'),
            'leaders.announced': { actions: 'noteAnnounced' },
            'leaders.resigned': {},
            'http.failed': failed('HTTP server'),
            'ads.failed': failed('xDS server'),
            'settings.changed': { description: 'For the record: push was asked already.' },
            'settings.rejected': { description: 'For the record: the last good value is in force.' },
            'configs.rejected': { description: 'For the record: the last good objects are in force.' },
            'names.listening': { description: 'For the log.' },
            'names.failed': { description: 'For the log: proxies are served without it.' },
            'webhooks.listening': { description: 'For the log.' },
            'webhooks.failed': { description: 'For the log: proxies are served without them.' },
            'config.recovered': { description: 'For the record.' },
            'registry.failed': { description: 'For the record: what it handed over is in force.' },
            'services.failed': { description: 'For the record: the last services are in force.' },
            'context.built': { description: 'For the record: the proxies are being brought up to date.' },
            'context.failed': { description: 'For the record: the last context is in force.' },
            'push.wanted': { description: 'Everybody is served from the first context, which is still to come.' },
            // Each stage waits for its own; nobody reports twice.
            'settings.loaded': {},
            'http.listening': {},
            'http.closed': {},
            'configs.awaited': { description: 'For the record: /ready says so.' },
            'sources.awaited': { description: 'For the record: what was in force is in force.' },
            'configs.synced': {},
            'configs.failed': {},
            'services.awaited': { description: 'For the record: /ready says so.' },
            'services.synced': {},
            'jwks.synced': {},
            'ads.listening': {},
            'ads.drained': {},
            'authority.loaded': { description: 'For the record: it signs.' },
            'authority.changed': { description: 'For the record: who signs, and whose roots are given out.' },
            'authority.failed': { description: 'For the record: what signs goes on.' },
            'shared-authority.awaited': { description: 'For the record: /ready says so.' },
            'bundle.awaited': { description: 'For the record: who is missing.' },
            'certificate.changed': { description: 'For the record: handshakes from now on show it.' },
            'certificate.rejected': { description: 'For the record: what is shown goes on.' },
          },
          initial: 'starting http',
          states: {
            'starting http': {
              description: 'First of all: from here on /ready answers 503 rather than nothing.',
              meta: { waitsFor: 'the operating system, which opens a port or refuses it at once' },
              entry: 'openHttp',
              on: { 'http.listening': 'loading mesh config' },
            },
            'loading mesh config': {
              description: 'Everything that follows depends on mesh-wide settings, discovery selectors among them.',
              meta: { waitsFor: 'the first reading of the file; /ready says so' },
              entry: 'loadMesh',
              on: { 'settings.loaded': { guard: 'isMesh', target: 'loading networks' } },
            },
            'loading networks': {
              meta: { waitsFor: 'the first reading of the file; /ready says so' },
              entry: 'loadNetworks',
              on: { 'settings.loaded': { guard: 'isNetworks', target: 'making config controller' } },
            },
            'making config controller': {
              description:
                'Whether there can be the sources that are asked for: a directory, those of the mesh configuration.',
              meta: { waitsFor: 'what the flags and the mesh configuration name; /ready says so' },
              invoke: {
                id: 'config-sources',
                src: 'prepare',
                input: { stage: 'config-sources' },
                onDone: [unprepared('configuration sources'), { target: 'making service controllers' }],
                onError: brokenDown('configuration sources'),
              },
            },
            'making service controllers': {
              description: 'One registry for each that was asked for, and the one of ServiceEntries.',
              meta: { waitsFor: 'what the flags name; /ready says so' },
              invoke: {
                id: 'registries',
                src: 'prepare',
                input: { stage: 'registries' },
                onDone: [
                  unprepared('service registries'),
                  { guard: 'hasAuthority', target: 'finding the authority' },
                  { guard: 'hasSecurePort', target: 'reading server certificates' },
                  { target: 'syncing configuration' },
                ],
                onError: brokenDown('service registries'),
              },
            },
            'finding the authority': {
              description: 'What signs the certificates of workloads, and maybe that of the secure port.',
              meta: { waitsFor: 'its files or its Secret, or a key to be made; /ready says so' },
              entry: 'loadAuthority',
              on: {
                'authority.loaded': 'reading server certificates',
                'authority.failed': failed('certificate authority'),
              },
            },
            'reading server certificates': {
              description: 'What the secure port shows its clients.',
              meta: { waitsFor: 'the files of the certificates; /ready says so' },
              invoke: {
                id: 'server-certificates',
                src: 'prepare',
                input: { stage: 'server-certificates' },
                onDone: [unprepared('server certificates'), { target: 'making authenticators' }],
                onError: brokenDown('server certificates'),
              },
            },
            'making authenticators': {
              description: 'Who may be whom on the secure port.',
              meta: { waitsFor: 'what the flags name; /ready says so' },
              entry: 'watchCertificate',
              invoke: {
                id: 'authenticators',
                src: 'prepare',
                input: { stage: 'authenticators' },
                onDone: [unprepared('authenticators'), { target: 'syncing configuration' }],
                onError: brokenDown('authenticators'),
              },
            },
            'syncing configuration': {
              description: 'Everything is made; now it runs. All configuration objects are read.',
              meta: {
                waitsFor:
                  'the first reading of each source, tried again while it fails; /ready names those that are missing',
              },
              entry: ['loadBundles', 'loadConfigs'],
              on: { 'configs.synced': 'syncing registries', 'configs.failed': failed('configuration') },
            },
            'syncing registries': {
              description: 'Making services and endpoints, of the first lists of all registries.',
              meta: {
                waitsFor: 'the first lists of registries, which have a limit; /ready names those that are missing',
              },
              entry: 'loadServices',
              on: { 'services.synced': 'fetching keys of issuers', 'services.failed': failed('services') },
            },
            'fetching keys of issuers': {
              description:
                'A proxy that comes back to this control plane must not refuse tokens that it took before. An issuer that ' +
                'does not answer is not waited for.',
              meta: { waitsFor: 'issuers of tokens, which have a limit; /ready says so' },
              entry: 'loadKeys',
              on: { 'jwks.synced': 'building first push context' },
            },
            'building first push context': {
              description:
                'It takes in all updates that were received until now. Nobody is served before (§2.2 step 3).',
              meta: { waitsFor: 'a context, tried again while it cannot be built; /ready says so' },
              entry: 'startPush',
              on: {
                'context.built': [
                  { guard: not('isAnnounced'), target: 'announcing replica' },
                  { guard: 'hasSecurePort', target: 'opening secure xDS port' },
                  { target: 'opening xDS port' },
                ],
                'context.failed': failed('first push context'),
              },
            },
            'announcing replica': {
              description:
                'No proxy connects before other replicas can see that this one runs: the one that writes the statuses waits for its counts.',
              meta: { waitsFor: 'the Lease of this replica, which has a limit; /ready says so' },
              on: {
                'leaders.announced': [
                  { guard: 'hasSecurePort', target: 'opening secure xDS port', actions: 'noteAnnounced' },
                  { target: 'opening xDS port', actions: 'noteAnnounced' },
                ],
              },
            },
            'opening secure xDS port': {
              meta: { waitsFor: 'the operating system, which opens a port or refuses it at once' },
              entry: 'listenSecurely',
              on: { 'ads.listening': 'opening xDS port', 'ads.failed': failed('secure xDS server') },
            },
            'opening xDS port': {
              meta: { waitsFor: 'the operating system, which opens a port or refuses it at once' },
              entry: 'listen',
              on: { 'ads.listening': 'serving' },
            },
            serving: {
              tags: 'serving',
              description: 'Proxies are served, /ready answers 200.',
              meta: { waitsFor: 'a signal: this is the work' },
              entry: ['becomeReady', 'standForElection', 'serveNames', 'serveWebhooks'],
              on: { 'push.wanted': { actions: 'pushEverything' } },
            },
          },
        },
        draining: {
          description: 'Sources are closed. Streams and then requests may end in good order, within the shutdown time.',
          after: { shutdownDuration: '#discovery.stopped' },
          on: {
            'signal.received': { description: 'The second one: at once.', target: '#discovery.stopped' },
            'http.failed': { description: 'It is being closed anyway.' },
            'ads.failed': { description: 'It is being closed anyway.' },
            'push.wanted': { description: 'Nobody is pushed to any more.' },
            'leaders.resigned': { description: 'They are asked once more when everything else has ended.' },
            'xstate.error.actor.elections': {
              description: 'What is held ends by itself.',
              target: '#discovery.stopped',
            },
            // Answers to orders of before.
            'leaders.announced': {},
            'http.listening': {},
            'http.closed': {},
            'ads.listening': {},
            'ads.drained': {},
          },
          initial: 'closing streams',
          states: {
            'closing streams': {
              entry: ['becomeUnready', 'resignLeaders', 'drainQueue', 'drainStreams'],
              on: { 'ads.drained': 'closing http' },
            },
            'closing http': {
              entry: 'closeHttp',
              on: { 'http.closed': [{ guard: 'mayLead', target: 'resigning' }, { target: '#discovery.stopped' }] },
            },
            resigning: {
              description:
                'Other replicas need not wait for what this one has to write: it was told long ago to give that back.',
              entry: 'resignLeaders',
              on: { 'leaders.resigned': '#discovery.stopped' },
            },
          },
        },
      },
    },
    stopped: { type: 'final' },
  },
  output: ({ context }) => ({ exitCode: context.trouble.length === 0 ? 0 : 1, trouble: context.trouble }),
});

/** A part told that it cannot go on: what is there is taken down in good order. */
function failed(stage: string) {
  return {
    target: '#discovery.at work.draining',
    actions: {
      type: 'rememberTrouble' as const,
      params: ({ event }: { event: { reason: string } }) => ({ stage, reason: event.reason }),
    },
  };
}

/** A stage that prepares something says that it failed. */
function unprepared(stage: string) {
  type Done = { event: { output: Preparation } };
  return {
    guard: { type: 'hasFailed' as const, params: ({ event }: Done) => event.output },
    target: '#discovery.at work.draining',
    actions: {
      type: 'rememberTrouble' as const,
      params: ({ event }: Done) => ({ stage, reason: event.output.failure ?? '' }),
    },
  };
}

/** A part ended with an error, which is a fault of ours. */
function brokenDown(stage: string) {
  return {
    target: '#discovery.at work.draining',
    actions: {
      type: 'rememberTrouble' as const,
      params: ({ event }: { event: { error: unknown } }) => ({ stage, reason: reasonOf(event.error) }),
    },
  };
}
