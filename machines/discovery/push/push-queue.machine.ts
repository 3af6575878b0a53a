import { assign, enqueueActions, not, sendTo, setup } from 'xstate';
import { peer } from '../peers.ts';
import type {
  ClientsPush,
  ClientsServed,
  ProxiesServe,
  ProxiesServed,
  ProxyConnected,
  ProxyDisconnected,
  QueueDrain,
} from '../protocol.ts';
import { noLane } from '../timeline.ts';
import {
  type Change,
  emptyQueue,
  isIdle,
  type PushQueue,
  withGrantedSlots,
  withoutProxy,
  withProxy,
  withPush,
  withServed,
} from './push-queue-record.ts';

export interface PushQueueInput {
  /** Maximum number of streams that the xDS server is ordered to push to at a time (PILOT_PUSH_THROTTLE). */
  throttle: number;
}

interface PushQueueContext extends PushQueueInput {
  queue: PushQueue;
}

/** Decides which streams get a push and when: in order, a limited number at a time, each with all changes since its last push. */
export const pushQueueMachine = setup({
  types: {
    context: {} as PushQueueContext,
    input: {} as PushQueueInput,
    events: {} as ClientsPush | ProxyConnected | ProxyDisconnected | ProxiesServed | QueueDrain,
  },
  guards: {
    hasWaiting: ({ context }) => context.queue.waiting.length > 0,
    isIdle: ({ context }) => isIdle(context.queue),
    hasNoProxies: ({ context }) => context.queue.proxies.length === 0,
  },
  actions: {
    addProxy: assign({
      queue: ({ context }, params: { connection: number }) => withProxy(context.queue, params.connection),
    }),
    removeProxy: assign({
      queue: ({ context }, params: { connection: number }) => withoutProxy(context.queue, params.connection),
    }),
    queueAll: assign({
      queue: ({ context, event }) =>
        event.type === 'clients.push' ? withPush(context.queue, changeOf(event)) : context.queue,
    }),
    releaseSlots: assign({
      queue: ({ context }, params: { connections: number[] }) => withServed(context.queue, params.connections),
    }),
    reportServed: sendTo(peer('push'), { type: 'clients.served' } satisfies ClientsServed),
    grantSlots: enqueueActions(({ context, enqueue }) => {
      const { queue, batches } = withGrantedSlots(context.queue, context.throttle);
      if (batches.length === 0) return;
      enqueue.assign({ queue });
      for (const batch of batches) {
        const order: ProxiesServe = { type: 'proxies.serve', ...batch };
        enqueue.sendTo(peer('ads-server'), order);
      }
    }),
  },
}).createMachine({
  id: 'push-queue',
  description: 'The order in which xDS streams get pushes.',
  meta: { timeline: noLane },
  context: ({ input }) => ({ ...input, queue: emptyQueue }),
  initial: 'accepting pushes',
  on: {
    'proxy.disconnected': {
      description: 'The slot of the proxy goes to the next one.',
      actions: [{ type: 'removeProxy', params: ({ event }) => ({ connection: event.connection }) }, 'grantSlots'],
    },
    'proxies.served': {
      actions: [{ type: 'releaseSlots', params: ({ event }) => ({ connections: event.connections }) }, 'grantSlots'],
    },
  },
  states: {
    'accepting pushes': {
      description: 'Queues every stream that is connected at the time of a push.',
      on: {
        'clients.push': {
          actions: ['queueAll', 'grantSlots'],
        },
        'proxy.connected': {
          description: 'A new proxy requests the current state; later changes are pushed.',
          actions: { type: 'addProxy', params: ({ event }) => ({ connection: event.connection }) },
        },
        'queue.drain': 'draining',
      },
      initial: 'idle',
      states: {
        idle: {
          description: 'No proxy waits for a push.',
          meta: { waitsFor: 'a push: normal operation' },
          on: {
            'clients.push': [
              { guard: 'hasNoProxies', actions: 'reportServed', description: 'No proxy is connected.' },
              { actions: ['queueAll', 'grantSlots'] },
            ],
          },
          always: [
            { guard: 'hasWaiting', target: 'throttled' },
            { guard: not('isIdle'), target: 'serving' },
          ],
        },
        serving: {
          description: 'Streams are being ordered to push; no stream waits for a slot.',
          meta: { waitsFor: 'the xDS server, which pushes to one connection after another' },
          always: [
            { guard: 'hasWaiting', target: 'throttled' },
            { guard: 'isIdle', target: 'idle', actions: 'reportServed' },
          ],
        },
        throttled: {
          description: 'All slots are taken; other streams wait.',
          meta: { waitsFor: 'the xDS server, which pushes to one connection after another' },
          always: [
            { guard: 'isIdle', target: 'idle', actions: 'reportServed' },
            { guard: not('hasWaiting'), target: 'serving' },
          ],
        },
      },
    },
    draining: {
      description:
        'The control plane stops. New pushes are ignored, and the xDS server sends no pushes to queued proxies: the server to which they connect next has the changes.',
      meta: { waitsFor: 'the xDS server, which skips queued proxies; the shutdown time is the limit' },
      always: { guard: 'isIdle', target: 'drained' },
      on: {
        'clients.push': { description: 'The next server has the change.' },
        'proxy.connected': { description: 'Nothing will be pushed to the proxy.' },
        'queue.drain': { description: 'Draining is in progress.' },
      },
    },
    drained: {
      description: 'The queue is empty and closed.',
      meta: { waitsFor: 'nothing' },
      on: {
        'clients.push': { description: 'The next server has the change.' },
        'proxy.connected': { description: 'Nothing will be pushed to the proxy.' },
        'queue.drain': { description: 'The queue is drained.' },
      },
    },
  },
});

function changeOf({ type: _, ...change }: ClientsPush): Change {
  return change;
}
