/** The machines with scripted effects are built once per set of machines, because `provide` drops what XState has memoized. */
import { type AnyActorRef, sendTo, setup } from 'xstate';
import type {
  ContextBuilt,
  ContextFailed,
  ListedRegistry,
  ProxiesServe,
  RegistryFailed,
  ServicesFailed,
  ServicesPending,
  ServicesSynced,
} from '../../../machines/discovery/protocol.ts';
import { type PublishedContext, pushMachine } from '../../../machines/discovery/push/push.machine.ts';
import { pushQueueMachine } from '../../../machines/discovery/push/push-queue.machine.ts';
import { gatewayNamesMachine } from '../../../machines/discovery/registry/gateway-names.machine.ts';
import { registryMachine } from '../../../machines/discovery/registry/registry.machine.ts';
import { serviceRegistryMachine } from '../../../machines/discovery/registry/service-registry.machine.ts';
import type { ServicesOrder, ServicesReading } from '../../../machines/discovery/registry/service-registry.setup.ts';
import { adsConnectionMachine } from '../../../machines/discovery/xds/ads-connection.machine.ts';
import { type ExchangeStepper, stepOf } from '../../../machines/discovery/xds/ads-exchange.ts';
import type { StreamOrder } from '../../../machines/discovery/xds/ads-protocol.ts';
import { type RunningEffect, scriptedCallback, scriptedPromise } from '../../debugger/explore/scripted-effect.ts';

export type BuildInput = { forced: boolean; configs: string[] };

export interface PushEffectWorld {
  startBuild(call: RunningEffect<BuildInput>): void;
  startComputing(call: RunningEffect<ServicesOrder>): void;
  onComputingStopped(call: AnyActorRef): void;
  registriesListed(effect: AnyActorRef): void;
  registryRuns(effect: AnyActorRef): void;
  onServerStarted(server: AnyActorRef): void;
  serve(order: ProxiesServe): void;
  onStreamOpened(effect: RunningEffect<{ connection: number }>): void;
  execute(connection: number, order: StreamOrder): void;
}

export const pushWorldOf = new WeakMap<object, PushEffectWorld>();
const worldOfCall = ({ system }: { system: object }): PushEffectWorld => {
  const pushWorld = pushWorldOf.get(system);
  if (pushWorld === undefined) throw new Error('an effect outside of any world');
  return pushWorld;
};

/** A test may pass a faulty machine. */
export interface PushMachines {
  push: typeof pushMachine;
  queue: typeof pushQueueMachine;
  connection: typeof adsConnectionMachine;
  /** The rules that a stream applies in addition to its connection's chart. */
  exchange: ExchangeStepper;
  registry: typeof serviceRegistryMachine;
  member: typeof registryMachine;
}

export const pushMachines: PushMachines = {
  push: pushMachine,
  queue: pushQueueMachine,
  connection: adsConnectionMachine,
  exchange: stepOf,
  registry: serviceRegistryMachine,
  member: registryMachine,
};

export const debounceSettings = { debounceAfterMs: 100, debounceMaxMs: 10_000, debounceEndpoints: true };

export const firstLists = { firstListsMs: 30_000 };

/** As under `discovery`, `push` starts only when there are services for the first context. */
export function scriptedCharts({ push, queue, connection, exchange, registry, member }: PushMachines) {
  const scriptedPush = push.provide({
    actors: {
      buildContext: scriptedPromise<PublishedContext, BuildInput>((call) => worldOfCall(call).startBuild(call)),
    },
  });
  const server = scriptedCallback<ProxiesServe, undefined>({
    start: (effect) => worldOfCall(effect).onServerStarted(effect.self),
    receive: (effect, order) => worldOfCall(effect).serve(order),
  });
  const scriptedRegistry = registry.provide({
    actors: {
      computeServices: scriptedPromise<ServicesReading, ServicesOrder>(
        (call) => worldOfCall(call).startComputing(call),
        (call) => worldOfCall(call).onComputingStopped(call.self),
      ),
      listRegistries: scriptedCallback<{ type: never }, undefined>({
        start: (effect) => worldOfCall(effect).registriesListed(effect.self),
      }),
      // No gateway has a name here; test/model/gateway-names.test.ts covers names.
      gatewayNames: gatewayNamesMachine.provide({
        actors: { listNames: scriptedCallback<{ type: never }, undefined>({ start: () => {} }) },
      }),
      registry: member.provide({
        actors: {
          runRegistry: scriptedCallback<{ type: never }, ListedRegistry>({
            start: (effect) => worldOfCall(effect).registryRuns(effect.self),
          }),
        },
      }),
    },
  });
  const discovery = setup({
    types: {
      input: {} as { throttle: number },
      context: {} as { throttle: number },
      events: {} as ContextBuilt | ContextFailed | RegistryFailed | ServicesPending | ServicesSynced | ServicesFailed,
    },
    actors: { push: scriptedPush, queue, server, registry: scriptedRegistry },
  }).createMachine({
    id: 'discovery',
    context: ({ input }) => input,
    invoke: [
      { id: 'ads-server', systemId: 'ads-server', src: 'server' },
      { id: 'push-queue', systemId: 'push-queue', src: 'queue', input: ({ context }) => context },
      { id: 'push', systemId: 'push', src: 'push', input: debounceSettings },
      { id: 'service-registry', systemId: 'service-registry', src: 'registry', input: firstLists },
    ],
    entry: sendTo('service-registry', { type: 'services.load' }),
    on: {
      'services.synced': { actions: sendTo('push', { type: 'push.start' }) },
      'services.pending': {},
      'registry.failed': {},
      'services.failed': {},
      'context.built': {},
      'context.failed': {},
    },
  });
  const scriptedConnection = connection.provide({
    actors: {
      stream: scriptedCallback<StreamOrder, { connection: number }>({
        start: (effect) => worldOfCall(effect).onStreamOpened(effect),
        receive: (effect, order) => worldOfCall(effect).execute(effect.input.connection, order),
      }),
    },
  });
  return { discovery, connection: scriptedConnection, exchange };
}

export type ScriptedCharts = ReturnType<typeof scriptedCharts>;
