import { reasonOf } from '../../effect.ts';
import { noLane } from '../timeline.ts';
import { type FailureParams, informerSetup, type SetOrder } from './informer.setup.ts';
import type * as rules from './informer-rules.ts';
import type { RequestFailed, ResourceVersion } from './kubernetes-protocol.ts';

export type { InformerInput, SetOrder } from './informer.setup.ts';

const withEventFailure = <Type extends string>(type: Type) =>
  ({ type, params: ({ event }: { event: RequestFailed }): FailureParams => event }) as const;
const timeoutAction = <Type extends string>(type: Type, message: string) =>
  ({ type, params: (): FailureParams => ({ failure: { kind: 'timeout', message }, draw: 0.5 }) }) as const;
const internalErrorAction = (type: 'countFailure' | 'reportFailed') =>
  ({
    type,
    params: ({ event }: { event: { error: unknown } }): FailureParams => ({
      failure: { kind: 'invalid', message: reasonOf(event.error) },
      draw: 0.5,
    }),
  }) as const;

const handOverInvocation = ({ absent }: { absent: boolean }) =>
  ({
    id: 'hand-over',
    src: 'handOver',
    input: ({ context: { resource } }: { context: rules.InformerRecord }) => ({ resource, absent }),
    onError: {
      description: 'An internal error.',
      target: '#informer.backing off',
      actions: [internalErrorAction('countFailure'), internalErrorAction('reportFailed')],
    },
  }) as const;

const completeActions = [
  { type: 'recordComplete', params: ({ event }: { event: { output: { objects: number } } }) => event.output },
  'reportSynced',
] as const;

/**
 * Watches one kind of object on one API server: lists it, publishes the complete list, then watches it. The published objects apply until
 * the next complete list.
 */
export const informerMachine = informerSetup.createMachine({
  id: 'informer',
  description: 'One kind of object on one API server.',
  meta: { timeline: noLane },
  context: ({ input: { resource } }) => ({
    ...{ resource, version: '', objects: 0, isWhole: false, basis: 'newest', handed: 'nothing', streams: true },
    ...{ throttledStreams: 0, failures: 0, absences: 0, retryAfterMs: 0, draw: 0 },
  }),
  initial: 'waiting for server',
  on: {
    'server.lost': {
      description: 'Requests on the connection have ended.',
      target: '.waiting for server',
      actions: 'reduceFailures',
    },
    'server.reachable': { description: 'The kind is active already, or backs off.' },
    'streaming-lists.disabled': { actions: 'disableStreamingLists' },
    'kind.defined': { description: 'The kind is being requested.' },
    'kind.removed': { actions: 'expectAbsence' },
  },
  states: {
    'waiting for server': {
      description: 'The server may be unreachable. The last objects apply.',
      meta: { waitsFor: 'a response of the server, which api-server pings at least every two seconds' },
      on: {
        'server.reachable': [
          {
            description: 'The server responds, but this kind has failed more than once.',
            guard: 'hasFailedTwice',
            target: 'backing off',
            actions: { type: 'recordServer', params: ({ event }) => event },
          },
          { target: 'active', actions: { type: 'recordServer', params: ({ event }) => event } },
        ],
      },
    },
    active: {
      description: 'A request is running, or its result is being published.',
      on: {
        'request.failed': [
          {
            description: 'The server may be unreachable.',
            guard: withEventFailure('isUnresponsive'),
            target: 'waiting for server',
            actions: [withEventFailure('countFailure'), withEventFailure('reportUnresponsive')],
          },
          {
            description: 'The server has no streaming lists: all kinds use pages.',
            guard: withEventFailure('isStreamingUnsupported'),
            target: 'active',
            reenter: true,
            actions: ['disableStreamingLists', withEventFailure('reportStreamingUnsupported')],
          },
          {
            description:
              'The version is too old (410): the kind is listed again, at least at the version that was received.',
            guard: withEventFailure('isVersionExpired'),
            target: 'active',
            reenter: true,
            actions: [withEventFailure('countFailure'), 'requireFullList'],
          },
          {
            description: 'The requested version does not exist: the current one is requested at once.',
            guard: withEventFailure('hasNextBasis'),
            target: 'active',
            reenter: true,
            actions: ['useNextBasis', 'requireFullList'],
          },
          {
            description: 'The server closes the connection (GOAWAY); another one is opened.',
            guard: withEventFailure('isFirstGoingAway'),
            target: 'active',
            reenter: true,
            actions: withEventFailure('countFailure'),
          },
          {
            description: 'The server is overloaded: the same request is repeated after the delay that it specified.',
            guard: withEventFailure('isThrottled'),
            target: 'backing off',
            actions: ['countThrottled', withEventFailure('countFailure'), withEventFailure('reportFailed')],
          },
          {
            description: 'The server does not serve the kind: there were no objects, or it was repeated often enough.',
            guard: withEventFailure('isKindAbsent'),
            target: 'absent',
            actions: ['requireFullList', withEventFailure('countAbsence')],
          },
          {
            description: 'The failure does not affect the version: the watch can continue.',
            guard: withEventFailure('isResumable'),
            target: 'backing off',
            actions: [withEventFailure('countFailure'), withEventFailure('reportFailed')],
          },
          {
            target: 'backing off',
            actions: [
              'requireFullList',
              withEventFailure('countAbsence'),
              withEventFailure('countFailure'),
              withEventFailure('reportFailed'),
            ],
          },
        ],
      },
      initial: 'starting',
      states: {
        starting: {
          always: [
            {
              description: 'The objects are complete, and the watch continues.',
              guard: 'isComplete',
              target: 'checking',
            },
            { guard: 'mayStream', target: 'streaming' },
            { target: 'listing' },
          ],
        },
        streaming: {
          description: 'A watch is open.',
          invoke: { id: 'stream', src: 'watchKind', input: orderOf },
          on: {
            'objects.changed': {
              actions: [
                { type: 'recordVersion', params: versionOf },
                { type: 'recordObjects', params: ({ event }) => event },
              ],
            },
            'bookmark.received': { actions: { type: 'recordVersion', params: versionOf } },
          },
          initial: 'opening',
          states: {
            opening: { always: [{ guard: 'isComplete', target: 'watching' }, { target: 'collecting' }] },
            collecting: {
              description: 'The server sends all objects one by one. They are kept apart until the list is complete.',
              after: {
                initialListLimit: {
                  description: 'Some servers send objects but not the end of the list.',
                  target: '#informer.active',
                  actions: [
                    'disableStreamingLists',
                    timeoutAction('countFailure', ''),
                    timeoutAction('reportStreamingUnsupported', 'a list that was streamed did not come to its end'),
                  ],
                },
              },
              on: {
                'initial-list.progressed': { target: 'collecting', reenter: true },
                'initial-list.ended': { target: 'publishing', actions: { type: 'recordSet', params: versionOf } },
                'watch.ended': {
                  description: "The server's buffer is full, or it is stopping.",
                  target: '#informer.backing off',
                  actions: [timeoutAction('countFailure', '')],
                },
              },
            },
            publishing: {
              description: 'The list is complete and is being published. Later changes go to the store.',
              meta: { waitsFor: 'the components that read the store' },
              invoke: {
                ...handOverInvocation({ absent: false }),
                onDone: {
                  target: 'watching',
                  actions: completeActions,
                },
              },
              on: {
                'watch.ended': { target: '#informer.backing off', actions: timeoutAction('countFailure', '') },
              },
            },
            watching: {
              description: 'Changes are published. The store equals the state of the server.',
              meta: { waitsFor: 'a change of an object: normal operation. api-server pings the server' },
              initial: 'silent',
              states: {
                silent: {
                  description: 'The watch has just been opened, and no event has arrived.',
                  after: { shortWatch: 'established' },
                  on: {
                    'objects.changed': {
                      target: 'receiving',
                      actions: [
                        { type: 'recordVersion', params: versionOf },
                        { type: 'recordObjects', params: ({ event }) => event },
                      ],
                    },
                    'bookmark.received': { target: 'receiving', actions: { type: 'recordVersion', params: versionOf } },
                    'watch.ended': {
                      description:
                        'The server cannot watch from this version and does not report it: the kind is listed again.',
                      target: '#informer.backing off',
                      actions: ['requireFullList', timeoutAction('countFailure', '')],
                    },
                  },
                },
                receiving: {
                  description: 'The watch has just been opened, and an event has arrived.',
                  after: { shortWatch: 'established' },
                  on: {
                    'watch.ended': { target: '#informer.backing off', actions: timeoutAction('countFailure', '') },
                  },
                },
                established: {
                  description: 'The watch is stable.',
                  entry: 'resetFailures',
                  on: {
                    'watch.ended': {
                      description: 'Servers end a watch every few minutes.',
                      target: '#informer.active',
                    },
                  },
                },
              },
            },
          },
        },
        listing: {
          invoke: { id: 'list', src: 'listKind', input: orderOf },
          initial: 'receiving',
          states: {
            receiving: {
              description: 'The list arrives in pages, which are kept apart until it is complete.',
              after: {
                responseLimit: {
                  target: '#informer.waiting for server',
                  actions: [
                    timeoutAction('countFailure', ''),
                    timeoutAction('reportUnresponsive', 'a list was not answered in time'),
                  ],
                },
              },
              on: {
                'page.received': { target: 'receiving', reenter: true },
                'list.ended': { target: 'publishing', actions: { type: 'recordSet', params: versionOf } },
              },
            },
            publishing: {
              description: 'The list is complete and is being published.',
              meta: { waitsFor: 'the components that read the store' },
              invoke: {
                ...handOverInvocation({ absent: false }),
                onDone: {
                  description: 'The watch starts at the version of the list, never at that of an object.',
                  target: '#informer.active.streaming',
                  actions: completeActions,
                },
              },
            },
          },
        },
        checking: {
          description:
            'Checks whether the last received version exists in the history of the server. A watch from a version that a restored server has not reached receives no events.',
          invoke: { id: 'check', src: 'checkHistory', input: ({ context: { resource } }) => ({ resource }) },
          after: {
            responseLimit: {
              target: '#informer.waiting for server',
              actions: [
                timeoutAction('countFailure', ''),
                timeoutAction('reportUnresponsive', 'the version was not answered in time'),
              ],
            },
          },
          on: {
            'version.received': [
              {
                description: 'The server was restored: its older state applies.',
                guard: { type: 'isEarlier', params: versionOf },
                target: '#informer.active',
                reenter: true,
                actions: [
                  'requireFullList',
                  'useNewestBasis',
                  timeoutAction('reportFailed', 'what the server has is older than what was seen: it was restored'),
                ],
              },
              {
                description: 'The server responds for this kind, so its next failure has a short delay.',
                target: 'streaming',
                actions: 'reduceFailures',
              },
            ],
          },
        },
      },
    },
    'backing off': {
      description: 'The last request failed. It is repeated within seconds, at increasing intervals.',
      after: { retryDelay: 'active' },
      on: {
        'kind.defined': { target: 'active', actions: 'resetAbsences' },
        'kind.removed': { target: 'active', actions: 'expectAbsence' },
      },
    },
    absent: {
      description: 'The server does not serve the kind, so there are no objects.',
      on: { 'kind.removed': { description: 'The absence is known.' } },
      initial: 'starting',
      states: {
        starting: {
          always: [
            { description: 'The absence is published already.', guard: 'isAbsencePublished', target: 'waiting' },
            { target: 'publishing' },
          ],
        },
        publishing: {
          meta: { waitsFor: 'the components that read the store' },
          invoke: {
            ...handOverInvocation({ absent: true }),
            onDone: { target: 'waiting', actions: ['recordAbsence', 'reportSynced'] },
          },
        },
        waiting: {
          description: 'The kind is requested at increasing intervals, or when it is defined.',
          after: { absentDelay: '#informer.active' },
          on: { 'kind.defined': { target: '#informer.active', actions: 'resetAbsences' } },
        },
      },
    },
  },
});

function orderOf({ context: { resource, isWhole, basis, version } }: { context: rules.InformerRecord }): SetOrder {
  return { resource, initial: !isWhole, basis, version };
}

function versionOf({ event }: { event: { version: ResourceVersion } }): { version: ResourceVersion } {
  return { version: event.version };
}
