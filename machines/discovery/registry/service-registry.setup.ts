import { assign, enqueueActions, sendParent, sendTo, setup } from 'xstate';
import { callbackEffect, promiseEffect, reasonOf } from '../../effect.ts';
import { peer } from '../peers.ts';
import type {
  ConfigChange,
  ConfigProblem,
  ConfigRecovered,
  ConfigsChanged,
  ConfigsRejected,
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
  /** Of objects that only the registry reads, and of those beyond the limit of endpoints; absent: there are no new ones. */
  problems?: ConfigProblem[];
  /** Objects, for people, whose problems are resolved. */
  recovered?: string[];
}

/** What services are made of. */
export interface ServicesOrder {
  /** Objects that changed since the last time. */
  changes: ConfigChange[];
  /** `Provider/cluster` of those that there are: of any other nothing is left. Null: that was not said yet. */
  registries: string[] | null;
}

export const serviceRegistrySetup = setup({
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
    /**
     * Lists the registries, at once and whenever they are others; reports that the followed cluster has changed, and when names of gateways
     * resolve otherwise.
     */
    listRegistries: callbackEffect<{ type: never }, undefined>('listRegistries'),
    registry: registryMachine,
    gatewayNames: gatewayNamesMachine,
    /** Makes services and endpoints of the objects in force and of what registries have, and compares them with the last ones. */
    computeServices: promiseEffect<ServicesReading, ServicesOrder>('computeServices'),
  },
  delays: {
    firstListsLimit: ({ context }) => context.firstListsMs,
    retryDelay: ({ context }) => retryDelayMs(context.failures),
  },
  guards: {
    areAllSynced: ({ context }) => unsyncedOf(context).length === 0,
    hasPendingChanges: ({ context }) => context.pending.length > 0 || context.registriesMoved,
    affectsAll: (_, params: ServicesReading) => params.forced === true,
    affectsServices: (_, params: ServicesReading) =>
      params.changedServices.length > 0 || (params.changedProxies ?? []).length > 0,
    affectsEndpoints: (_, params: ServicesReading) => params.changedEndpoints.length > 0,
  },
  actions: {
    recordChanges: assign({
      pending: ({ context, event }) =>
        event.type === 'configs.changed' ? [...context.pending, ...event.changes] : context.pending,
      alongside: ({ context, event }) =>
        event.type === 'configs.changed' ? [...context.alongside, ...(event.alongside ?? [])] : context.alongside,
    }),
    recordRegistriesChanged: assign({ registriesMoved: true }),
    claimChanges: assign({
      underWay: ({ context }) => context.pending,
      alongsideUnderWay: ({ context }) => context.alongside,
      pending: [],
      alongside: [],
      registriesMoved: false,
    }),
    clearChanges: assign({ underWay: [], alongsideUnderWay: [] }),
    countFailure: assign({ failures: ({ context }) => failedOnceMore(context.failures) }),
    resetFailures: assign({ failures: 0 }),
    /** Registries that came get an actor each; the actors of those that went, or were replaced, are stopped. */
    reconcileRegistries: enqueueActions(({ context, enqueue }, { listed }: { listed: ListedRegistry[] }) => {
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
    recordSynced: assign({
      registries: ({ context }, { registry }: { registry: string }) =>
        context.registries?.map((one) => (one.registry === registry ? { ...one, synced: true } : one)) ?? null,
    }),
    /** `/ready` says what is missing. */
    reportPending: enqueueActions(({ context, enqueue }) => {
      const registries = unsyncedOf(context);
      if (registries.length === 0) return;
      enqueue.sendParent({ type: 'services.pending', registries } satisfies ServicesAwaited);
    }),
    reportRegistryFailed: sendParent(
      (_, { registry, reason }: { registry: string; reason: string }): RegistryFailed => ({
        type: 'registry.failed',
        registry,
        reason,
      }),
    ),
    /** Nothing is lost by a failed computation: the next one brings these along. */
    restoreChanges: assign({
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
    reportProblems: enqueueActions(({ enqueue }, { problems = [], recovered = [] }: ServicesReading) => {
      if (problems.length > 0) enqueue.sendParent({ type: 'configs.rejected', problems } satisfies ConfigsRejected);
      if (recovered.length > 0)
        enqueue.sendParent({ type: 'config.recovered', places: recovered } satisfies ConfigRecovered);
    }),
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
    requestRelatedPush: enqueueActions(({ context, enqueue }) => {
      if (context.alongsideUnderWay.length === 0) return;
      const none: PushRequest = { type: 'push.request', configs: [], forced: false, reasons: {} };
      enqueue.sendTo(peer('push'), withAlongside(context, none));
    }),
  },
});

/** What a person is told when it is not known which registries there are. */
export const theList = 'the list of registries';
export const theNames = 'names of gateways';

function unsyncedOf({ registries }: ServiceRegistryContext): string[] {
  return registries?.filter(({ synced }) => !synced).map(({ registry }) => registry) ?? [theList];
}

export function orderOf({ underWay, registries }: ServiceRegistryContext): ServicesOrder {
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
