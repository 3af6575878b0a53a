import { reasonOf } from '../../effect.ts';
import { noLane } from '../timeline.ts';
import {
  type ConsulCatalogContext,
  type ConsulRequestFailure,
  type ConsulWatchOrder,
  consulCatalogSetup,
  holdReasonOf,
  initialContext,
  type ReadOutcome,
  type SurveyOutcome,
} from './consul-catalog.setup.ts';
import type { QueryFailed } from './consul-protocol.ts';

export type {
  ConsulCatalogInput,
  ConsulWatchOrder,
  ReadOrder,
  ReadOutcome,
  SurveyOutcome,
} from './consul-catalog.setup.ts';

type SurveyDone = { event: { output: SurveyOutcome } };
type ReadDone = { event: { output: ReadOutcome } };
type RequestDone = { event: { output: SurveyOutcome | ReadOutcome } };
type InternalError = { event: { error: unknown } };

const outcomeOf = ({ event }: ReadDone): ReadOutcome => event.output;
const readingOf = ({ event: { output } }: ReadDone) => {
  if (output.outcome === 'failed') throw new Error('a failed read has no content');
  return { reading: output.reading };
};
const failureOf = ({ event: { output } }: RequestDone): Pick<ConsulRequestFailure, 'failure' | 'draw'> =>
  output.outcome === 'failed' ? output : { failure: { reason: '', status: 0 }, draw: 0.5 };
const faultOf = ({ event }: InternalError) => ({ failure: { reason: reasonOf(event.error), status: 0 }, draw: 0.5 });
const timeoutFailure = {
  failure: { reason: 'no complete response in 30 s', status: 0 },
  draw: 0.5,
};

type Failure = Pick<ConsulRequestFailure, 'failure' | 'draw'>;
type CatalogArgs = { context: ConsulCatalogContext };

const backOffTransition = <Args extends CatalogArgs>(failure: (args: Args) => Failure) =>
  ({
    target: '#consul-catalog.backing off',
    actions: [
      { type: 'recordFailure', params: failure },
      { type: 'recordFailing', params: failure },
      {
        type: 'publishFailing',
        params: (args: Args) => ({ datacenter: args.context.datacenter, reason: failure(args).failure.reason }),
      },
    ],
  }) as const;

const onFailed = {
  guard: { type: 'hasFailed', params: ({ event }: RequestDone) => event.output },
  ...backOffTransition((args: CatalogArgs & RequestDone) => failureOf(args)),
} as const;
const onError = {
  description: 'An internal error.',
  ...backOffTransition((args: CatalogArgs & InternalError) => faultOf(args)),
} as const;
const timeoutTransition = backOffTransition(() => timeoutFailure);

const watchingTransition = {
  target: '#consul-catalog.watching',
  actions: [
    { type: 'recordApplied', params: readingOf },
    { type: 'applyCatalog', params: ({ context: { datacenter } }: CatalogArgs) => ({ datacenter }) },
  ],
} as const;

/**
 * The catalog of one datacenter: read, then watched by blocking queries. A response that would remove all services, or most of them when server or
 * token may be at fault, is held back.
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
    onError: { description: 'An internal error. Credentials are read again with each connection.' },
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
    'catalog.changed': { description: 'From a stopped watch: the whole catalog is being read.' },
    'index.regressed': { description: 'From a stopped watch.' },
    'query.failed': { description: 'From a stopped watch.' },
  },
  states: {
    surveying: {
      description: 'Nodes and services are counted, which decides how the catalog is watched.',
      invoke: {
        id: 'surveying',
        src: 'surveyCatalog',
        input: ({ context: { datacenter } }) => ({ datacenter }),
        onDone: [
          onFailed,
          { target: 'reading', actions: { type: 'recordSurvey', params: ({ event }: SurveyDone) => event.output } },
        ],
        onError: onError,
      },
      after: { readLimit: timeoutTransition },
    },
    reading: {
      description: 'Reads the whole catalog from index 0. The last applied catalog is served.',
      invoke: {
        id: 'reading',
        src: 'readCatalog',
        input: ({ context }) => ({ ...orderOf(context), consistent: false }),
        onDone: [
          onFailed,
          {
            guard: { type: 'removesTooMuch', params: outcomeOf },
            target: 'held',
            actions: [
              {
                type: 'publishHeld',
                params: ({ context, event }) => ({
                  datacenter: context.datacenter,
                  reason: holdReasonOf(context, event.output) ?? '',
                }),
              },
              { type: 'recordHeld', params: outcomeOf },
            ],
          },
          watchingTransition,
        ],
        onError: onError,
      },
      after: { readLimit: timeoutTransition },
    },
    watching: {
      description: 'Blocking queries run. A change is served at once, unless the whole catalog must be read first.',
      meta: { waitsFor: 'a change of the catalog: normal operation; each query ends within 37 s' },
      invoke: {
        id: 'watching',
        src: 'watchCatalog',
        input: ({ context }) => orderOf(context),
        onError: onError,
      },
      on: {
        'catalog.changed': [
          {
            description: 'An ACL hides the catalog part by part, so all parts are read together.',
            guard: { type: 'needsFullRead', params: ({ event }) => event },
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
        'query.failed': backOffTransition(({ event }: CatalogArgs & { event: QueryFailed }) => event),
      },
      after: { stableDelay: { actions: 'resetFailures' } },
    },
    held: {
      description:
        'The last response would remove all or most services. The last applied catalog is served, and Consul is read again.',
      on: {
        'catalog.accept': {
          description: 'An operator confirmed the response.',
          target: 'surveying',
          actions: [
            { type: 'recordCause', params: { cause: 'accepted' } },
            { type: 'reportReleased', params: { cause: 'accepted by an operator' } },
          ],
        },
      },
      initial: 'waiting',
      states: {
        waiting: { after: { verifyInterval: 'verifying' } },
        verifying: {
          invoke: {
            id: 'verifying',
            src: 'readCatalog',
            input: ({ context }) => ({ ...orderOf(context), consistent: true }),
            onDone: [
              {
                description: 'The response was not repeated: the five minutes restart.',
                guard: { type: 'hasFailed', params: ({ event }: RequestDone) => event.output },
                target: 'waiting',
                actions: 'resetRepetitions',
              },
              {
                guard: { type: 'isUnconfirmed', params: outcomeOf },
                target: 'waiting',
                actions: { type: 'countRepetition', params: outcomeOf },
              },
              {
                guard: { type: 'removesTooMuch', params: outcomeOf },
                target: watchingTransition.target,
                actions: [{ type: 'reportReleased', params: { cause: 'repeated' } }, ...watchingTransition.actions],
              },
              {
                target: watchingTransition.target,
                actions: [{ type: 'reportReleased', params: { cause: 'recovered' } }, ...watchingTransition.actions],
              },
            ],
            onError: { description: 'An internal error.', target: 'waiting', actions: 'resetRepetitions' },
          },
          after: { readLimit: { target: 'waiting', actions: 'resetRepetitions' } },
        },
      },
    },
    'backing off': {
      description:
        'Consul does not respond, or responds with an error. The last applied catalog is served, and Consul is read again later.',
      after: { retryDelay: 'surveying' },
    },
  },
});

function orderOf({ datacenter, chosen, maxConnections }: ConsulCatalogContext): ConsulWatchOrder {
  return { datacenter, strategy: chosen.strategy, maxConnections };
}
