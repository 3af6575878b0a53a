import { assign, sendTo, setup } from 'xstate';
import { callbackEffect, promiseEffect } from '../../effect.ts';
import { incrementFailures } from '../retry-delay.ts';
import { noLane } from '../timeline.ts';
import { type PausedKind, pausedKindsAfter, shouldPauseDeletions } from './paused-deletions.ts';
import type {
  SourceDeletionsApply,
  SourceDeletionsConfirmed,
  SourceResponseApply,
  SourceResponseReceived,
  SourceStreamEnded,
  SourceStreamOpened,
  SourceVersionsRequest,
  XdsProtocol,
  XdsSourceOrder,
} from './xds-source-protocol.ts';

export interface XdsSourceInput {
  address: string;
  /** The source counts as read when the server has sent each kind once. */
  kinds: string[];
  /** `auto`: delta if the server supports it. */
  protocol: XdsProtocol | 'auto';
  /** Maximum wait for an optional server at the start; null: without limit. */
  optionalMs: number | null;
  /** Time after which paused deletions apply, if the server still sends the same state. */
  pauseMs: number;
}

interface XdsSourceContext extends Omit<XdsSourceInput, 'protocol'> {
  protocol: XdsProtocol;
  /** Whether delta support is not confirmed, and state of the world is the fallback. */
  mayFallBack: boolean;
  received: string[];
  restored: number;
  paused: PausedKind[];
  /** Whether the server may have just started. */
  isYoung: boolean;
  /** Kinds received on this stream: the first response of a kind may come late, from caches that are not filled yet. */
  receivedOnStream: string[];
  /** Consecutive streams without a response. */
  failures: number;
  retryAfterMs: number;
  chance: number;
  reason: string;
}

/** State on disk of an earlier run. */
export interface RestoredState {
  objects: number;
}

/** Streams younger than this may come from a server that has just started. */
export const youngStreamMs = 60_000;
/** Maximum wait for a server that is not `optional` at the start if there is a state on disk. */
export const restoredStartMs = 10_000;
/** A server that has not responded to a delta stream within this time does not support delta. */
export const firstResponseMs = 5_000;
/** After this time, other versions of a missing kind are also requested. */
export const versionMs = 5_000;
const maxRetryMs = 30_000;
const firstRetryMs = 500;

/** Statuses of servers without the delta protocol; some libraries report UNKNOWN or INVALID_ARGUMENT. */
const unsupportedCodes: readonly string[] = ['UNIMPLEMENTED', 'UNKNOWN', 'INVALID_ARGUMENT'];

type ReceivedEvent = { event: SourceResponseReceived };
const responseOf = ({ event }: ReceivedEvent): SourceResponseReceived => event;
const responseReceived = [
  { type: 'recordResponse', params: responseOf },
  { type: 'applyResponse', params: responseOf },
  { type: 'recordPaused', params: responseOf },
] as const;

/** One source of configuration over xDS. A server that is unreachable, slow or empty after a restart deletes nothing. */
export const xdsSourceMachine = setup({
  types: {
    context: {} as XdsSourceContext,
    input: {} as XdsSourceInput,
    events: {} as SourceStreamOpened | SourceResponseReceived | SourceStreamEnded | SourceDeletionsConfirmed,
    children: {} as { restoring: 'restoreState'; stream: 'stream' },
  },
  actors: {
    restoreState: promiseEffect<RestoredState, undefined>('restoreState'),
    stream: callbackEffect<XdsSourceOrder, { protocol: XdsProtocol }>('stream'),
  },
  delays: {
    firstResponseLimit: firstResponseMs,
    versionLimit: versionMs,
    youngStream: youngStreamMs,
    retryDelay: ({ context: { failures, retryAfterMs, chance } }) =>
      Math.max(retryAfterMs, Math.min(firstRetryMs * 2 ** failures, maxRetryMs) * (0.5 + chance / 2)),
    startLimit: ({ context }) => context.optionalMs ?? restoredStartMs,
    pauseLimit: ({ context }) => context.pauseMs,
  },
  guards: {
    isDelta: ({ context }) => context.protocol === 'delta' && context.mayFallBack,
    isDeltaUnsupported: ({ context }, params: { code: string }) =>
      context.protocol === 'delta' && context.mayFallBack && unsupportedCodes.includes(params.code),
    isComplete: ({ context }) => missingKinds(context).length === 0,
    isOptional: ({ context }) => context.optionalMs !== null || context.restored > 0,
    hasPaused: ({ context }) => context.paused.some(({ isConfirmed }) => isConfirmed),
    pausesAnotherKind: ({ context }, response: SourceResponseReceived) =>
      shouldPauseDeletions(response, context.paused, isYoungFor(context, response)) &&
      !context.paused.some(({ kind, isConfirmed }) => kind === response.kind && isConfirmed),
    hasNoPaused: ({ context }) => !context.paused.some(({ isConfirmed }) => isConfirmed),
  },
  actions: {
    recordRestored: assign({ restored: (_, params: RestoredState) => params.objects }),
    allowReading: () => {},
    useStateOfWorld: assign({ protocol: 'sotw', mayFallBack: false }),
    recordOpened: assign({ reason: '' }),
    recordResponse: assign({
      failures: 0,
      mayFallBack: false,
      received: ({ context: { received } }, { kind }: SourceResponseReceived) =>
        received.includes(kind) ? received : [...received, kind],
    }),
    recordEnd: assign({
      failures: ({ context }) => incrementFailures(context.failures),
      retryAfterMs: (_, params: SourceStreamEnded) => params.retryAfterMs,
      chance: (_, params: SourceStreamEnded) => params.chance,
      reason: (_, params: SourceStreamEnded) => params.reason,
      paused: ({ context }) => context.paused.map((one) => ({ ...one, isConfirmed: false })),
    }),
    requestOtherVersions: sendTo(
      'stream',
      ({ context }): SourceVersionsRequest => ({ type: 'source-versions.request', kinds: missingKinds(context) }),
    ),
    startYoung: assign({ isYoung: true, receivedOnStream: [] }),
    endYoung: assign({ isYoung: false }),
    applyResponse: sendTo(
      'stream',
      ({ context }, response: SourceResponseReceived): SourceResponseApply => ({
        ...{ type: 'source-response.apply', kind: response.kind, nonce: response.nonce },
        deletions: shouldPauseDeletions(response, context.paused, isYoungFor(context, response)) ? 'pause' : 'apply',
      }),
    ),
    recordPaused: assign({
      paused: ({ context }, response: SourceResponseReceived) =>
        pausedKindsAfter(response, context.paused, isYoungFor(context, response)),
      receivedOnStream: ({ context: { receivedOnStream } }, { kind }: SourceResponseReceived) =>
        receivedOnStream.includes(kind) ? receivedOnStream : [...receivedOnStream, kind],
    }),
    applyPaused: sendTo(
      'stream',
      ({ context }): SourceDeletionsApply => ({ type: 'source-deletions.apply', kinds: confirmedKinds(context) }),
    ),
    clearPaused: assign({ paused: ({ context }) => context.paused.filter(({ isConfirmed }) => !isConfirmed) }),
  },
}).createMachine({
  id: 'xds-source',
  description: 'A source of configuration over xDS.',
  meta: { timeline: noLane },
  context: ({ input: { protocol, ...input } }) => ({
    ...input,
    protocol: protocol === 'sotw' ? 'sotw' : 'delta',
    mayFallBack: protocol === 'auto',
    ...{
      received: [],
      restored: 0,
      paused: [],
      isYoung: true,
      receivedOnStream: [],
      failures: 0,
      retryAfterMs: 0,
      chance: 0,
      reason: '',
    },
  }),
  type: 'parallel',
  states: {
    connection: {
      description: 'The stream to the server.',
      initial: 'restoring',
      states: {
        restoring: {
          description: 'Reads the objects that an earlier run saved.',
          meta: { waitsFor: 'reading files' },
          invoke: {
            id: 'restoring',
            src: 'restoreState',
            onDone: {
              target: 'streaming',
              actions: { type: 'recordRestored', params: ({ event }) => event.output },
            },
            onError: { description: 'There is no usable state on disk.', target: 'streaming' },
          },
        },
        streaming: {
          description: 'A stream is being opened or open.',
          entry: 'startYoung',
          invoke: { id: 'stream', src: 'stream', input: ({ context: { protocol } }) => ({ protocol }) },
          initial: 'opening',
          on: {
            'source-stream.ended': [
              {
                description: 'The server has no delta protocol.',
                guard: { type: 'isDeltaUnsupported', params: ({ event }) => event },
                target: 'streaming',
                reenter: true,
                actions: 'useStateOfWorld',
              },
              { target: 'backing off', actions: { type: 'recordEnd', params: ({ event }) => event } },
            ],
          },
          states: {
            opening: {
              description: 'Connects; the effect has a limit.',
              meta: { waitsFor: 'the connection, which has a limit' },
              on: { 'source-stream.opened': { target: 'awaiting first response', actions: 'recordOpened' } },
            },
            'awaiting first response': {
              description: 'The server has sent nothing on this stream.',
              meta: { waitsFor: 'the first response; until then the last objects are kept' },
              after: {
                firstResponseLimit: {
                  description: 'A server without the delta protocol may also be silent.',
                  guard: 'isDelta',
                  target: '#xds-source.connection.streaming',
                  reenter: true,
                  actions: 'useStateOfWorld',
                },
              },
              on: { 'source-response.received': { target: 'young', actions: responseReceived } },
            },
            young: {
              description:
                'The server may have started a moment ago: a response that deletes most objects is not applied.',
              type: 'parallel',
              after: { youngStream: 'established' },
              on: { 'source-response.received': { actions: responseReceived } },
              states: {
                versions: {
                  initial: 'waiting',
                  states: {
                    waiting: {
                      description: 'The server may have other versions of kinds that it does not send.',
                      after: {
                        versionLimit: [
                          { guard: 'isComplete', target: 'checked' },
                          { target: 'checked', actions: 'requestOtherVersions' },
                        ],
                      },
                    },
                    checked: { meta: { waitsFor: 'the age of the stream' } },
                  },
                },
              },
            },
            established: {
              description: 'The stream is old enough: deletions apply at once.',
              entry: 'endYoung',
              meta: { waitsFor: 'responses: normal operation' },
              on: { 'source-response.received': { actions: responseReceived } },
            },
          },
        },
        'backing off': {
          description:
            'The stream ended. The last objects are kept. The delay before the next attempt increases until there is a response.',
          after: { retryDelay: 'streaming' },
        },
      },
    },
    reading: {
      description: 'Whether the source can be read.',
      initial: 'waiting',
      states: {
        waiting: {
          description: 'Kinds are missing. Proxies would treat their objects as deleted.',
          meta: { waitsFor: 'a response for each kind, or the limit of the start if there is a state on disk' },
          always: { guard: 'isComplete', target: 'readable' },
          after: {
            startLimit: [{ guard: 'isOptional', target: 'readable' }, { target: 'required' }],
          },
        },
        required: {
          description: 'The start needs the server: there is no state on disk, and the source is not optional.',
          meta: { waitsFor: 'a response for each kind; /ready names the source' },
          always: { guard: 'isComplete', target: 'readable' },
        },
        readable: { description: 'The source can be read.', entry: 'allowReading', meta: { waitsFor: 'nothing' } },
      },
    },
    deletions: {
      description: 'Whether deletions are paused.',
      initial: 'applied',
      states: {
        applied: {
          description: 'No deletions of the current stream are paused.',
          meta: { waitsFor: 'a response that deletes most objects on a young stream' },
          always: { guard: 'hasPaused', target: 'paused' },
          on: { 'source-deletions.confirmed': { description: 'There is nothing to confirm.' } },
        },
        paused: {
          description:
            'The server still sends a state without these objects. They are kept until it has done so for a while.',
          always: { guard: 'hasNoPaused', target: 'applied' },
          after: { pauseLimit: { target: 'applied', actions: ['applyPaused', 'clearPaused'] } },
          on: {
            'source-response.received': {
              description: 'Deletions of another kind are paused: the limit restarts.',
              guard: { type: 'pausesAnotherKind', params: ({ event }) => event },
              target: 'paused',
              reenter: true,
            },
            'source-deletions.confirmed': { target: 'applied', actions: ['applyPaused', 'clearPaused'] },
          },
        },
      },
    },
  },
});

function isYoungFor({ isYoung, receivedOnStream }: XdsSourceContext, { kind }: SourceResponseReceived): boolean {
  return isYoung || !receivedOnStream.includes(kind);
}

function missingKinds({ kinds, received }: Pick<XdsSourceContext, 'kinds' | 'received'>): string[] {
  return kinds.filter((kind) => !received.includes(kind));
}

function confirmedKinds({ paused }: Pick<XdsSourceContext, 'paused'>): string[] {
  return paused.filter(({ isConfirmed }) => isConfirmed).map(({ kind }) => kind);
}
