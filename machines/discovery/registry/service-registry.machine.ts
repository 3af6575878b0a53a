import { assign, enqueueActions, sendParent, sendTo, setup } from 'xstate';
import { callbackEffect, promiseEffect, reasonOf } from '../../effect.ts';
import { peer } from '../peers.ts';
import type {
  ConfigChange,
  ConfigsChanged,
  GatewaysResolved,
  ListedRegistry,
  PushOrder,
  PushReason,
  PushRequest,
  RegistriesListed,
  RegistryChanged,
  RegistryFailed,
  RegistrySynced,
  ServicesAwaited,
  ServicesFailed,
  ServicesLoad,
  ServicesSynced,
} from '../protocol.ts';
import { failedOnceMore, retryDelayMs } from '../retry-delay.ts';
import { serviceRegistryTimeline } from '../timeline.ts';
import { gatewayNamesMachine } from './gateway-names.machine.ts';
import { registryMachine } from './registry.machine.ts';

export interface ServiceRegistryInput {
  /** How long the start waits for registries that have not handed over all that they have. */
  firstListsMs: number;
}

/** One that there is. */
interface KnownRegistry extends ListedRegistry {
  /** Of its actor. */
  name: string;
  /** All that it has was handed over once. */
  synced: boolean;
}

interface ServiceRegistryContext extends ServiceRegistryInput {
  /** Those that there are; null until that was said. */
  registries: KnownRegistry[] | null;
  /** How many actors there were, for the name of the next. */
  started: number;
  /** Changes that services and endpoints do not reflect yet. */
  pending: ConfigChange[];
  /** Registries hold something that services and endpoints do not reflect yet. */
  registriesMoved: boolean;
  /** Those that are being computed. */
  underWay: ConfigChange[];
  /** Keys of other objects that changed with those that are pending: they are pushed with the services. */
  alongside: string[];
  /** Likewise, of those that are being computed. */
  alongsideUnderWay: string[];
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
  /** Why, as the registries count; absent: what changed, one by one. */
  reasons?: Partial<Record<PushReason, number>>;
}

/** What services are made of. */
export interface ServicesOrder {
  /** Objects that changed since the last time. */
  changes: ConfigChange[];
  /** `Provider/cluster` of those that there are: of any other nothing is left. Null: that was not said yet. */
  registries: string[] | null;
}

type Computed = { event: { output: ServicesReading } };

const loaded = {
  target: '#service-registry.current',
  actions: [
    'requestPushAlongside',
    'forgetChanges',
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
export const serviceRegistryMachine = setup({
  types: {
    context: {} as ServiceRegistryContext,
    input: {} as ServiceRegistryInput,
    events: {} as
      | ServicesLoad
      | ConfigsChanged
      | RegistriesListed
      | GatewaysResolved
      | RegistrySynced
      | RegistryChanged
      | RegistryFailed,
    children: {} as {
      computing: 'computeServices';
      registries: 'listRegistries';
      'gateway-names': 'gatewayNames';
    } & Record<`registry-${number}`, 'registry'>,
  },
  actors: {
    /** Says which registries there are, at once and whenever they are others; and when names of gateways resolve otherwise. */
    listRegistries: callbackEffect<{ type: never }, undefined>('listRegistries'),
    registry: registryMachine,
    gatewayNames: gatewayNamesMachine,
    /** Makes services and endpoints of the objects in force and of what registries have, and compares them with the last ones. */
    computeServices: promiseEffect<ServicesReading, ServicesOrder>('computeServices'),
  },
  delays: {
    firstLists: ({ context }) => context.firstListsMs,
    retryDelay: ({ context }) => retryDelayMs(context.failures),
  },
  guards: {
    allAreSynced: ({ context }) => unsyncedOf(context).length === 0,
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
      alongside: ({ context, event }) =>
        event.type === 'configs.changed' ? [...context.alongside, ...(event.alongside ?? [])] : context.alongside,
    }),
    rememberRegistries: assign({ registriesMoved: true }),
    takeChanges: assign({
      underWay: ({ context }) => context.pending,
      alongsideUnderWay: ({ context }) => context.alongside,
      pending: [],
      alongside: [],
      registriesMoved: false,
    }),
    forgetChanges: assign({ underWay: [], alongsideUnderWay: [] }),
    countFailure: assign({ failures: ({ context }) => failedOnceMore(context.failures) }),
    forgetFailures: assign({ failures: 0 }),
    /** Registries that came get an actor each; the actors of those that went, or were replaced, are stopped. */
    follow: enqueueActions(({ context, enqueue }, { listed }: { listed: ListedRegistry[] }) => {
      let { started } = context;
      const known = new Map(context.registries?.map((one) => [idOf(one), one]));
      const registries = listed.map((one): KnownRegistry => {
        const before = known.get(idOf(one));
        if (before !== undefined) return before;
        const name = `registry-${++started}` as const;
        enqueue.spawnChild('registry', { id: name, input: one });
        return { ...one, name, synced: false };
      });
      const names = new Set(registries.map(({ name }) => name));
      for (const { name } of context.registries ?? []) if (!names.has(name)) enqueue.stopChild(name);
      enqueue.assign({ registries, started });
    }),
    noteSynced: assign({
      registries: ({ context }, { registry }: { registry: string }) =>
        context.registries?.map((one) => (one.registry === registry ? { ...one, synced: true } : one)) ?? null,
    }),
    /** `/ready` says what is missing. */
    reportAwaited: enqueueActions(({ context, enqueue }) => {
      const registries = unsyncedOf(context);
      if (registries.length === 0) return;
      enqueue.sendParent({ type: 'services.awaited', registries } satisfies ServicesAwaited);
    }),
    reportRegistryFailed: sendParent(
      (_, { registry, reason }: { registry: string; reason: string }): RegistryFailed => ({
        type: 'registry.failed',
        registry,
        reason,
      }),
    ),
    /** Nothing is lost by a failed computation: the next one brings these along. */
    putChangesBack: assign({
      pending: ({ context }) => [...context.underWay, ...context.pending],
      underWay: [],
      alongsideUnderWay: [],
      registriesMoved: true,
    }),
    reportSynced: sendParent(
      ({ context }, params: ServicesReading): ServicesSynced => ({
        type: 'services.synced',
        services: params.services,
        endpoints: params.endpoints,
        missing: unsyncedOf(context),
      }),
    ),
    reportFailed: sendParent(
      (_, params: { error: unknown }): ServicesFailed => ({ type: 'services.failed', reason: reasonOf(params.error) }),
    ),
    requestFullPush: sendTo(
      peer('push'),
      (_, { reasons = { cluster: 1 } }: ServicesReading): PushRequest => ({
        type: 'push.request',
        configs: [],
        forced: true,
        reasons,
      }),
    ),
    requestServicePush: sendTo(
      peer('push'),
      ({ context }, params: ServicesReading): PushRequest =>
        withAlongside(context, {
          type: 'push.request',
          configs: [...params.changedServices, ...params.changedEndpoints, ...(params.changedProxies ?? [])],
          forced: false,
          reasons: params.reasons ?? countsOf(params),
        }),
    ),
    requestEndpointPush: sendTo(
      peer('push'),
      ({ context }, params: ServicesReading): PushRequest =>
        withAlongside(context, {
          type: 'push.request',
          configs: params.changedEndpoints,
          forced: false,
          reasons: params.reasons ?? countsOf(params),
        }),
    ),
    /** Of objects that changed with services which are as they were, or cannot be computed. */
    requestPushAlongside: enqueueActions(({ context, enqueue }) => {
      if (context.alongsideUnderWay.length === 0) return;
      const none: PushRequest = { type: 'push.request', configs: [], forced: false, reasons: {} };
      enqueue.sendTo(peer('push'), withAlongside(context, none));
    }),
  },
}).createMachine({
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
              'forgetChanges',
            ],
          },
          {
            guard: { type: 'concernsServices', params: ({ event }) => event.output },
            target: 'current',
            actions: [
              'forgetFailures',
              { type: 'requestServicePush', params: ({ event }) => event.output },
              'forgetChanges',
            ],
          },
          {
            guard: { type: 'concernsEndpoints', params: ({ event }) => event.output },
            target: 'current',
            actions: [
              'forgetFailures',
              { type: 'requestEndpointPush', params: ({ event }) => event.output },
              'forgetChanges',
            ],
          },
          {
            description: 'Nothing of services that anybody could notice.',
            target: 'current',
            actions: ['forgetFailures', 'requestPushAlongside', 'forgetChanges'],
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

/** What a person is told when it is not known which registries there are. */
const theList = 'the list of registries';
const theNames = 'names of gateways';

function unsyncedOf({ registries }: ServiceRegistryContext): string[] {
  return registries?.filter(({ synced }) => !synced).map(({ registry }) => registry) ?? [theList];
}

function orderOf({ underWay, registries }: ServiceRegistryContext): ServicesOrder {
  return { changes: underWay, registries: registries?.map(({ registry }) => registry) ?? null };
}

function idOf({ registry, revision }: ListedRegistry): string {
  return `${registry} ${revision}`;
}

function withAlongside({ alongsideUnderWay }: ServiceRegistryContext, push: PushRequest): PushRequest {
  if (alongsideUnderWay.length === 0) return push;
  return {
    ...push,
    configs: [...push.configs, ...alongsideUnderWay],
    reasons: { ...push.reasons, config: alongsideUnderWay.length },
  };
}

function countsOf({ changedServices, changedEndpoints, changedProxies = [] }: ServicesReading): PushOrder['reasons'] {
  return {
    ...(changedServices.length > 0 && { service: changedServices.length }),
    ...(changedEndpoints.length > 0 && { endpoint: changedEndpoints.length }),
    ...(changedProxies.length > 0 && { proxy: changedProxies.length }),
  };
}
