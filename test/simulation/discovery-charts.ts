/** The statecharts of the push path with every effect scripted. Made once per set of machines: `provide` forgets what XState memorized. */
import { type AnyActorRef, setup } from 'xstate';
import { adsConnectionMachine } from '../../machines/discovery/ads-connection.machine.ts';
import type { StreamOrder } from '../../machines/discovery/ads-protocol.ts';
import type { ContextBuilt, ContextFailed, ProxiesServe } from '../../machines/discovery/protocol.ts';
import { type PublishedContext, pushMachine } from '../../machines/discovery/push.machine.ts';
import { pushQueueMachine } from '../../machines/discovery/push-queue.machine.ts';
import { type Running, scriptedCallback, scriptedPromise } from '../../src/debugger/explore/scripted-effect.ts';

/** What a context is built for. */
export type BuildInput = { forced: boolean; configs: string[] };

/** What the effects ask of the world that they are in. */
export interface PushEffectWorld {
  building(call: Running<BuildInput>): void;
  serverStarted(server: AnyActorRef): void;
  serve(order: ProxiesServe): void;
  streamOpened(effect: Running<{ connection: number }>): void;
  execute(connection: number, order: StreamOrder): void;
}

/** The world that a system's actors live in. */
export const pushWorldOf = new WeakMap<object, PushEffectWorld>();
const world = ({ system }: { system: object }): PushEffectWorld => {
  const found = pushWorldOf.get(system);
  if (found === undefined) throw new Error('an effect outside of any world');
  return found;
};

/** The machines of the push path; a test hands in a broken one. */
export interface PushMachines {
  push: typeof pushMachine;
  queue: typeof pushQueueMachine;
  connection: typeof adsConnectionMachine;
}

export const pushMachines: PushMachines = {
  push: pushMachine,
  queue: pushQueueMachine,
  connection: adsConnectionMachine,
};

export const debounce = { debounceAfterMs: 100, debounceMaxMs: 10_000, debounceEndpoints: true };

/** `push`, `push-queue` and the server beside each other, as under `discovery`; and a connection's chart. */
export function scriptedCharts({ push, queue, connection }: PushMachines) {
  const scriptedPush = push.provide({
    actors: { buildContext: scriptedPromise<PublishedContext, BuildInput>((call) => world(call).building(call)) },
  });
  const server = scriptedCallback<ProxiesServe, undefined>({
    start: (effect) => world(effect).serverStarted(effect.self),
    receive: (effect, order) => world(effect).serve(order),
  });
  const discovery = setup({
    types: {
      input: {} as { throttle: number },
      context: {} as { throttle: number },
      events: {} as ContextBuilt | ContextFailed,
    },
    actors: { push: scriptedPush, queue, server },
  }).createMachine({
    id: 'discovery',
    context: ({ input }) => input,
    invoke: [
      { id: 'ads-server', systemId: 'ads-server', src: 'server' },
      { id: 'push-queue', systemId: 'push-queue', src: 'queue', input: ({ context }) => context },
      { id: 'push', systemId: 'push', src: 'push', input: debounce },
    ],
    on: { 'context.built': {}, 'context.failed': {} },
  });
  const scriptedConnection = connection.provide({
    actors: {
      stream: scriptedCallback<StreamOrder, { connection: number }>({
        start: (effect) => world(effect).streamOpened(effect),
        receive: (effect, order) => world(effect).execute(effect.input.connection, order),
      }),
    },
  });
  return { discovery, connection: scriptedConnection };
}

export type ScriptedCharts = ReturnType<typeof scriptedCharts>;
