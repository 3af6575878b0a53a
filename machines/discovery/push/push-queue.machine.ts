import { assign, enqueueActions, not, sendTo, setup } from 'xstate';
import { peer } from '../peers.ts';
import type {
  ClientsPush,
  ClientsServed,
  ProxiesServe,
  ProxiesServed,
  ProxyJoined,
  ProxyLeft,
  QueueDrain,
} from '../protocol.ts';
import { noLane } from '../timeline.ts';
import {
  type Change,
  emptyLine,
  isAtRest,
  type Line,
  withoutProxy,
  withProxy,
  withPush,
  withServed,
  withTurns,
} from './push-line.ts';

export interface PushQueueInput {
  /** How many proxies are brought up to date at a time (PILOT_PUSH_THROTTLE). */
  throttle: number;
}

interface PushQueueContext extends PushQueueInput {
  line: Line;
}

/**
 * Decides which proxies are brought up to date when (spec/discovery.md §6.4): each in its turn, so many at a time, and with
 * all that has changed since its last turn. A turn is over when the proxy has taken the push over: what it is to be sent is
 * on its way, or waits for that proxy alone. So a slow proxy keeps nobody waiting.
 */
export const pushQueueMachine = setup({
  types: {
    context: {} as PushQueueContext,
    input: {} as PushQueueInput,
    events: {} as ClientsPush | ProxyJoined | ProxyLeft | ProxiesServed | QueueDrain,
  },
  guards: {
    somebodyWaits: ({ context }) => context.line.waiting.length > 0,
    nothingToPush: ({ context }) => isAtRest(context.line),
    nobodyIsConnected: ({ context }) => context.line.proxies.length === 0,
  },
  actions: {
    add: assign({ line: ({ context }, params: { connection: number }) => withProxy(context.line, params.connection) }),
    remove: assign({
      line: ({ context }, params: { connection: number }) => withoutProxy(context.line, params.connection),
    }),
    queueEverybody: assign({
      line: ({ context, event }) =>
        event.type === 'clients.push' ? withPush(context.line, changeOf(event)) : context.line,
    }),
    endTurns: assign({
      line: ({ context }, params: { connections: number[] }) => withServed(context.line, params.connections),
    }),
    reportServed: sendTo(peer('push'), { type: 'clients.served' } satisfies ClientsServed),
    /** As many as may be served at a time. */
    giveTurns: enqueueActions(({ context, enqueue }) => {
      const { line, batches } = withTurns(context.line, context.throttle);
      if (batches.length === 0) return;
      enqueue.assign({ line });
      for (const batch of batches) {
        const order: ProxiesServe = { type: 'proxies.serve', ...batch };
        enqueue.sendTo(peer('ads-server'), order);
      }
    }),
  },
}).createMachine({
  id: 'push-queue',
  description: 'Which proxies are brought up to date when.',
  meta: { timeline: noLane },
  context: ({ input }) => ({ ...input, line: emptyLine }),
  initial: 'taking pushes',
  on: {
    'proxy.left': {
      description: 'Its turn, if it had it, goes to the next one.',
      actions: [{ type: 'remove', params: ({ event }) => ({ connection: event.connection }) }, 'giveTurns'],
    },
    'proxies.served': {
      actions: [{ type: 'endTurns', params: ({ event }) => ({ connections: event.connections }) }, 'giveTurns'],
    },
  },
  states: {
    'taking pushes': {
      description: 'A push concerns every proxy that is connected when it comes.',
      on: {
        'clients.push': {
          actions: ['queueEverybody', 'giveTurns'],
        },
        'proxy.joined': {
          description: 'It asks for what there is; what comes later is pushed to it.',
          actions: { type: 'add', params: ({ event }) => ({ connection: event.connection }) },
        },
        'queue.drain': 'draining',
      },
      initial: 'all served',
      states: {
        'all served': {
          description: 'Every proxy has had its turn with all that was pushed.',
          meta: { waitsFor: 'a push: this is the work' },
          on: {
            'clients.push': [
              { guard: 'nobodyIsConnected', actions: 'reportServed', description: 'There is nobody to serve.' },
              { actions: ['queueEverybody', 'giveTurns'] },
            ],
          },
          always: [
            { guard: 'somebodyWaits', target: 'throttled' },
            { guard: not('nothingToPush'), target: 'serving' },
          ],
        },
        serving: {
          description: 'Proxies are being brought up to date; nobody waits.',
          meta: { waitsFor: 'clients, each of which has the limit of its connection' },
          always: [
            { guard: 'somebodyWaits', target: 'throttled' },
            { guard: 'nothingToPush', target: 'all served', actions: 'reportServed' },
          ],
        },
        throttled: {
          description: 'As many proxies as allowed are being brought up to date, and others wait for their turn.',
          meta: { waitsFor: 'clients, each of which has the limit of its connection' },
          always: [
            { guard: 'nothingToPush', target: 'all served', actions: 'reportServed' },
            { guard: not('somebodyWaits'), target: 'serving' },
          ],
        },
      },
    },
    draining: {
      description: 'The control plane stops. Who is in the line still has its turn; nothing new is taken.',
      meta: { waitsFor: 'clients in the line; the shutdown time is the limit' },
      always: { guard: 'nothingToPush', target: 'drained' },
      on: {
        'clients.push': { description: 'The next server has it.' },
        'proxy.joined': { description: 'Nothing will be pushed to it.' },
        'queue.drain': { description: 'That is what is being done.' },
      },
    },
    drained: {
      description: 'Nobody waits, and nobody will.',
      meta: { waitsFor: 'nothing' },
      on: {
        'clients.push': { description: 'The next server has it.' },
        'proxy.joined': { description: 'Nothing will be pushed to it.' },
        'queue.drain': { description: 'It is done.' },
      },
    },
  },
});

function changeOf({ type: _, ...change }: ClientsPush): Change {
  return change;
}
