import { leaderTimeline } from '../timeline.ts';
import {
  answer,
  leaderSetup,
  lost,
  orRest,
  readLease,
  resigned,
  sighting,
  termOf,
  writeLease,
} from './leader.setup.ts';

export type { LeaderInput, LeaseAnswer, LeaseOrder, LeaseSighting, LeaseTimes, ReadMoment } from './leader.setup.ts';

/**
 * Whether this replica has one duty, by the word of a Lease (spec/kubernetes.md §2). Who has it is told by the API server; when its time is
 * over, everybody finds out by a clock of his own: the holder from before its last renewal was sent, the others from when they saw it, which
 * is later, and for longer. Whoever claims names the version that it saw, so of several one is taken. Who lost stands again.
 */
export const leaderMachine = leaderSetup.createMachine({
  id: 'leader',
  description: 'Whether this replica has a duty.',
  meta: { timeline: leaderTimeline },
  context: ({ input }) => ({
    ...{ ...input, version: '', record: '', holder: '', holdsMs: 0, isExpired: false },
    ...{ tookMs: 0, retryAfterMs: 0, draw: 0.5 },
  }),
  initial: 'finding out',
  on: { 'duty.written': { description: 'For the record: what the writer has done.' } },
  states: {
    'finding out': {
      description: 'Who has the Lease is not known, or not any more.',
      on: { 'leader.resign': resigned(false) },
      initial: 'reading',
      states: {
        reading: {
          description: 'The Lease is read.',
          invoke: {
            ...readLease,
            onDone: [
              orRest('resting').failed,
              {
                guard: { type: 'isFree', params: sighting },
                target: '#leader.claiming',
                actions: { type: 'noteVersion', params: sighting },
              },
              {
                description: 'Its time was over before, and nobody has said anything since.',
                guard: { type: 'isAsBeforeAndExpired', params: sighting },
                target: '#leader.claiming',
                actions: { type: 'noteVersion', params: sighting },
              },
              { target: '#leader.standing by', actions: { type: 'noteHolder', params: sighting } },
            ],
            onError: orRest('resting').broken,
          },
          after: { answerLimit: orRest('resting').silent },
        },
        resting: {
          description: 'It could not be had just now.',
          after: { retryInterval: 'reading' },
        },
      },
    },
    'standing by': {
      description: 'Another replica has it, and says so now and then.',
      on: { 'leader.resign': resigned(false) },
      after: {
        leaseTime: {
          description: 'It has said nothing for as long as it may be silent.',
          target: 'claiming',
          actions: 'noteExpired',
        },
      },
      initial: 'resting',
      states: {
        resting: { description: 'It said something a short while ago, or may.', after: { lookInterval: 'looking' } },
        looking: {
          description: 'The Lease is read. Its time goes on.',
          invoke: {
            ...readLease,
            onDone: [
              orRest('resting').failed,
              {
                description: 'It was given back, or is gone.',
                guard: { type: 'isFree', params: sighting },
                target: '#leader.claiming',
                actions: { type: 'noteVersion', params: sighting },
              },
              {
                guard: { type: 'isAsBefore', params: sighting },
                target: 'resting',
                actions: { type: 'noteVersion', params: sighting },
              },
              {
                description: 'The holder has said something: its time begins anew.',
                target: '#leader.standing by',
                reenter: true,
                actions: { type: 'noteHolder', params: sighting },
              },
            ],
            onError: orRest('resting').broken,
          },
          after: { answerLimit: orRest('resting').silent },
        },
      },
    },
    claiming: {
      description: 'It is free as far as is known: it is written, over the version that was seen.',
      invoke: {
        ...writeLease('claim'),
        onDone: [
          {
            guard: { type: 'isTakenInTerm', params: answer },
            target: 'leading',
            actions: [{ type: 'noteTaken', params: answer }, { type: 'beginTerm', params: termOf }, 'reportElected'],
          },
          {
            description: 'This process was stopped meanwhile.',
            guard: { type: 'isTaken', params: answer },
            target: 'finding out',
          },
          {
            description: 'Another one was first, as a rule.',
            guard: { type: 'isConflict', params: answer },
            target: 'finding out.resting',
            actions: { type: 'noteDraw', params: answer },
          },
          {
            guard: { type: 'isEarly', params: answer },
            target: 'standing by',
            actions: { type: 'noteLeft', params: answer },
          },
          orRest('finding out.resting').failed,
        ],
        onError: orRest('finding out.resting').broken,
      },
      after: { answerLimit: orRest('finding out.resting').silent },
      on: {
        'leader.resign': { description: 'It may be held by now.', target: 'resigning.reading' },
      },
    },
    leading: {
      tags: 'live',
      description: 'This replica has the duty: its writer is at work.',
      entry: 'startWriter',
      exit: 'stopWriter',
      on: {
        'leader.resign': {
          target: 'resigning',
          actions: { type: 'endTerm', params: ({ context: { lease } }) => ({ lease, giveUp: false }) },
        },
      },
      initial: 'in term',
      states: {
        'in term': {
          description: 'The last renewal that was taken was sent less than a term ago.',
          after: { termTime: lost('no renewal was taken in time') },
          initial: 'resting',
          states: {
            resting: { after: { renewInterval: 'renewing' } },
            renewing: {
              description: 'The Lease is written anew.',
              invoke: {
                ...writeLease('renew'),
                onDone: [
                  {
                    guard: { type: 'isTakenInTerm', params: answer },
                    target: '#leader.leading.in term',
                    reenter: true,
                    actions: [
                      { type: 'noteTaken', params: answer },
                      { type: 'extendTerm', params: termOf },
                    ],
                  },
                  {
                    guard: { type: 'isTaken', params: answer },
                    ...lost('this process was stopped for longer than a term'),
                  },
                  { guard: { type: 'isConflict', params: answer }, target: 'reading' },
                  orRest('trying again').failed,
                ],
                onError: orRest('trying again').broken,
              },
              after: { answerLimit: orRest('trying again').silent },
            },
            reading: {
              description: 'Somebody has written it: who?',
              invoke: {
                ...readLease,
                onDone: [
                  orRest('trying again').failed,
                  {
                    description: 'A renewal whose answer did not come, or what is no word of a holder.',
                    guard: { type: 'isOurs', params: sighting },
                    target: 'trying again',
                    actions: { type: 'noteVersion', params: sighting },
                  },
                  lost('another one has the Lease'),
                ],
                onError: orRest('trying again').broken,
              },
              after: { answerLimit: orRest('trying again').silent },
            },
            'trying again': { description: 'The term goes on.', after: { renewRetry: 'renewing' } },
          },
        },
      },
    },
    resigning: {
      tags: 'ending',
      description: 'No write begins any more. The Lease is given back, if what is under way has ended in time.',
      after: {
        resignLimit: {
          description: 'It ends by itself.',
          target: 'resigned',
          actions: { type: 'reportResigned', params: { released: false } },
        },
      },
      on: { 'leader.resign': { description: 'It is under way.' } },
      initial: 'finishing',
      states: {
        finishing: {
          description: 'Writes that are under way have their answers.',
          invoke: {
            id: 'finishing',
            src: 'finishWrites',
            input: ({ context: { lease } }) => ({ lease }),
            onDone: 'releasing',
            onError: { description: 'A fault of ours: what is under way is not known.', ...resigned(false) },
          },
        },
        releasing: {
          invoke: {
            ...writeLease('release'),
            onDone: [
              { guard: { type: 'isTaken', params: answer }, ...resigned(true) },
              { guard: { type: 'isConflict', params: answer }, target: 'reading' },
              resigned(false),
            ],
            onError: resigned(false),
          },
        },
        reading: {
          description: 'It was written since it was seen last, maybe by this replica.',
          invoke: {
            ...readLease,
            onDone: [
              {
                guard: { type: 'isOurs', params: sighting },
                target: 'releasing',
                actions: { type: 'noteVersion', params: sighting },
              },
              resigned(false),
            ],
            onError: resigned(false),
          },
        },
      },
    },
    resigned: {
      tags: 'gone',
      description: 'It has nothing, and wants nothing.',
      meta: { waitsFor: 'the end of the program' },
      on: { 'leader.resign': { description: 'That was done.' } },
    },
  },
});
