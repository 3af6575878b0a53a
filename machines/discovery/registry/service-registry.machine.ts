import { reasonOf } from '../../effect.ts';
import { serviceRegistryTimeline } from '../timeline.ts';
import {
  gatewayNamesName,
  orderOf,
  registryListName,
  type ServicesReading,
  serviceRegistrySetup,
} from './service-registry.setup.ts';

type ComputeDone = { event: { output: ServicesReading } };

const loaded = {
  target: '#service-registry.current',
  actions: [
    'requestRelatedPush',
    'clearChanges',
    { type: 'reportProblems', params: ({ event }: ComputeDone) => event.output },
    { type: 'reportSynced', params: ({ event }: ComputeDone) => event.output },
  ],
} as const;

const notLoaded = {
  target: '#service-registry.stale',
  actions: [
    'requestRelatedPush',
    'countFailure',
    { type: 'reportFailed', params: ({ event }: { event: { error: unknown } }) => ({ error: event.error }) },
  ],
} as const;

/**
 * Computes services and endpoints after changes of their sources, and requests the smallest push: endpoints alone
 * concern far fewer proxies and resources.
 */
export const serviceRegistryMachine = serviceRegistrySetup.createMachine({
  id: 'service-registry',
  description: 'Services and endpoints of all registries.',
  meta: { timeline: serviceRegistryTimeline },
  context: ({ input }) => ({
    ...input,
    registries: null,
    started: 0,
    pending: [],
    underWay: [],
    alongside: [],
    alongsideUnderWay: [],
    registriesMoved: false,
    failures: 0,
  }),
  invoke: [
    {
      id: 'registries',
      src: 'listRegistries',
      onError: {
        description: 'The known registries are kept, with their services.',
        actions: {
          type: 'reportRegistryFailed',
          params: ({ event }) => ({ registry: registryListName, reason: reasonOf(event.error) }),
        },
      },
    },
    {
      id: 'gateway-names',
      src: 'gatewayNames',
      onError: {
        description: 'Gateways keep their addresses.',
        actions: {
          type: 'reportRegistryFailed',
          params: ({ event }) => ({ registry: gatewayNamesName, reason: reasonOf(event.error) }),
        },
      },
    },
  ],
  initial: 'idle',
  on: {
    'configs.changed': { actions: 'recordChanges' },
    'registries.listed': {
      actions: [
        { type: 'reconcileRegistries', params: ({ event }) => ({ listed: event.registries }) },
        'recordRegistriesChanged',
      ],
    },
    'gateways.resolved': { actions: 'recordRegistriesChanged' },
    'registry.synced': {
      actions: [{ type: 'recordSynced', params: ({ event }) => event }, 'recordRegistriesChanged'],
    },
    'registry.changed': { actions: 'recordRegistriesChanged' },
    'registry.failed': {
      description: 'The last services of the registry apply.',
      actions: { type: 'reportRegistryFailed', params: ({ event }) => event },
    },
    'services.load': { description: 'The services are computed already.' },
  },
  states: {
    idle: {
      description: 'Not started. The first computation includes all changes until then.',
      meta: { waitsFor: 'services.load, sent during the start' },
      on: { 'services.load': 'loading' },
    },
    loading: {
      description: 'Services and endpoints are computed for the first time, from all objects and registries.',
      after: {
        firstListsLimit: {
          description: 'An unreachable registry does not delay the services of others.',
          target: '.computing without missing lists',
        },
      },
      initial: 'awaiting first lists',
      states: {
        'awaiting first lists': {
          description:
            'A registry has not sent its first list. Proxies would treat its services as deleted, so they are not served yet.',
          entry: 'reportPending',
          always: { guard: 'areAllSynced', target: 'computing' },
          on: {
            'registries.listed': {
              actions: [
                { type: 'reconcileRegistries', params: ({ event }) => ({ listed: event.registries }) },
                'reportPending',
              ],
            },
            'registry.synced': {
              actions: [{ type: 'recordSynced', params: ({ event }) => event }, 'reportPending'],
            },
          },
        },
        computing: {
          entry: 'claimChanges',
          invoke: {
            id: 'computing',
            src: 'computeServices',
            input: ({ context }) => orderOf(context),
            onDone: loaded,
            onError: notLoaded,
          },
        },
        'computing without missing lists': {
          description: 'The limit for first lists has passed.',
          entry: 'claimChanges',
          invoke: {
            id: 'computing',
            src: 'computeServices',
            input: ({ context }) => orderOf(context),
            onDone: loaded,
            onError: notLoaded,
          },
        },
      },
    },
    current: {
      description: 'Services and endpoints are up to date.',
      meta: { waitsFor: 'a change of objects or of a registry: normal operation' },
      always: { guard: 'hasPendingChanges', target: 'computing' },
    },
    computing: {
      description: 'Computes services and endpoints. The last result applies.',
      meta: { waitsFor: 'a computation; the last services still apply' },
      entry: 'claimChanges',
      invoke: {
        id: 'computing',
        src: 'computeServices',
        input: ({ context }) => orderOf(context),
        onDone: [
          {
            guard: { type: 'affectsAll', params: ({ event }) => event.output },
            target: 'current',
            actions: [
              'resetFailures',
              { type: 'requestFullPush', params: ({ event }) => event.output },
              { type: 'reportProblems', params: ({ event }) => event.output },
              'clearChanges',
            ],
          },
          {
            guard: { type: 'affectsServices', params: ({ event }) => event.output },
            target: 'current',
            actions: [
              'resetFailures',
              { type: 'requestServicePush', params: ({ event }) => event.output },
              { type: 'reportProblems', params: ({ event }) => event.output },
              'clearChanges',
            ],
          },
          {
            guard: { type: 'affectsEndpoints', params: ({ event }) => event.output },
            target: 'current',
            actions: [
              'resetFailures',
              { type: 'requestEndpointPush', params: ({ event }) => event.output },
              { type: 'reportProblems', params: ({ event }) => event.output },
              'clearChanges',
            ],
          },
          {
            description: 'No service changed.',
            target: 'current',
            actions: [
              'resetFailures',
              'requestRelatedPush',
              { type: 'reportProblems', params: ({ event }) => event.output },
              'clearChanges',
            ],
          },
        ],
        onError: {
          target: 'stale',
          actions: [
            'requestRelatedPush',
            'restoreChanges',
            'countFailure',
            { type: 'reportFailed', params: ({ event }) => ({ error: event.error }) },
          ],
        },
      },
    },
    stale: {
      description: 'The last computation failed. It is repeated at increasing intervals and at the next change.',
      after: { retryDelay: 'computing' },
      on: {
        'configs.changed': { target: 'computing', actions: 'recordChanges' },
        'registries.listed': {
          target: 'computing',
          actions: { type: 'reconcileRegistries', params: ({ event }) => ({ listed: event.registries }) },
        },
        'gateways.resolved': 'computing',
        'registry.synced': { target: 'computing', actions: { type: 'recordSynced', params: ({ event }) => event } },
        'registry.changed': 'computing',
      },
    },
  },
});
