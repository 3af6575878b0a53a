import { assign, sendParent, sendTo, setup } from 'xstate';
import { callbackEffect, promiseEffect, reasonOf } from '../effect.ts';
import type {
  ConfigChange,
  ConfigsChanged,
  PushOrder,
  PushReason,
  PushRequest,
  RegistriesChanged,
  ServicesAwaited,
  ServicesFailed,
  ServicesLoad,
  ServicesSynced,
} from './protocol.ts';
import { failedOnceMore, retryDelayMs } from './retry-delay.ts';

export interface ServiceRegistryInput {
  /** How long the start waits for registries that have not told their first list. */
  firstListsMs: number;
  /** Meanwhile they are asked so often. */
  askAgainMs: number;
}

interface ServiceRegistryContext extends ServiceRegistryInput {
  /** Changes that services and endpoints do not reflect yet. */
  pending: ConfigChange[];
  /** Registries hold something that services and endpoints do not reflect yet. */
  registriesMoved: boolean;
  /** Those that are being computed. */
  underWay: ConfigChange[];
  /** Computations that failed since the last one that did not. */
  failures: number;
}

/** What became of services and endpoints. Keys are `ServiceEntry/namespace/host` and `Endpoints/namespace/host`. */
export interface ServicesReading {
  services: number;
  endpoints: number;
  /** Services that came, went or are not what they were. */
  changedServices: string[];
  /** Services that are the same but for their endpoints. */
  changedEndpoints: string[];
  /** `Proxy/cluster/address`: proxies whose workload has other labels, or another place. */
  changedProxies?: string[];
  /** A registry went, or the ways between networks are others: everything is made anew for everyone. */
  forced?: boolean;
  /** `Provider/cluster` of registries that have not handed over their first list. */
  unsynced?: string[];
  /** Why, as the registries count; absent: what changed, one by one. */
  reasons?: Partial<Record<PushReason, number>>;
}

type Computed = { event: { output: ServicesReading } };

const loaded = {
  target: '#service-registry.current',
  actions: { type: 'reportSynced', params: ({ event }: Computed) => event.output },
} as const;

const notLoaded = {
  target: '#service-registry.stale',
  actions: [
    'countFailure',
    { type: 'reportFailed', params: ({ event }: { event: { error: unknown } }) => ({ error: event.error }) },
  ],
} as const;

/**
 * Turns changes of the objects that describe services into changes of services and endpoints (spec/discovery.md §5.5),
 * and says which of the two: endpoints alone concern far fewer proxies and resources.
 */
export const serviceRegistryMachine = setup({
  types: {
    context: {} as ServiceRegistryContext,
    input: {} as ServiceRegistryInput,
    events: {} as ServicesLoad | ConfigsChanged | RegistriesChanged,
    children: {} as { computing: 'computeServices'; registries: 'watchRegistries' },
  },
  actors: {
    /** Listens to registries that change by themselves: names of gateways resolve otherwise, a live cluster has news. */
    watchRegistries: callbackEffect<{ type: never }, undefined>('watchRegistries'),
    /** Makes services and endpoints of the objects in force, and compares them with the last ones. */
    computeServices: promiseEffect<ServicesReading, { changes: ConfigChange[] }>('computeServices'),
  },
  delays: {
    firstLists: ({ context }) => context.firstListsMs,
    askAgain: ({ context }) => context.askAgainMs,
    retryDelay: ({ context }) => retryDelayMs(context.failures),
  },
  guards: {
    isComplete: (_, params: ServicesReading) => unsyncedOf(params).length === 0,
    somethingIsPending: ({ context }) => context.pending.length > 0 || context.registriesMoved,
    concernsEverything: (_, params: ServicesReading) => params.forced === true,
    concernsServices: (_, params: ServicesReading) =>
      params.changedServices.length > 0 || (params.changedProxies ?? []).length > 0,
    concernsEndpoints: (_, params: ServicesReading) => params.changedEndpoints.length > 0,
  },
  actions: {
    remember: assign({
      pending: ({ context, event }) =>
        event.type === 'configs.changed' ? [...context.pending, ...event.changes] : context.pending,
    }),
    rememberRegistries: assign({ registriesMoved: true }),
    takeChanges: assign({ underWay: ({ context }) => context.pending, pending: [], registriesMoved: false }),
    forgetChanges: assign({ underWay: [] }),
    countFailure: assign({ failures: ({ context }) => failedOnceMore(context.failures) }),
    forgetFailures: assign({ failures: 0 }),
    reportAwaited: sendParent(
      (_, params: ServicesReading): ServicesAwaited => ({ type: 'services.awaited', registries: unsyncedOf(params) }),
    ),
    /** Nothing is lost by a failed computation: the next one brings these along. */
    putChangesBack: assign({
      pending: ({ context }) => [...context.underWay, ...context.pending],
      underWay: [],
      registriesMoved: true,
    }),
    reportSynced: sendParent(
      (_, params: ServicesReading): ServicesSynced => ({
        type: 'services.synced',
        services: params.services,
        endpoints: params.endpoints,
        missing: unsyncedOf(params),
      }),
    ),
    reportFailed: sendParent(
      (_, params: { error: unknown }): ServicesFailed => ({ type: 'services.failed', reason: reasonOf(params.error) }),
    ),
    requestFullPush: sendTo(
      ({ system }) => system.get('push'),
      (_, { reasons = { cluster: 1 } }: ServicesReading): PushRequest => ({
        type: 'push.request',
        configs: [],
        forced: true,
        reasons,
      }),
    ),
    requestServicePush: sendTo(
      ({ system }) => system.get('push'),
      (_, params: ServicesReading): PushRequest => ({
        type: 'push.request',
        configs: [...params.changedServices, ...params.changedEndpoints, ...(params.changedProxies ?? [])],
        forced: false,
        reasons: params.reasons ?? countsOf(params),
      }),
    ),
    requestEndpointPush: sendTo(
      ({ system }) => system.get('push'),
      (_, params: ServicesReading): PushRequest => ({
        type: 'push.request',
        configs: params.changedEndpoints,
        forced: false,
        reasons: params.reasons ?? countsOf(params),
      }),
    ),
  },
}).createMachine({
  id: 'service-registry',
  description: 'Services and endpoints, from whatever describes them.',
  context: ({ input }) => ({ ...input, pending: [], underWay: [], registriesMoved: false, failures: 0 }),
  invoke: { id: 'registries', src: 'watchRegistries' },
  initial: 'idle',
  on: {
    'configs.changed': { actions: 'remember' },
    'registries.changed': { actions: 'rememberRegistries' },
    'services.load': { description: 'They are being made already.' },
  },
  states: {
    idle: {
      description: 'Not asked for yet. What changes meanwhile is part of the first computation.',
      meta: { waitsFor: 'services.load, which the start sends' },
      on: { 'services.load': 'loading' },
    },
    loading: {
      description: 'Services and endpoints are made for the first time, of all objects and of what registries list.',
      after: {
        firstLists: {
          description: 'One registry that is out of reach keeps no proxy from all the others.',
          target: '.without what is missing',
        },
      },
      initial: 'asking',
      states: {
        asking: {
          entry: 'takeChanges',
          invoke: {
            id: 'computing',
            src: 'computeServices',
            input: ({ context }) => ({ changes: context.underWay }),
            onDone: [
              { guard: { type: 'isComplete', params: ({ event }) => event.output }, ...loaded },
              {
                target: 'awaiting first lists',
                actions: { type: 'reportAwaited', params: ({ event }) => event.output },
              },
            ],
            onError: notLoaded,
          },
        },
        'awaiting first lists': {
          description:
            'A registry has not told what it has. Proxies would take what is missing for gone: they are not served yet.',
          after: { askAgain: 'asking' },
          on: { 'registries.changed': 'asking' },
        },
        'without what is missing': {
          description: 'It has been waited long enough.',
          entry: 'takeChanges',
          invoke: {
            id: 'computing',
            src: 'computeServices',
            input: ({ context }) => ({ changes: context.underWay }),
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
      exit: 'forgetChanges',
      invoke: {
        id: 'computing',
        src: 'computeServices',
        input: ({ context }) => ({ changes: context.underWay }),
        onDone: [
          {
            guard: { type: 'concernsEverything', params: ({ event }) => event.output },
            target: 'current',
            actions: ['forgetFailures', { type: 'requestFullPush', params: ({ event }) => event.output }],
          },
          {
            guard: { type: 'concernsServices', params: ({ event }) => event.output },
            target: 'current',
            actions: ['forgetFailures', { type: 'requestServicePush', params: ({ event }) => event.output }],
          },
          {
            guard: { type: 'concernsEndpoints', params: ({ event }) => event.output },
            target: 'current',
            actions: ['forgetFailures', { type: 'requestEndpointPush', params: ({ event }) => event.output }],
          },
          { description: 'Nothing that anybody could notice.', target: 'current', actions: 'forgetFailures' },
        ],
        onError: {
          target: 'stale',
          actions: [
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
        'registries.changed': 'computing',
      },
    },
  },
});

function unsyncedOf({ unsynced = [] }: ServicesReading): string[] {
  return unsynced;
}

function countsOf({ changedServices, changedEndpoints, changedProxies = [] }: ServicesReading): PushOrder['reasons'] {
  return {
    ...(changedServices.length > 0 && { service: changedServices.length }),
    ...(changedEndpoints.length > 0 && { endpoint: changedEndpoints.length }),
    ...(changedProxies.length > 0 && { proxy: changedProxies.length }),
  };
}
