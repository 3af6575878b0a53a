import { reasonOf } from '../../effect.ts';
import { noLane } from '../timeline.ts';
import { type Failed, informerSetup, type SetOrder } from './informer.setup.ts';
import type * as rules from './informer-rules.ts';
import type { RequestFailed, ResourceVersion } from './kubernetes-protocol.ts';

export type { InformerInput, SetOrder } from './informer.setup.ts';

const when = <Type extends string>(type: Type) =>
  ({ type, params: ({ event }: { event: RequestFailed }): Failed => event }) as const;
const because = <Type extends string>(type: Type, message: string) =>
  ({ type, params: (): Failed => ({ failure: { kind: 'timeout', message }, draw: 0.5 }) }) as const;
const faultOfOurs = (type: 'countFailure' | 'reportFailed') =>
  ({
    type,
    params: ({ event }: { event: { error: unknown } }): Failed => ({
      failure: { kind: 'invalid', message: reasonOf(event.error) },
      draw: 0.5,
    }),
  }) as const;

/** What was held apart is put into the store. */
const handsOver = ({ absent }: { absent: boolean }) =>
  ({
    id: 'hand-over',
    src: 'handOver',
    input: ({ context: { resource } }: { context: rules.InformerRecord }) => ({ resource, absent }),
    onError: {
      description: 'A fault of ours.',
      target: '#informer.backing off',
      actions: [faultOfOurs('countFailure'), faultOfOurs('reportFailed')],
    },
  }) as const;

const tellWhole = [
  { type: 'noteWhole', params: ({ event }: { event: { output: { objects: number } } }) => event.output },
  'reportSynced',
] as const;

/**
 * Follows one kind of object on one API server: takes all that there is, has it handed over as a whole, and watches what becomes of
 * it. What was handed over stays in force until another whole set is; nothing else is handed over.
 */
export const informerMachine = informerSetup.createMachine({
  id: 'informer',
  description: 'One kind of object on one API server.',
  meta: { timeline: noLane },
  context: ({ input: { resource } }) => ({
    ...{ resource, version: '', objects: 0, isWhole: false, basis: 'newest', handed: 'nothing', streams: true },
    ...{ throttledStreams: 0, failures: 0, absences: 0, retryAfterMs: 0, draw: 0 },
  }),
  initial: 'waiting for the server',
  on: {
    'server.lost': {
      description: 'What runs on its connection is over.',
      target: '.waiting for the server',
      actions: 'forgetMostFailures',
    },
    'server.answers': { description: 'The kind is at work already, or has a reason to wait.' },
    'streams.refused': { actions: 'giveUpStreams' },
    'kind.defined': { description: 'It is being asked for.' },
    'kind.removed': { actions: 'expectAbsence' },
  },
  states: {
    'waiting for the server': {
      description: 'Nobody knows whether the server answers. What was handed over stays in force.',
      meta: { waitsFor: 'an answer of the server, which api-server asks for every two seconds at least' },
      on: {
        'server.answers': [
          {
            description: 'It answers others, and yet this kind has failed more than once.',
            guard: 'hasFailedTwice',
            target: 'backing off',
            actions: { type: 'noteServer', params: ({ event }) => event },
          },
          { target: 'asking', actions: { type: 'noteServer', params: ({ event }) => event } },
        ],
      },
    },
    asking: {
      description: 'A request is under way, or what was asked for is being handed over.',
      on: {
        'request.failed': [
          {
            description: 'Nobody knows whether the server is there.',
            guard: when('isMissed'),
            target: 'waiting for the server',
            actions: [when('countFailure'), when('reportMissed')],
          },
          {
            description: 'It does not know such streams: pages, then, for all kinds.',
            guard: when('isStreamRefused'),
            target: 'asking',
            reenter: true,
            actions: ['giveUpStreams', when('reportStreamsMissing')],
          },
          {
            description: 'What is watched from is gone: all is taken anew, and not older than what was seen.',
            guard: when('isWatchGone'),
            target: 'asking',
            reenter: true,
            actions: [when('countFailure'), 'wantWholeSet'],
          },
          {
            description: 'What is asked for is gone, or not there yet: what is true now is asked for, at once.',
            guard: when('isOtherwiseToBeHad'),
            target: 'asking',
            reenter: true,
            actions: ['wantOtherwise', 'wantWholeSet'],
          },
          {
            description: 'There is another connection, or will be.',
            guard: when('isFirstGoingAway'),
            target: 'asking',
            reenter: true,
            actions: when('countFailure'),
          },
          {
            description: 'The server has much to do. The same is asked for again, and not sooner than it said.',
            guard: when('isThrottled'),
            target: 'backing off',
            actions: ['countThrottled', when('countFailure'), when('reportFailed')],
          },
          {
            description: 'The server does not know the kind: there was nothing of it, or it has said so often enough.',
            guard: when('isKindAbsent'),
            target: 'absent',
            actions: ['wantWholeSet', when('countAbsence')],
          },
          {
            description: 'It is about who asks: what was watched can be watched on.',
            guard: when('isAboutUs'),
            target: 'backing off',
            actions: [when('countFailure'), when('reportFailed')],
          },
          {
            target: 'backing off',
            actions: ['wantWholeSet', when('countAbsence'), when('countFailure'), when('reportFailed')],
          },
        ],
      },
      initial: 'beginning',
      states: {
        beginning: {
          always: [
            { description: 'There is a whole set, which is watched on.', guard: 'isWhole', target: 'checking' },
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
                { type: 'noteVersion', params: versionOf },
                { type: 'noteObjects', params: ({ event }) => event },
              ],
            },
            'bookmark.received': { actions: { type: 'noteVersion', params: versionOf } },
          },
          initial: 'opening',
          states: {
            opening: { always: [{ guard: 'isWhole', target: 'watching' }, { target: 'collecting' }] },
            collecting: {
              description: 'The server sends all that there is, object by object. It is held apart until it is whole.',
              after: {
                endLimit: {
                  description: 'Some servers send objects, and never the end.',
                  target: '#informer.asking',
                  actions: [
                    'giveUpStreams',
                    because('countFailure', ''),
                    because('reportStreamsMissing', 'a list that was streamed did not come to its end'),
                  ],
                },
              },
              on: {
                'initial.progressed': { target: 'collecting', reenter: true },
                'initial.ended': { target: 'handing over', actions: { type: 'noteSet', params: versionOf } },
                'watch.ended': {
                  description: 'Its buffer was full, or it is stopping.',
                  target: '#informer.backing off',
                  actions: [because('countFailure', '')],
                },
              },
            },
            'handing over': {
              description: 'The set is whole, and is being handled. What comes meanwhile is in the store.',
              meta: { waitsFor: 'those who read the store: parts of this program' },
              invoke: {
                ...handsOver({ absent: false }),
                onDone: {
                  target: 'watching',
                  actions: tellWhole,
                },
              },
              on: {
                'watch.ended': { target: '#informer.backing off', actions: because('countFailure', '') },
              },
            },
            watching: {
              description: 'What becomes of the objects is told. What is in the store is what the server has.',
              meta: { waitsFor: 'a change of an object: this is the work. api-server asks whether the server lives' },
              initial: 'silent',
              states: {
                silent: {
                  description: 'It was opened just now, and nothing has come.',
                  after: { shortWatch: 'settled' },
                  on: {
                    'objects.changed': {
                      target: 'moving',
                      actions: [
                        { type: 'noteVersion', params: versionOf },
                        { type: 'noteObjects', params: ({ event }) => event },
                      ],
                    },
                    'bookmark.received': { target: 'moving', actions: { type: 'noteVersion', params: versionOf } },
                    'watch.ended': {
                      description: 'The server cannot watch from this version, and does not say so: all is taken anew.',
                      target: '#informer.backing off',
                      actions: ['wantWholeSet', because('countFailure', '')],
                    },
                  },
                },
                moving: {
                  description: 'It was opened just now, and something has come.',
                  after: { shortWatch: 'settled' },
                  on: {
                    'watch.ended': { target: '#informer.backing off', actions: because('countFailure', '') },
                  },
                },
                settled: {
                  description: 'It has lasted.',
                  entry: 'forgetFailures',
                  on: {
                    'watch.ended': { description: 'As it does every few minutes.', target: '#informer.asking' },
                  },
                },
              },
            },
          },
        },
        listing: {
          invoke: { id: 'list', src: 'listKind', input: orderOf },
          initial: 'taking',
          states: {
            taking: {
              description: 'The list comes in pages, and is held apart until it is whole.',
              after: {
                answerLimit: {
                  target: '#informer.waiting for the server',
                  actions: [because('countFailure', ''), because('reportMissed', 'a list was not answered in time')],
                },
              },
              on: {
                'page.taken': { target: 'taking', reenter: true },
                'list.ended': { target: 'handing over', actions: { type: 'noteSet', params: versionOf } },
              },
            },
            'handing over': {
              description: 'The set is whole, and is being handled.',
              meta: { waitsFor: 'those who read the store: parts of this program' },
              invoke: {
                ...handsOver({ absent: false }),
                onDone: {
                  description: 'It is watched from the version of the list, never from that of an object.',
                  target: '#informer.asking.streaming',
                  actions: tellWhole,
                },
              },
            },
          },
        },
        checking: {
          description:
            'Is the version that was seen last one of the history that the server has? Who watches from the future of a server that was restored is told nothing.',
          invoke: { id: 'check', src: 'checkHistory', input: ({ context: { resource } }) => ({ resource }) },
          after: {
            answerLimit: {
              target: '#informer.waiting for the server',
              actions: [because('countFailure', ''), because('reportMissed', 'the version was not answered in time')],
            },
          },
          on: {
            'history.seen': [
              {
                description: 'It was restored: what is true now counts, though it is older.',
                guard: { type: 'isEarlier', params: versionOf },
                target: '#informer.asking',
                reenter: true,
                actions: [
                  'wantWholeSet',
                  'wantNewest',
                  because('reportFailed', 'what the server has is older than what was seen: it was restored'),
                ],
              },
              {
                description: 'It answers this kind as well: what comes next is asked for soon, if it fails.',
                target: 'streaming',
                actions: 'forgetMostFailures',
              },
            ],
          },
        },
      },
    },
    'backing off': {
      description: 'The last request came to nothing. It is made again, later each time, within seconds.',
      after: { retryDelay: 'asking' },
      on: {
        'kind.defined': { target: 'asking', actions: 'forgetAbsences' },
        'kind.removed': { target: 'asking', actions: 'expectAbsence' },
      },
    },
    absent: {
      description: 'The server does not know the kind. There is nothing of it, and that is all that there is.',
      on: { 'kind.removed': { description: 'So it is.' } },
      initial: 'beginning',
      states: {
        beginning: {
          always: [
            { description: 'Everybody knows.', guard: 'isAnnounced', target: 'waiting' },
            { target: 'handing over' },
          ],
        },
        'handing over': {
          meta: { waitsFor: 'those who read the store: parts of this program' },
          invoke: {
            ...handsOver({ absent: true }),
            onDone: { target: 'waiting', actions: ['noteAbsence', 'reportSynced'] },
          },
        },
        waiting: {
          description: 'It is looked for soon, and then less and less; or when it is defined.',
          after: { absentDelay: '#informer.asking' },
          on: { 'kind.defined': { target: '#informer.asking', actions: 'forgetAbsences' } },
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
