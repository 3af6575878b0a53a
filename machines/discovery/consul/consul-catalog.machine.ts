import { reasonOf } from '../../effect.ts';
import { noLane } from '../timeline.ts';
import {
  alarmIn,
  type ConsulCatalogContext,
  consulCatalogSetup,
  initialContext,
  type ReadOutcome,
  type RequestFailure,
  type SurveyOutcome,
  type WatchOrder,
} from './consul-catalog.setup.ts';
import type { QueryFailed } from './consul-protocol.ts';

export type {
  ConsulCatalogInput,
  ReadOrder,
  ReadOutcome,
  SurveyOutcome,
  WatchOrder,
} from './consul-catalog.setup.ts';

type Surveyed = { event: { output: SurveyOutcome } };
type Read = { event: { output: ReadOutcome } };
type Ended = { event: { output: SurveyOutcome | ReadOutcome } };
type Broken = { event: { error: unknown } };

const outcomeOf = ({ event }: Read): ReadOutcome => event.output;
const readingOf = ({ event: { output } }: Read) => {
  if (output.outcome === 'failed') throw new Error('a failed read has no content');
  return { reading: output.reading };
};
const failureOf = ({ event: { output } }: Ended): Pick<RequestFailure, 'failure' | 'draw'> =>
  output.outcome === 'failed' ? output : { failure: { reason: '', status: 0 }, draw: 0.5 };
const faultOf = ({ event }: Broken) => ({ failure: { reason: reasonOf(event.error), status: 0 }, draw: 0.5 });
const late = {
  failure: { reason: 'no complete response in 30 s', status: 0 },
  draw: 0.5,
};

type Failure = Pick<RequestFailure, 'failure' | 'draw'>;
type Actual = { context: ConsulCatalogContext };

/** The failure is recorded and shown; what was applied last is served. */
const toWaiting = <Args extends Actual>(failure: (args: Args) => Failure) =>
  ({
    target: '#consul-catalog.waiting',
    actions: [
      { type: 'recordFailure', params: failure },
      { type: 'recordFailing', params: failure },
      {
        type: 'publishFailing',
        params: (args: Args) => ({ datacenter: args.context.datacenter, reason: failure(args).failure.reason }),
      },
    ],
  }) as const;

const failed = {
  guard: { type: 'isFailure', params: ({ event }: Ended) => event.output },
  ...toWaiting((args: Actual & Ended) => failureOf(args)),
} as const;
const broken = { description: 'A fault of ours.', ...toWaiting((args: Actual & Broken) => faultOf(args)) } as const;
const unanswered = toWaiting(() => late);

/** A reading is served. */
const toWatching = {
  target: '#consul-catalog.watching',
  actions: [
    { type: 'recordApplied', params: readingOf },
    { type: 'applyCatalog', params: ({ context: { datacenter } }: Actual) => ({ datacenter }) },
  ],
} as const;

/**
 * The catalog of one datacenter: read, then watched by blocking queries. What was applied last is served until something else is applied,
 * however long Consul does not respond. A response that would remove everything, or most of it without evidence, is held back.
 */
export const consulCatalogMachine = consulCatalogSetup.createMachine({
  id: 'consul-catalog',
  description: 'The catalog of one datacenter of Consul.',
  meta: { timeline: noLane },
  context: ({ input }) => initialContext(input),
  invoke: {
    id: 'credentials',
    src: 'watchCredentials',
    input: ({ context: { datacenter } }) => ({ datacenter }),
    onError: { description: 'A fault of ours. Credentials are read again with each connection.' },
  },
  initial: 'surveying',
  on: {
    'consul-credentials.changed': {
      target: '.surveying',
      actions: [
        { type: 'recordCause', params: { cause: 'new credentials' } },
        { type: 'reconnect', params: ({ context: { datacenter } }) => ({ datacenter }) },
      ],
    },
    'catalog.accept': { description: 'No response is held back.' },
    'catalog.changed': { description: 'Of a watch that was stopped: the whole catalog is being read.' },
    'index.regressed': { description: 'Of a watch that was stopped.' },
    'query.failed': { description: 'Of a watch that was stopped.' },
  },
  states: {
    surveying: {
      description: 'Nodes and services are counted, which decides how the catalog is watched.',
      invoke: {
        id: 'surveying',
        src: 'surveyCatalog',
        input: ({ context: { datacenter } }) => ({ datacenter }),
        onDone: [
          failed,
          { target: 'reading', actions: { type: 'recordSurvey', params: ({ event }: Surveyed) => event.output } },
        ],
        onError: broken,
      },
      after: { readLimit: unanswered },
    },
    reading: {
      description: 'The whole catalog is read from index 0. What was applied last is served.',
      invoke: {
        id: 'reading',
        src: 'readCatalog',
        input: ({ context }) => ({ ...orderOf(context), consistent: false }),
        onDone: [
          failed,
          {
            guard: { type: 'isAlarming', params: outcomeOf },
            target: 'held',
            actions: [
              {
                type: 'publishHeld',
                params: ({ context, event }) => ({
                  datacenter: context.datacenter,
                  reason: alarmIn(context, event.output) ?? '',
                }),
              },
              { type: 'recordHeld', params: outcomeOf },
            ],
          },
          toWatching,
        ],
        onError: broken,
      },
      after: { readLimit: unanswered },
    },
    watching: {
      description: 'Blocking queries run. A change is served at once, unless the whole catalog must be read first.',
      meta: { waitsFor: 'a change of the catalog: this is the work; each query ends after 37 s at the latest' },
      invoke: {
        id: 'watching',
        src: 'watchCatalog',
        input: ({ context }) => orderOf(context),
        onError: broken,
      },
      on: {
        'catalog.changed': [
          {
            description: 'What an ACL hides goes part by part: the parts are looked at together.',
            guard: { type: 'needsWholeRead', params: ({ event }) => event },
            target: 'surveying',
            actions: { type: 'recordCause', params: { cause: 'loss' } },
          },
          { guard: { type: 'isOutgrown', params: ({ event }) => event }, target: 'surveying' },
          {
            actions: [
              { type: 'recordApplied', params: ({ event: { reading } }) => ({ reading }) },
              { type: 'applyCatalog', params: ({ context: { datacenter } }) => ({ datacenter }) },
            ],
          },
        ],
        'index.regressed': {
          target: 'surveying',
          actions: { type: 'recordCause', params: { cause: 'lower index' } },
        },
        'query.failed': toWaiting(({ event }: Actual & { event: QueryFailed }) => event),
      },
      after: { stableDelay: { actions: 'resetFailures' } },
    },
    held: {
      description:
        'The last response would remove everything, or most of it. What was applied before is served; Consul is read again.',
      on: {
        'catalog.accept': {
          description: 'An operator knows that it is right.',
          target: 'surveying',
          actions: [
            { type: 'recordCause', params: { cause: 'accepted' } },
            { type: 'reportReleased', params: { cause: 'accepted by an operator' } },
          ],
        },
      },
      initial: 'pausing',
      states: {
        pausing: { after: { verifyInterval: 'verifying' } },
        verifying: {
          invoke: {
            id: 'verifying',
            src: 'readCatalog',
            input: ({ context }) => ({ ...orderOf(context), consistent: true }),
            onDone: [
              {
                description: 'Nothing is repeated: the five minutes begin again.',
                guard: { type: 'isFailure', params: ({ event }: Ended) => event.output },
                target: 'pausing',
                actions: 'resetRepetitions',
              },
              {
                guard: { type: 'isUnconfirmed', params: outcomeOf },
                target: 'pausing',
                actions: { type: 'countRepetition', params: outcomeOf },
              },
              {
                guard: { type: 'isAlarming', params: outcomeOf },
                target: toWatching.target,
                actions: [{ type: 'reportReleased', params: { cause: 'repeated' } }, ...toWatching.actions],
              },
              {
                target: toWatching.target,
                actions: [{ type: 'reportReleased', params: { cause: 'recovered' } }, ...toWatching.actions],
              },
            ],
            onError: { description: 'A fault of ours.', target: 'pausing', actions: 'resetRepetitions' },
          },
          after: { readLimit: { target: 'pausing', actions: 'resetRepetitions' } },
        },
      },
    },
    waiting: {
      description:
        'Consul does not respond, or with an error. What was applied last is served; it is read again later.',
      after: { retryDelay: 'surveying' },
    },
  },
});

function orderOf({ datacenter, chosen, maxConnections }: ConsulCatalogContext): WatchOrder {
  return { datacenter, strategy: chosen.strategy, maxConnections };
}
