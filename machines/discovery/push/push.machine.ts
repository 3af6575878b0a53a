import { assign, not, or, sendParent, sendTo, setup, stateIn } from 'xstate';
import { promiseEffect, reasonOf } from '../../effect.ts';
import { peer } from '../peers.ts';
import type {
  ClientsPush,
  ClientsServed,
  ContextBuilt,
  ContextFailed,
  PushOrder,
  PushRequest,
  PushStart,
} from '../protocol.ts';
import { incrementFailures, retryDelayMs } from '../retry-delay.ts';
import { pushTimeline } from '../timeline.ts';

export interface PushInput {
  /** Quiet time after which a push starts (PILOT_DEBOUNCE_AFTER). */
  debounceAfterMs: number;
  /** Maximum delay of a request (PILOT_DEBOUNCE_MAX). */
  debounceMaxMs: number;
  /** Whether requests for endpoints only are delayed (PILOT_ENABLE_EDS_DEBOUNCE). */
  debounceEndpoints: boolean;
}

export interface PublishedContext {
  version: string;
  /** Unix time in milliseconds. */
  publishedAt: number;
}

interface MergedRequest extends PushOrder {
  updates: number;
}

interface PushMachineContext extends PushInput {
  pendingRequests: MergedRequest;
  buildingRequests: MergedRequest;
  pendingEndpoints: MergedRequest;
  buildingEndpoints: MergedRequest;
  /** Requests of failed contexts, which the next context includes. */
  failedRequests: MergedRequest;
  failures: number;
}

/**
 * Maximum delay of requests of several namespaces, as a multiple of the quiet time: it bounds how long a namespace that changes continuously delays
 * pushes of others.
 */
const maxSharedQuietTimes = 3;

/** Ordering all streams to push takes far less: a slow proxy occupies no slot. */
const servingLimitMs = 10_000;

const emptyRequest: MergedRequest = { configs: [], forced: false, reasons: {}, updates: 0 };
const fullOrder: PushOrder = { configs: [], forced: true, reasons: { global: 1 } };

/**
 * Builds contexts from push requests: requests close together share one context, one context is built at a time, and requests during that time are
 * collected for the next. The next context also waits until all streams were ordered to push (not until proxies acknowledge), because proxies share
 * generated resources only if they use the same context.
 */
export const pushMachine = setup({
  types: {
    context: {} as PushMachineContext,
    input: {} as PushInput,
    events: {} as PushStart | PushRequest | ClientsServed,
    children: {} as { context: 'buildContext'; endpoints: 'buildContext' },
  },
  actors: {
    buildContext: promiseEffect<PublishedContext, { forced: boolean; configs: string[] }>('buildContext'),
  },
  delays: {
    quietTime: ({ context }) => context.debounceAfterMs,
    maxDelay: ({ context }) => context.debounceMaxMs,
    sharedDelay: ({ context }) => Math.min(maxSharedQuietTimes * context.debounceAfterMs, context.debounceMaxMs),
    servingTime: servingLimitMs,
    retryDelay: ({ context }) => retryDelayMs(context.failures),
  },
  guards: {
    isEmptyRequest: ({ event }) => event.type === 'push.request' && !event.forced && event.configs.length === 0,
    isUrgentRequest: ({ context, event }) =>
      event.type === 'push.request' &&
      !context.debounceEndpoints &&
      !event.forced &&
      event.configs.length > 0 &&
      event.configs.every((key) => key.startsWith('Endpoints/')),
    spansNamespaces: ({ context, event }) => hasSeveralNamespaces(mergeEvent(context.pendingRequests, event)),
    hasCollected: ({ context }) => context.pendingRequests.updates > 0,
    hasUrgent: ({ context }) => context.pendingEndpoints.updates > 0,
    hasUnbuilt: ({ context }) => context.failedRequests.updates > 0,
    isPushDue: or([
      stateIn({ pushing: { requests: { collecting: 'due' } } }),
      stateIn({ pushing: { requests: { collecting: 'overdue' } } }),
    ]),
  },
  actions: {
    collect: assign({ pendingRequests: ({ context, event }) => mergeEvent(context.pendingRequests, event) }),
    collectUrgent: assign({ pendingEndpoints: ({ context, event }) => mergeEvent(context.pendingEndpoints, event) }),
    claimAll: assign({
      buildingRequests: ({ context }) => ({ ...fullOrder, updates: context.pendingRequests.updates }),
      pendingRequests: emptyRequest,
    }),
    claimCollected: assign({
      buildingRequests: ({ context }) => mergeRequests(context.failedRequests, context.pendingRequests),
      pendingRequests: emptyRequest,
      failedRequests: emptyRequest,
    }),
    claimUrgent: assign({
      buildingEndpoints: ({ context }) => context.pendingEndpoints,
      pendingEndpoints: emptyRequest,
    }),
    /** The next context includes the requests of the failed one, and is built completely. */
    recordUnbuilt: assign({
      failedRequests: ({ context }) => ({
        ...mergeRequests(context.failedRequests, context.buildingRequests),
        forced: true,
      }),
      failures: ({ context }) => incrementFailures(context.failures),
    }),
    recordUrgentUnbuilt: assign({
      failedRequests: ({ context }) => ({
        ...mergeRequests(context.failedRequests, context.buildingEndpoints),
        forced: true,
      }),
      failures: ({ context }) => incrementFailures(context.failures),
    }),
    resetFailures: assign({ failures: 0 }),
    pushToClients: sendTo(
      peer('push-queue'),
      ({ context }, { version, publishedAt }: PublishedContext): ClientsPush => ({
        type: 'clients.push',
        version,
        startedAt: publishedAt,
        forced: context.buildingRequests.forced,
        configs: context.buildingRequests.configs,
      }),
    ),
    pushUrgentToClients: sendTo(
      peer('push-queue'),
      ({ context }, { version, publishedAt }: PublishedContext): ClientsPush => ({
        type: 'clients.push',
        version,
        startedAt: publishedAt,
        forced: false,
        configs: context.buildingEndpoints.configs,
      }),
    ),
    reportBuilt: sendParent(
      ({ context }, params: { version: string }): ContextBuilt => ({
        type: 'context.built',
        version: params.version,
        updates: context.buildingRequests.updates,
      }),
    ),
    reportUrgentBuilt: sendParent(
      ({ context }, params: { version: string }): ContextBuilt => ({
        type: 'context.built',
        version: params.version,
        updates: context.buildingEndpoints.updates,
      }),
    ),
    reportFailed: sendParent(
      (_, params: { error: unknown }): ContextFailed => ({ type: 'context.failed', reason: reasonOf(params.error) }),
    ),
  },
}).createMachine({
  id: 'push',
  description: 'Builds push contexts from changes; the effect builds one at a time.',
  meta: { timeline: pushTimeline },
  context: ({ input }) => ({
    ...input,
    pendingRequests: emptyRequest,
    buildingRequests: emptyRequest,
    pendingEndpoints: emptyRequest,
    buildingEndpoints: emptyRequest,
    failedRequests: emptyRequest,
    failures: 0,
  }),
  on: {
    'clients.served': {
      description: 'The event is late: the push was of undebounced endpoints, or its limit has passed.',
    },
  },
  initial: 'waiting for sources',
  states: {
    'waiting for sources': {
      description: 'Requests are merged; the first context includes them.',
      meta: { waitsFor: 'push.start, sent when the sources are read' },
      on: {
        'push.request': { actions: 'collect' },
        'push.start': 'building first context',
      },
    },
    'building first context': {
      description: 'There is no context yet, so no proxy is served.',
      meta: { waitsFor: 'a computation; if it fails, the program ends' },
      entry: 'claimAll',
      invoke: {
        id: 'context',
        src: 'buildContext',
        input: ({ context }) => ({ forced: true, configs: context.buildingRequests.configs }),
        onDone: { target: 'pushing', actions: { type: 'reportBuilt', params: ({ event }) => event.output } },
        onError: {
          target: 'waiting for sources',
          description: 'The program ends, and this chart with it.',
          actions: { type: 'reportFailed', params: ({ event }) => ({ error: event.error }) },
        },
      },
      on: {
        'push.request': { actions: 'collect' },
        'push.start': { description: 'The chart has started.' },
      },
    },
    pushing: {
      description: 'Changes become contexts, which are pushed to the proxies.',
      type: 'parallel',
      on: {
        'push.request': { description: 'Unreachable: every state of `requests` handles it.' },
        'push.start': { description: 'The chart has started.' },
      },
      states: {
        requests: {
          initial: 'none',
          states: {
            none: {
              description: 'No request has arrived since the last context was started.',
              meta: { waitsFor: 'a change: normal operation' },
              always: { guard: 'hasCollected', target: 'collecting' },
              on: {
                'push.request': [
                  { guard: 'isEmptyRequest', description: 'The request is empty.' },
                  { guard: 'isUrgentRequest', actions: 'collectUrgent' },
                  { target: 'collecting', actions: 'collect' },
                ],
              },
            },
            collecting: {
              description: 'Requests are merged. `maxDelay` counts from the first of them.',
              after: { maxDelay: '.overdue' },
              on: {
                'push.request': [
                  { guard: 'isEmptyRequest', description: 'The request is empty.' },
                  { guard: 'isUrgentRequest', actions: 'collectUrgent' },
                  { guard: 'spansNamespaces', target: '.debouncing shared', actions: 'collect' },
                  { target: '.debouncing', actions: 'collect' },
                ],
              },
              initial: 'debouncing',
              states: {
                debouncing: {
                  description: 'More requests may follow: `quietTime` counts from the last one.',
                  after: { quietTime: 'due' },
                },
                'debouncing shared': {
                  description:
                    'Requests concern several namespaces. At most `sharedDelay` (three times `quietTime`) after the second namespace the push is due, so that one namespace cannot delay another.',
                  after: { sharedDelay: 'due' },
                  on: {
                    'push.request': [
                      { guard: 'isEmptyRequest' },
                      { guard: 'isUrgentRequest', actions: 'collectUrgent' },
                      { target: '.debouncing', actions: 'collect' },
                    ],
                  },
                  initial: 'debouncing',
                  states: {
                    debouncing: {
                      description: 'More requests may follow: `quietTime` counts from the last one.',
                      after: { quietTime: '#push.pushing.requests.collecting.due' },
                    },
                  },
                },
                due: {
                  description: 'There was a pause; the previous context may still be building.',
                  always: { guard: not('hasCollected'), target: '#push.pushing.requests.none' },
                  on: {
                    'push.request': [
                      { guard: 'isEmptyRequest' },
                      { guard: 'isUrgentRequest', actions: 'collectUrgent' },
                      {
                        guard: 'spansNamespaces',
                        actions: 'collect',
                        description: 'Due requests do not wait for another namespace.',
                      },
                    ],
                  },
                },
                overdue: {
                  description: 'The first request has waited for `maxDelay`.',
                  always: { guard: not('hasCollected'), target: '#push.pushing.requests.none' },
                  on: {
                    'push.request': [
                      { guard: 'isEmptyRequest' },
                      { guard: 'isUrgentRequest', actions: 'collectUrgent' },
                      { actions: 'collect' },
                    ],
                  },
                },
              },
            },
          },
        },
        contexts: {
          initial: 'idle',
          states: {
            idle: {
              description: 'No context is being built.',
              meta: { waitsFor: 'a change: normal operation' },
              always: [
                { guard: 'isPushDue', target: 'building', actions: 'claimCollected' },
                {
                  guard: 'hasUnbuilt',
                  target: 'backing off',
                  description: 'Urgent endpoints could not be applied.',
                },
              ],
            },
            building: {
              description: 'Builds a context. Proxies are served from the last one.',
              meta: { waitsFor: 'a computation; the last context still applies' },
              invoke: {
                id: 'context',
                src: 'buildContext',
                input: ({ context }) => ({
                  forced: context.buildingRequests.forced,
                  configs: context.buildingRequests.configs,
                }),
                onDone: {
                  target: 'distributing',
                  actions: [
                    'resetFailures',
                    { type: 'pushToClients', params: ({ event }) => event.output },
                    { type: 'reportBuilt', params: ({ event }) => event.output },
                  ],
                },
                onError: {
                  target: 'backing off',
                  actions: ['recordUnbuilt', { type: 'reportFailed', params: ({ event }) => ({ error: event.error }) }],
                },
              },
            },
            'backing off': {
              description:
                'The last context could not be built. The build is repeated at increasing intervals. The previous context applies.',
              always: {
                guard: 'isPushDue',
                target: 'building',
                actions: 'claimCollected',
                description: 'A change may fix the failure.',
              },
              after: { retryDelay: { target: 'building', actions: 'claimCollected' } },
            },
            distributing: {
              description:
                'Waits until all streams were ordered to push. Responses and acknowledgements may follow later.',
              on: { 'clients.served': 'idle' },
              after: {
                servingTime: {
                  target: 'idle',
                  description: 'Limits the delay if the xDS server is too busy to order all streams in time.',
                },
              },
            },
          },
        },
        'undebounced endpoints': {
          initial: 'none',
          states: {
            none: {
              description: 'No endpoint change waits.',
              meta: { waitsFor: 'a change: normal operation' },
              always: { guard: 'hasUrgent', target: 'building', actions: 'claimUrgent' },
            },
            building: {
              description:
                'Builds a separate context for endpoints that are not debounced (PILOT_ENABLE_EDS_DEBOUNCE=false).',
              meta: { waitsFor: 'a computation; the last context still applies' },
              invoke: {
                id: 'endpoints',
                src: 'buildContext',
                input: ({ context }) => ({ forced: false, configs: context.buildingEndpoints.configs }),
                onDone: {
                  target: 'none',
                  actions: [
                    { type: 'pushUrgentToClients', params: ({ event }) => event.output },
                    { type: 'reportUrgentBuilt', params: ({ event }) => event.output },
                  ],
                },
                onError: {
                  target: 'none',
                  actions: [
                    'recordUrgentUnbuilt',
                    { type: 'reportFailed', params: ({ event }) => ({ error: event.error }) },
                  ],
                },
              },
            },
          },
        },
      },
    },
  },
});

/** A forced request counts as another namespace. */
function hasSeveralNamespaces({ configs, forced }: MergedRequest): boolean {
  const namespaces = new Set(configs.map((key) => key.split('/', 2)[1]));
  return namespaces.size + Number(forced) > 1;
}

function mergeEvent(mergedRequest: MergedRequest, event: PushStart | PushRequest | ClientsServed): MergedRequest {
  return event.type === 'push.request' ? mergeRequests(mergedRequest, { ...event, updates: 1 }) : mergedRequest;
}

function mergeRequests(one: MergedRequest, other: MergedRequest): MergedRequest {
  const reasons = { ...one.reasons };
  for (const [reason, count] of Object.entries(other.reasons) as [keyof PushOrder['reasons'], number][]) {
    reasons[reason] = (reasons[reason] ?? 0) + count;
  }
  return {
    configs: [...new Set([...one.configs, ...other.configs])],
    forced: one.forced || other.forced,
    reasons,
    updates: one.updates + other.updates,
  };
}
