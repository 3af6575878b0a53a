import { assign, sendTo, setup } from 'xstate';
import { callbackEffect, reasonOf } from '../effect.ts';
import { configControllerMachine } from './config-controller.machine.ts';
import { meshConfigMachine } from './mesh-config.machine.ts';
import type { AdsOrder, HttpOrder, SignalReceived, StageReport } from './protocol.ts';
import { pushMachine } from './push.machine.ts';
import { serviceRegistryMachine } from './service-registry.machine.ts';
import type { DiscoverySettings } from './settings.ts';

export interface DiscoveryInput {
  settings: DiscoverySettings;
}

interface DiscoveryContext extends DiscoveryInput {
  /** Why the control plane ends other than by order; empty while there is no such reason. */
  trouble: string[];
}

export interface DiscoveryOutput {
  /** 0 when it ended as it was told to. */
  exitCode: number;
  /** What to tell the person; empty after an ordered end. */
  trouble: string[];
}

/**
 * The root of pilot-discovery: brings its parts up one after the other (spec/discovery.md §2.2), each stage with its own
 * failure, and takes them down again (§2.3).
 */
export const discoveryMachine = setup({
  types: {
    context: {} as DiscoveryContext,
    input: {} as DiscoveryInput,
    output: {} as DiscoveryOutput,
    events: {} as SignalReceived | StageReport,
    children: {} as {
      signals: 'signals';
      http: 'http';
      'ads-server': 'adsServer';
      'mesh-config': 'meshConfig';
      'mesh-networks': 'meshConfig';
      'config-controller': 'configController';
      'service-registry': 'serviceRegistry';
      push: 'push';
    },
  },
  actors: {
    /** Passes on what the operating system delivers. */
    signals: callbackEffect<{ type: never }, undefined>('signals'),
    /** Serves /ready, /metrics and /debug. Stopped: every connection is cut. */
    http: callbackEffect<HttpOrder, undefined>('http'),
    /** Serves xDS. Its connections are actors of their own (ads-connection). Stopped: every stream is cut. */
    adsServer: callbackEffect<AdsOrder, undefined>('adsServer'),
    meshConfig: meshConfigMachine,
    configController: configControllerMachine,
    serviceRegistry: serviceRegistryMachine,
    push: pushMachine,
  },
  delays: { shutdownDuration: ({ context }) => context.settings.shutdownMs },
  guards: {
    isMesh: ({ event }) => event.type === 'settings.loaded' && event.what === 'mesh',
    isNetworks: ({ event }) => event.type === 'settings.loaded' && event.what === 'networks',
  },
  actions: {
    rememberTrouble: assign({
      trouble: ({ context }, params: { stage: string; reason: string }) => [
        ...context.trouble,
        `${params.stage}: ${params.reason}`,
      ],
    }),
    loadMesh: sendTo('mesh-config', { type: 'settings.load' }),
    loadNetworks: sendTo('mesh-networks', { type: 'settings.load' }),
    openHttp: sendTo('http', { type: 'http.open' }),
    loadConfigs: sendTo('config-controller', { type: 'configs.load' }),
    loadServices: sendTo('service-registry', { type: 'services.load' }),
    startPush: sendTo('push', { type: 'push.start' }),
    listen: sendTo('ads-server', { type: 'ads.listen' }),
    becomeReady: sendTo('http', { type: 'serving.began' }),
    becomeUnready: sendTo('http', { type: 'serving.ended' }),
    pushEverything: sendTo('push', { type: 'push.request', configs: [], forced: true, reasons: { debug: 1 } }),
    drainStreams: sendTo('ads-server', { type: 'ads.drain' }),
    closeHttp: sendTo('http', { type: 'http.close' }),
  },
}).createMachine({
  id: 'discovery',
  description: 'The control plane.',
  context: ({ input }) => ({ ...input, trouble: [] }),
  invoke: { id: 'signals', src: 'signals' },
  initial: 'at work',
  states: {
    'at work': {
      description: 'The servers are there, open or not.',
      invoke: [
        {
          id: 'http',
          src: 'http',
          systemId: 'http',
          onError: {
            target: 'stopped',
            actions: {
              type: 'rememberTrouble',
              params: ({ event }) => ({ stage: 'HTTP server', reason: reasonOf(event.error) }),
            },
          },
        },
        {
          id: 'ads-server',
          src: 'adsServer',
          systemId: 'ads-server',
          onError: {
            target: 'stopped',
            actions: {
              type: 'rememberTrouble',
              params: ({ event }) => ({ stage: 'xDS server', reason: reasonOf(event.error) }),
            },
          },
        },
      ],
      initial: 'operating',
      states: {
        operating: {
          description: 'The sources are there, and being read in their order or watched.',
          invoke: [
            {
              id: 'push',
              src: 'push',
              systemId: 'push',
              input: ({ context }) => context.settings.push,
              onError: {
                target: 'draining',
                actions: {
                  type: 'rememberTrouble',
                  params: ({ event }) => ({ stage: 'push', reason: reasonOf(event.error) }),
                },
              },
            },
            {
              id: 'service-registry',
              src: 'serviceRegistry',
              systemId: 'service-registry',
              onError: {
                target: 'draining',
                actions: {
                  type: 'rememberTrouble',
                  params: ({ event }) => ({ stage: 'services', reason: reasonOf(event.error) }),
                },
              },
            },
            {
              id: 'config-controller',
              src: 'configController',
              systemId: 'config-controller',
              input: ({ context }) => context.settings.configs,
              onError: {
                target: 'draining',
                actions: {
                  type: 'rememberTrouble',
                  params: ({ event }) => ({ stage: 'configuration', reason: reasonOf(event.error) }),
                },
              },
            },
            {
              id: 'mesh-networks',
              src: 'meshConfig',
              input: ({ context }) => ({ what: 'networks' as const, ...context.settings.networks }),
              onError: {
                target: 'draining',
                actions: {
                  type: 'rememberTrouble',
                  params: ({ event }) => ({ stage: 'mesh networks', reason: reasonOf(event.error) }),
                },
              },
            },
            {
              id: 'mesh-config',
              src: 'meshConfig',
              input: ({ context }) => ({ what: 'mesh' as const, ...context.settings.mesh }),
              onError: {
                target: 'draining',
                actions: {
                  type: 'rememberTrouble',
                  params: ({ event }) => ({ stage: 'mesh configuration', reason: reasonOf(event.error) }),
                },
              },
            },
          ],
          on: {
            'signal.received': 'draining',
            'http.failed': {
              target: 'draining',
              actions: {
                type: 'rememberTrouble',
                params: ({ event }) => ({ stage: 'HTTP server', reason: event.reason }),
              },
            },
            'ads.failed': {
              target: 'draining',
              actions: {
                type: 'rememberTrouble',
                params: ({ event }) => ({ stage: 'xDS server', reason: event.reason }),
              },
            },
            'settings.changed': { description: 'For the record: push was asked already.' },
            'settings.rejected': { description: 'For the record: the last good value is in force.' },
            'config.rejected': { description: 'For the record: the last good objects are in force.' },
            'config.recovered': { description: 'For the record.' },
            'services.failed': { description: 'For the record: the last services are in force.' },
            'context.built': { description: 'For the record: the proxies are being brought up to date.' },
            'context.failed': { description: 'For the record: the last context is in force.' },
            'push.wanted': { description: 'Everybody is served from the first context, which is still to come.' },
            // Each stage waits for its own; nobody reports twice.
            'settings.loaded': {},
            'http.listening': {},
            'http.closed': {},
            'configs.synced': {},
            'configs.failed': {},
            'services.synced': {},
            'ads.listening': {},
            'ads.drained': {},
          },
          initial: 'loading mesh config',
          states: {
            'loading mesh config': {
              description: 'Everything else depends on mesh-wide settings.',
              entry: 'loadMesh',
              on: { 'settings.loaded': { guard: 'isMesh', target: 'loading networks' } },
            },
            'loading networks': {
              entry: 'loadNetworks',
              on: { 'settings.loaded': { guard: 'isNetworks', target: 'starting http' } },
            },
            'starting http': {
              description: 'From here on /ready answers 503 rather than nothing.',
              entry: 'openHttp',
              on: { 'http.listening': 'syncing configuration' },
            },
            'syncing configuration': {
              description: 'Reading all configuration objects.',
              entry: 'loadConfigs',
              on: {
                'configs.synced': 'syncing registries',
                'configs.failed': {
                  target: '#discovery.at work.draining',
                  actions: {
                    type: 'rememberTrouble',
                    params: ({ event }) => ({ stage: 'configuration', reason: event.reason }),
                  },
                },
              },
            },
            'syncing registries': {
              description: 'Making services and endpoints.',
              entry: 'loadServices',
              on: {
                'services.synced': 'building first push context',
                'services.failed': {
                  target: '#discovery.at work.draining',
                  actions: {
                    type: 'rememberTrouble',
                    params: ({ event }) => ({ stage: 'services', reason: event.reason }),
                  },
                },
              },
            },
            'building first push context': {
              description: 'No stream is accepted before there is something complete to serve.',
              entry: 'startPush',
              on: {
                'context.built': 'listening',
                'context.failed': {
                  target: '#discovery.at work.draining',
                  actions: {
                    type: 'rememberTrouble',
                    params: ({ event }) => ({ stage: 'first push context', reason: event.reason }),
                  },
                },
              },
            },
            listening: {
              description: 'Opening the xDS port.',
              entry: 'listen',
              on: { 'ads.listening': 'serving' },
            },
            serving: {
              description: 'Proxies are served, /ready answers 200.',
              entry: 'becomeReady',
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
            // Answers to orders of before.
            'http.listening': {},
            'http.closed': {},
            'ads.listening': {},
            'ads.drained': {},
          },
          initial: 'closing streams',
          states: {
            'closing streams': {
              entry: ['becomeUnready', 'drainStreams'],
              on: { 'ads.drained': 'closing http' },
            },
            'closing http': {
              entry: 'closeHttp',
              on: { 'http.closed': '#discovery.stopped' },
            },
          },
        },
      },
    },
    stopped: { type: 'final' },
  },
  output: ({ context }) => ({ exitCode: context.trouble.length === 0 ? 0 : 1, trouble: context.trouble }),
});
