import { assign, sendParent, sendTo, setup } from 'xstate';
import { promiseEffect, reasonOf } from '../effect.ts';
import type {
  ConfigChange,
  ConfigsChanged,
  PushRequest,
  ServicesFailed,
  ServicesLoad,
  ServicesSynced,
} from './protocol.ts';

interface ServiceRegistryContext {
  /** Changes that services and endpoints do not reflect yet. */
  pending: ConfigChange[];
  /** Those that are being computed. */
  underWay: ConfigChange[];
}

/** What became of services and endpoints. Keys are `ServiceEntry/namespace/host` and `Endpoints/namespace/host`. */
export interface ServicesReading {
  services: number;
  endpoints: number;
  /** Services that came, went or are not what they were. */
  changedServices: string[];
  /** Services that are the same but for their endpoints. */
  changedEndpoints: string[];
}

/**
 * Turns changes of the objects that describe services into changes of services and endpoints (spec/discovery.md §5.5),
 * and says which of the two: endpoints alone concern far fewer proxies and resources.
 */
export const serviceRegistryMachine = setup({
  types: {
    context: {} as ServiceRegistryContext,
    events: {} as ServicesLoad | ConfigsChanged,
    children: {} as { computing: 'computeServices' },
  },
  actors: {
    /** Makes services and endpoints of the objects in force, and compares them with the last ones. */
    computeServices: promiseEffect<ServicesReading, { changes: ConfigChange[] }>('computeServices'),
  },
  guards: {
    somethingIsPending: ({ context }) => context.pending.length > 0,
    concernsServices: (_, params: ServicesReading) => params.changedServices.length > 0,
    concernsEndpoints: (_, params: ServicesReading) => params.changedEndpoints.length > 0,
  },
  actions: {
    remember: assign({
      pending: ({ context, event }) =>
        event.type === 'configs.changed' ? [...context.pending, ...event.changes] : context.pending,
    }),
    takeChanges: assign({ underWay: ({ context }) => context.pending, pending: [] }),
    forgetChanges: assign({ underWay: [] }),
    /** Nothing is lost by a failed computation: the next change brings these along. */
    putChangesBack: assign({ pending: ({ context }) => [...context.underWay, ...context.pending], underWay: [] }),
    reportSynced: sendParent(
      (_, params: ServicesReading): ServicesSynced => ({
        type: 'services.synced',
        services: params.services,
        endpoints: params.endpoints,
      }),
    ),
    reportFailed: sendParent(
      (_, params: { error: unknown }): ServicesFailed => ({ type: 'services.failed', reason: reasonOf(params.error) }),
    ),
    requestServicePush: sendTo(
      ({ system }) => system.get('push'),
      (_, params: ServicesReading): PushRequest => ({
        type: 'push.request',
        configs: [...params.changedServices, ...params.changedEndpoints],
        forced: false,
        reasons: {
          service: params.changedServices.length,
          ...(params.changedEndpoints.length > 0 && { endpoint: params.changedEndpoints.length }),
        },
      }),
    ),
    requestEndpointPush: sendTo(
      ({ system }) => system.get('push'),
      (_, params: ServicesReading): PushRequest => ({
        type: 'push.request',
        configs: params.changedEndpoints,
        forced: false,
        reasons: { endpoint: params.changedEndpoints.length },
      }),
    ),
  },
}).createMachine({
  id: 'service-registry',
  description: 'Services and endpoints, from whatever describes them.',
  context: { pending: [], underWay: [] },
  initial: 'idle',
  on: {
    'configs.changed': { actions: 'remember' },
    'services.load': { description: 'They are being made already.' },
  },
  states: {
    idle: {
      description: 'Not asked for yet. What changes meanwhile is part of the first computation.',
      on: { 'services.load': 'loading' },
    },
    loading: {
      description: 'Services and endpoints are made for the first time, of all objects.',
      entry: 'takeChanges',
      invoke: {
        id: 'computing',
        src: 'computeServices',
        input: ({ context }) => ({ changes: context.underWay }),
        onDone: { target: 'current', actions: { type: 'reportSynced', params: ({ event }) => event.output } },
        onError: {
          target: 'stale',
          actions: { type: 'reportFailed', params: ({ event }) => ({ error: event.error }) },
        },
      },
    },
    current: {
      description: 'Services and endpoints are what the objects in force say.',
      always: { guard: 'somethingIsPending', target: 'computing' },
    },
    computing: {
      description: 'Services and endpoints are made anew. The last ones are in force.',
      entry: 'takeChanges',
      exit: 'forgetChanges',
      invoke: {
        id: 'computing',
        src: 'computeServices',
        input: ({ context }) => ({ changes: context.underWay }),
        onDone: [
          {
            guard: { type: 'concernsServices', params: ({ event }) => event.output },
            target: 'current',
            actions: { type: 'requestServicePush', params: ({ event }) => event.output },
          },
          {
            guard: { type: 'concernsEndpoints', params: ({ event }) => event.output },
            target: 'current',
            actions: { type: 'requestEndpointPush', params: ({ event }) => event.output },
          },
          { description: 'Nothing that anybody could notice.', target: 'current' },
        ],
        onError: {
          target: 'stale',
          actions: ['putChangesBack', { type: 'reportFailed', params: ({ event }) => ({ error: event.error }) }],
        },
      },
    },
    stale: {
      description: 'The last computation failed. The next change brings its changes along.',
      on: { 'configs.changed': { target: 'computing', actions: 'remember' } },
    },
  },
});
