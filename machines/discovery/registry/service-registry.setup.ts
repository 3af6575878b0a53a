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
  ServicesFailed,
  ServicesLoad,
  ServicesPending,
  ServicesSynced,
} from '../protocol.ts';
import { incrementFailures, retryDelayMs } from '../retry-delay.ts';
import { gatewayNamesMachine } from './gateway-names.machine.ts';
import { registryMachine } from './registry.machine.ts';

export interface ServiceRegistryInput {
  /** How long the start waits for the first lists of registries. */
  firstListsMs: number;
}

interface KnownRegistry extends ListedRegistry {
  name: string;
  synced: boolean;
}

interface ServiceRegistryContext extends ServiceRegistryInput {
  registries: KnownRegistry[] | null;
  started: number;
  pending: ConfigChange[];
  /** Whether a registry changed since the last computation. */
  registriesMoved: boolean;
  underWay: ConfigChange[];
  /** Keys of other objects that changed together with `pending`; they are pushed with the services. */
  alongside: string[];
  alongsideUnderWay: string[];
  failures: number;
}

/** Keys are `ServiceEntry/namespace/host` and `Endpoints/namespace/host`. */
export interface ServicesReading {
  services: number;
  endpoints: number;
  /** Added, removed and changed services. */
  changedServices: string[];
  /** Services of which only endpoints changed. */
  changedEndpoints: string[];
  /** `Proxy/cluster/address`: proxies whose workload has changed labels or locality. */
  changedProxies?: string[];
  /** Whether all resources are generated again for all proxies: a registry was removed, or network gateways changed. */
  forced?: boolean;
  /** Reasons of the push; absent if they follow from the changes. */
  reasons?: Partial<Record<PushReason, number>>;
  /** New problems of objects that only the registry reads, and of objects that exceed the endpoint limit. */
  problems?: ConfigProblem[];
  recovered?: string[];
}

export interface ServicesOrder {
  changes: ConfigChange[];
  /** `Provider/cluster` of all registries: others are removed. Null before the first list. */
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
    /** Also reports changes of the watched cluster and of resolved gateway names. */
    listRegistries: callbackEffect<{ type: never }, undefined>('listRegistries'),
    registry: registryMachine,
    gatewayNames: gatewayNamesMachine,
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
    countFailure: assign({ failures: ({ context }) => incrementFailures(context.failures) }),
    resetFailures: assign({ failures: 0 }),
    reconcileRegistries: enqueueActions(({ context, enqueue }, { listed }: { listed: ListedRegistry[] }) => {
      let { started } = context;
      const registryById = new Map(context.registries?.map((one) => [idOf(one), one]));
      const registries = listed.map((one): KnownRegistry => {
        const existingRegistry = registryById.get(idOf(one));
        if (existingRegistry !== undefined) return existingRegistry;
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
    reportPending: enqueueActions(({ context, enqueue }) => {
      const registries = unsyncedOf(context);
      if (registries.length === 0) return;
      enqueue.sendParent({ type: 'services.pending', registries } satisfies ServicesPending);
    }),
    reportRegistryFailed: sendParent(
      (_, { registry, reason }: { registry: string; reason: string }): RegistryFailed => ({
        type: 'registry.failed',
        registry,
        reason,
      }),
    ),
    /** The next computation includes the changes of the failed one. */
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
          reasons: params.reasons ?? pushReasonsOf(params),
        }),
    ),
    requestEndpointPush: sendTo(
      peer('push'),
      ({ context }, params: ServicesReading): PushRequest =>
        withAlongside(context, {
          type: 'push.request',
          configs: params.changedEndpoints,
          forced: false,
          reasons: params.reasons ?? pushReasonsOf(params),
        }),
    ),
    /** Pushes related objects if no service changed or the computation failed. */
    requestRelatedPush: enqueueActions(({ context, enqueue }) => {
      if (context.alongsideUnderWay.length === 0) return;
      const none: PushRequest = { type: 'push.request', configs: [], forced: false, reasons: {} };
      enqueue.sendTo(peer('push'), withAlongside(context, none));
    }),
  },
});

/** Reported instead of a registry if the list is unavailable. */
export const registryListName = 'the list of registries';
export const gatewayNamesName = 'names of gateways';

function unsyncedOf({ registries }: ServiceRegistryContext): string[] {
  return registries?.filter(({ synced }) => !synced).map(({ registry }) => registry) ?? [registryListName];
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

function pushReasonsOf({
  changedServices,
  changedEndpoints,
  changedProxies = [],
}: ServicesReading): PushOrder['reasons'] {
  return {
    ...(changedServices.length > 0 && { service: changedServices.length }),
    ...(changedEndpoints.length > 0 && { endpoint: changedEndpoints.length }),
    ...(changedProxies.length > 0 && { proxy: changedProxies.length }),
  };
}
