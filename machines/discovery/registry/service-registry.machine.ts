import { reasonOf } from '../../effect.ts';
import { serviceRegistryTimeline } from '../timeline.ts';
import { orderOf, type ServicesReading, serviceRegistrySetup, theList, theNames } from './service-registry.setup.ts';

type Computed = { event: { output: ServicesReading } };

const loaded = {
  target: '#service-registry.current',
  actions: [
    'requestPushAlongside',
    'forgetChanges',
    { type: 'reportProblems', params: ({ event }: Computed) => event.output },
    { type: 'reportSynced', params: ({ event }: Computed) => event.output },
  ],
} as const;

const notLoaded = {
  target: '#service-registry.stale',
  actions: [
    'requestPushAlongside',
    'countFailure',
    { type: 'reportFailed', params: ({ event }: { event: { error: unknown } }) => ({ error: event.error }) },
  ],
} as const;

/**
 * Turns changes of the objects that describe services into changes of services and endpoints (spec/discovery.md §5.5),
 * and says which of the two: endpoints alone concern far fewer proxies and resources.
 */
export const serviceRegistryMachine = serviceRegistrySetup.createMachine({
  id: 'service-registry',
  description: 'Services and endpoints, from whatever describes them.',
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
        description: 'Those that there are stay, with what they have.',
        actions: {
          type: 'reportRegistryFailed',
          params: ({ event }) => ({ registry: theList, reason: reasonOf(event.error) }),
        },
      },
    },
    {
      id: 'gateway-names',
      src: 'gatewayNames',
      onError: {
        description: 'Gateways keep the addresses that they have.',
        actions: {
          type: 'reportRegistryFailed',
          params: ({ event }) => ({ registry: theNames, reason: reasonOf(event.error) }),
        },
      },
    },
  ],
  initial: 'idle',
  on: {
    'configs.changed': { actions: 'remember' },
    'registries.listed': {
      actions: [{ type: 'follow', params: ({ event }) => ({ listed: event.registries }) }, 'rememberRegistries'],
    },
    'gateways.resolved': { actions: 'rememberRegistries' },
    'registry.synced': {
      actions: [{ type: 'noteSynced', params: ({ event }) => event }, 'rememberRegistries'],
    },
    'registry.changed': { actions: 'rememberRegistries' },
    'registry.failed': {
      description: 'What it handed over stays in force.',
      actions: { type: 'reportRegistryFailed', params: ({ event }) => event },
    },
    'services.load': { description: 'They are being made already.' },
  },
  states: {
    idle: {
      description: 'Not asked for yet. What changes meanwhile is part of the first computation.',
      meta: { waitsFor: 'services.load, which the start sends' },
      on: { 'services.load': 'loading' },
    },
    loading: {
      description: 'Services and endpoints are made for the first time, of all objects and of what registries have.',
      after: {
        firstLists: {
          description: 'One registry that is out of reach keeps no proxy from all the others.',
          target: '.without what is missing',
        },
      },
      initial: 'awaiting first lists',
      states: {
        'awaiting first lists': {
          description:
            'A registry has not handed over what it has. Proxies would take what is missing for gone: they are not served yet.',
          entry: 'reportAwaited',
          always: { guard: 'allAreSynced', target: 'computing' },
          on: {
            'registries.listed': {
              actions: [{ type: 'follow', params: ({ event }) => ({ listed: event.registries }) }, 'reportAwaited'],
            },
            'registry.synced': {
              actions: [{ type: 'noteSynced', params: ({ event }) => event }, 'reportAwaited'],
            },
          },
        },
        computing: {
          entry: 'takeChanges',
          invoke: {
            id: 'computing',
            src: 'computeServices',
            input: ({ context }) => orderOf(context),
            onDone: loaded,
            onError: notLoaded,
          },
        },
        'without what is missing': {
          description: 'It has been waited long enough.',
          entry: 'takeChanges',
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
      description: 'Services and endpoints are what the objects in force say.',
      meta: { waitsFor: 'a change of objects or of a registry: this is the work' },
      always: { guard: 'somethingIsPending', target: 'computing' },
    },
    computing: {
      description: 'Services and endpoints are made anew. The last ones are in force.',
      meta: { waitsFor: 'a computation of ours; the last services are in force' },
      entry: 'takeChanges',
      invoke: {
        id: 'computing',
        src: 'computeServices',
        input: ({ context }) => orderOf(context),
        onDone: [
          {
            guard: { type: 'concernsEverything', params: ({ event }) => event.output },
            target: 'current',
            actions: [
              'forgetFailures',
              { type: 'requestFullPush', params: ({ event }) => event.output },
              { type: 'reportProblems', params: ({ event }) => event.output },
              'forgetChanges',
            ],
          },
          {
            guard: { type: 'concernsServices', params: ({ event }) => event.output },
            target: 'current',
            actions: [
              'forgetFailures',
              { type: 'requestServicePush', params: ({ event }) => event.output },
              { type: 'reportProblems', params: ({ event }) => event.output },
              'forgetChanges',
            ],
          },
          {
            guard: { type: 'concernsEndpoints', params: ({ event }) => event.output },
            target: 'current',
            actions: [
              'forgetFailures',
              { type: 'requestEndpointPush', params: ({ event }) => event.output },
              { type: 'reportProblems', params: ({ event }) => event.output },
              'forgetChanges',
            ],
          },
          {
            description: 'Nothing of services that anybody could notice.',
            target: 'current',
            actions: [
              'forgetFailures',
              'requestPushAlongside',
              { type: 'reportProblems', params: ({ event }) => event.output },
              'forgetChanges',
            ],
          },
        ],
        onError: {
          target: 'stale',
          actions: [
            'requestPushAlongside',
            'putChangesBack',
            'countFailure',
            { type: 'reportFailed', params: ({ event }) => ({ error: event.error }) },
          ],
        },
      },
    },
    stale: {
      description: 'The last computation failed. It is tried again, later each time, and with the next change.',
      after: { retryDelay: 'computing' },
      on: {
        'configs.changed': { target: 'computing', actions: 'remember' },
        'registries.listed': {
          target: 'computing',
          actions: { type: 'follow', params: ({ event }) => ({ listed: event.registries }) },
        },
        'gateways.resolved': 'computing',
        'registry.synced': { target: 'computing', actions: { type: 'noteSynced', params: ({ event }) => event } },
        'registry.changed': 'computing',
      },
    },
  },
});
