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
import { failedOnceMore, retryDelayMs } from '../retry-delay.ts';
import { pushTimeline } from '../timeline.ts';

export interface PushInput {
  /** Time without a request after which a push begins (PILOT_DEBOUNCE_AFTER). */
  debounceAfterMs: number;
  /** Longest time that a request waits (PILOT_DEBOUNCE_MAX). */
  debounceMaxMs: number;
  /** False: requests that concern endpoints alone do not wait (PILOT_ENABLE_EDS_DEBOUNCE). */
  debounceEndpoints: boolean;
}

/** A context that was built and published. */
export interface PublishedContext {
  version: string;
  /** When, Unix time in milliseconds. */
  publishedAt: number;
}

/** Requests merged into one. */
interface MergedRequest extends PushOrder {
  /** How many requests it stands for. */
  updates: number;
}

interface PushContext extends PushInput {
  /** What waits for quiet. */
  gathered: MergedRequest;
  /** What the context under way is built for. */
  underWay: MergedRequest;
  /** Endpoint changes that did not wait, and have not been taken up yet. */
  urgent: MergedRequest;
  /** The endpoint changes that are being taken up. */
  urgentUnderWay: MergedRequest;
  /** What contexts were built for that failed: the next one makes all of it good. */
  unbuilt: MergedRequest;
  /** Contexts that failed since the last one that was built. */
  failures: number;
}

/**
 * Quiet times that requests of several namespaces wait for quiet: a namespace that changes without end delays the push of another one by no
 * more.
 */
const maxSharedQuietTimes = 3;

/** A round of turns is over long before: a proxy that is slow costs its turn no time. */
const servingLimitMs = 10_000;

const nothing: MergedRequest = { configs: [], forced: false, reasons: {}, updates: 0 };
const everything: PushOrder = { configs: [], forced: true, reasons: { global: 1 } };

/**
 * Turns requests for pushes into contexts: requests that come close together are answered by one context, one context is
 * built at a time, and what is asked for meanwhile becomes the next one (spec/discovery.md §6.2). Meanwhile lasts until the
 * proxies have been served: what is made for a context is shared by all of them only when all are served from that one, so a
 * server that cannot keep up makes fewer contexts, not lists for a few proxies each.
 */
export const pushMachine = setup({
  types: {
    context: {} as PushContext,
    input: {} as PushInput,
    events: {} as PushStart | PushRequest | ClientsServed,
    children: {} as { context: 'buildContext'; endpoints: 'buildContext' },
  },
  actors: {
    /** Builds a push context from the last one and from what changed, and publishes it. */
    buildContext: promiseEffect<PublishedContext, { forced: boolean; configs: string[] }>('buildContext'),
  },
  delays: {
    quietTime: ({ context }) => context.debounceAfterMs,
    longestDelay: ({ context }) => context.debounceMaxMs,
    sharedDelay: ({ context }) => Math.min(maxSharedQuietTimes * context.debounceAfterMs, context.debounceMaxMs),
    servingTime: servingLimitMs,
    retryDelay: ({ context }) => retryDelayMs(context.failures),
  },
  guards: {
    asksForNothing: ({ event }) => event.type === 'push.request' && !event.forced && event.configs.length === 0,
    doesNotWait: ({ context, event }) =>
      event.type === 'push.request' &&
      !context.debounceEndpoints &&
      !event.forced &&
      event.configs.length > 0 &&
      event.configs.every((key) => key.startsWith('Endpoints/')),
    /** Together with what is gathered it is about more than one namespace. */
    isOfSeveralNamespaces: ({ context, event }) => isOfSeveralNamespaces(merged(context.gathered, event)),
    somethingIsGathered: ({ context }) => context.gathered.updates > 0,
    somethingIsUrgent: ({ context }) => context.urgent.updates > 0,
    somethingIsUnbuilt: ({ context }) => context.unbuilt.updates > 0,
    isTimeToPush: or([
      stateIn({ pushing: { requests: { gathering: 'due' } } }),
      stateIn({ pushing: { requests: { gathering: 'overdue' } } }),
    ]),
  },
  actions: {
    gather: assign({ gathered: ({ context, event }) => merged(context.gathered, event) }),
    gatherUrgently: assign({ urgent: ({ context, event }) => merged(context.urgent, event) }),
    takeEverything: assign({
      underWay: ({ context }) => ({ ...everything, updates: context.gathered.updates }),
      gathered: nothing,
    }),
    take: assign({
      underWay: ({ context }) => together(context.unbuilt, context.gathered),
      gathered: nothing,
      unbuilt: nothing,
    }),
    takeUrgent: assign({ urgentUnderWay: ({ context }) => context.urgent, urgent: nothing }),
    /** What a failed context should have shown is made good by the next one, which leaves nothing out. */
    keepUnbuilt: assign({
      unbuilt: ({ context }) => ({ ...together(context.unbuilt, context.underWay), forced: true }),
      failures: ({ context }) => failedOnceMore(context.failures),
    }),
    keepUrgentUnbuilt: assign({
      unbuilt: ({ context }) => ({ ...together(context.unbuilt, context.urgentUnderWay), forced: true }),
      failures: ({ context }) => failedOnceMore(context.failures),
    }),
    forgetFailures: assign({ failures: 0 }),
    pushToClients: sendTo(
      peer('push-queue'),
      ({ context }, { version, publishedAt }: PublishedContext): ClientsPush => ({
        type: 'clients.push',
        version,
        startedAt: publishedAt,
        forced: context.underWay.forced,
        configs: context.underWay.configs,
      }),
    ),
    pushUrgentToClients: sendTo(
      peer('push-queue'),
      ({ context }, { version, publishedAt }: PublishedContext): ClientsPush => ({
        type: 'clients.push',
        version,
        startedAt: publishedAt,
        forced: false,
        configs: context.urgentUnderWay.configs,
      }),
    ),
    reportBuilt: sendParent(
      ({ context }, params: { version: string }): ContextBuilt => ({
        type: 'context.built',
        version: params.version,
        updates: context.underWay.updates,
      }),
    ),
    reportUrgentBuilt: sendParent(
      ({ context }, params: { version: string }): ContextBuilt => ({
        type: 'context.built',
        version: params.version,
        updates: context.urgentUnderWay.updates,
      }),
    ),
    reportFailed: sendParent(
      (_, params: { error: unknown }): ContextFailed => ({ type: 'context.failed', reason: reasonOf(params.error) }),
    ),
  },
}).createMachine({
  id: 'push',
  description: 'From changes to contexts, a few at a time.',
  meta: { timeline: pushTimeline },
  context: ({ input }) => ({
    ...input,
    gathered: nothing,
    underWay: nothing,
    urgent: nothing,
    urgentUnderWay: nothing,
    unbuilt: nothing,
    failures: 0,
  }),
  on: {
    'clients.served': { description: 'Of endpoints that did not wait, or of a push that was waited for long enough.' },
  },
  initial: 'waiting for the sources',
  states: {
    'waiting for the sources': {
      description: 'Requests are kept: the first context shows what they are about anyway.',
      meta: { waitsFor: 'push.start, which the start sends when the sources are read' },
      on: {
        'push.request': { actions: 'gather' },
        'push.start': 'building the first context',
      },
    },
    'building the first context': {
      description: 'There is no context yet, so nothing can be served.',
      meta: { waitsFor: 'a computation of ours, tried again while it fails' },
      entry: 'takeEverything',
      invoke: {
        id: 'context',
        src: 'buildContext',
        input: ({ context }) => ({ forced: true, configs: context.underWay.configs }),
        onDone: { target: 'pushing', actions: { type: 'reportBuilt', params: ({ event }) => event.output } },
        onError: {
          target: 'waiting for the sources',
          actions: { type: 'reportFailed', params: ({ event }) => ({ error: event.error }) },
        },
      },
      on: {
        'push.request': { actions: 'gather' },
        'push.start': { description: 'It has begun.' },
      },
    },
    pushing: {
      description: 'Changes become contexts, contexts go to the proxies.',
      type: 'parallel',
      on: {
        'push.request': { description: 'Never comes here: every state of `requests` takes it.' },
        'push.start': { description: 'It has begun.' },
      },
      states: {
        requests: {
          initial: 'none',
          states: {
            none: {
              description: 'Nobody has asked for anything since the last context was begun.',
              meta: { waitsFor: 'a change: this is the work' },
              always: { guard: 'somethingIsGathered', target: 'gathering' },
              on: {
                'push.request': [
                  { guard: 'asksForNothing', description: 'There is nothing to bring anybody up to date with (§6.1).' },
                  { guard: 'doesNotWait', actions: 'gatherUrgently' },
                  { target: 'gathering', actions: 'gather' },
                ],
              },
            },
            gathering: {
              description: 'Requests are merged. The longest delay counts from the first of them.',
              after: { longestDelay: '.overdue' },
              on: {
                'push.request': [
                  { guard: 'asksForNothing', description: 'There is nothing to bring anybody up to date with (§6.1).' },
                  { guard: 'doesNotWait', actions: 'gatherUrgently' },
                  { guard: 'isOfSeveralNamespaces', target: '.settling shared', actions: 'gather' },
                  { target: '.settling', actions: 'gather' },
                ],
              },
              initial: 'settling',
              states: {
                settling: {
                  description: 'More may follow: the quiet time counts from the last request.',
                  after: { quietTime: 'due' },
                },
                'settling shared': {
                  description:
                    'Requests are about several namespaces: one that changes without end must not delay the push of another one.',
                  after: { sharedDelay: 'due' },
                  on: {
                    'push.request': [
                      { guard: 'asksForNothing' },
                      { guard: 'doesNotWait', actions: 'gatherUrgently' },
                      { target: '.settling', actions: 'gather' },
                    ],
                  },
                  initial: 'settling',
                  states: {
                    settling: {
                      description: 'More may follow: the quiet time counts from the last request.',
                      after: { quietTime: '#push.pushing.requests.gathering.due' },
                    },
                  },
                },
                due: {
                  description: 'It has been quiet long enough; perhaps a context is still being built.',
                  always: { guard: not('somethingIsGathered'), target: '#push.pushing.requests.none' },
                  on: {
                    'push.request': [
                      { guard: 'asksForNothing' },
                      { guard: 'doesNotWait', actions: 'gatherUrgently' },
                      {
                        guard: 'isOfSeveralNamespaces',
                        actions: 'gather',
                        description: 'What has waited long enough waits for no other namespace.',
                      },
                    ],
                  },
                },
                overdue: {
                  description: 'The first request has waited long enough, quiet or not.',
                  always: { guard: not('somethingIsGathered'), target: '#push.pushing.requests.none' },
                  on: {
                    'push.request': [
                      { guard: 'asksForNothing' },
                      { guard: 'doesNotWait', actions: 'gatherUrgently' },
                      { actions: 'gather' },
                    ],
                  },
                },
              },
            },
          },
        },
        contexts: {
          initial: 'free',
          states: {
            free: {
              description: 'No context is being built.',
              meta: { waitsFor: 'a change: this is the work' },
              always: [
                { guard: 'isTimeToPush', target: 'building', actions: 'take' },
                {
                  guard: 'somethingIsUnbuilt',
                  target: 'backing off',
                  description: 'Endpoints that did not wait could not be taken up.',
                },
              ],
            },
            building: {
              description: 'One context is being built. Proxies are served from the last one.',
              meta: { waitsFor: 'a computation of ours; the last context is in force' },
              invoke: {
                id: 'context',
                src: 'buildContext',
                input: ({ context }) => ({ forced: context.underWay.forced, configs: context.underWay.configs }),
                onDone: {
                  target: 'handed over',
                  actions: [
                    'forgetFailures',
                    { type: 'pushToClients', params: ({ event }) => event.output },
                    { type: 'reportBuilt', params: ({ event }) => event.output },
                  ],
                },
                onError: {
                  target: 'backing off',
                  actions: ['keepUnbuilt', { type: 'reportFailed', params: ({ event }) => ({ error: event.error }) }],
                },
              },
            },
            'backing off': {
              description:
                'The last context could not be built: it is tried again, later each time. The one before is in force.',
              always: {
                guard: 'isTimeToPush',
                target: 'building',
                actions: 'take',
                description: 'What has changed may be what mends it.',
              },
              after: { retryDelay: { target: 'building', actions: 'take' } },
            },
            'handed over': {
              description: 'The proxies are being brought to the context.',
              on: { 'clients.served': 'free' },
              after: {
                servingTime: { target: 'free', description: 'No request waits longer than that, whoever is slow.' },
              },
            },
          },
        },
        'urgent endpoints': {
          initial: 'none',
          states: {
            none: {
              description: 'No endpoint change is in a hurry.',
              meta: { waitsFor: 'a change: this is the work' },
              always: { guard: 'somethingIsUrgent', target: 'building', actions: 'takeUrgent' },
            },
            building: {
              description: 'Endpoints that do not wait get a context beside the one that others wait for.',
              meta: { waitsFor: 'a computation of ours; the last context is in force' },
              invoke: {
                id: 'endpoints',
                src: 'buildContext',
                input: ({ context }) => ({ forced: false, configs: context.urgentUnderWay.configs }),
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
                    'keepUrgentUnbuilt',
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

/** What concerns the whole mesh counts as a namespace of its own. */
function isOfSeveralNamespaces({ configs, forced }: MergedRequest): boolean {
  const namespaces = new Set(configs.map((key) => key.split('/', 2)[1]));
  return namespaces.size + Number(forced) > 1;
}

function merged(sum: MergedRequest, event: PushStart | PushRequest | ClientsServed): MergedRequest {
  return event.type === 'push.request' ? together(sum, { ...event, updates: 1 }) : sum;
}

/** Both requests as one; neither is changed (§6.1). */
function together(one: MergedRequest, other: MergedRequest): MergedRequest {
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
