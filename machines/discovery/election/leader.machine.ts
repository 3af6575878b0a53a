import { leaderTimeline } from '../timeline.ts';
import {
  backOffTransitions,
  leaderSetup,
  onLeaseLost,
  readLease,
  resignedTransition,
  result,
  sighting,
  termOf,
  writeLease,
} from './leader.setup.ts';

export type {
  LeaderInput,
  LeaseOrder,
  LeaseSighting,
  LeaseTimes,
  LeaseWriteResult,
  ReadMoment,
} from './leader.setup.ts';

/**
 * Leader election for one duty by a Lease. The API server names the holder. Each replica measures expiry with its local clock: the holder counts from
 * before it sent the last renewal; the others count from when they read that renewal, and wait longer. A claim is conditional on the version that was
 * read, so only one of several claims succeeds.
 */
export const leaderMachine = leaderSetup.createMachine({
  id: 'leader',
  description: 'Whether this replica leads for one duty.',
  meta: { timeline: leaderTimeline },
  context: ({ input }) => ({
    ...{ ...input, version: '', record: '', holder: '', holdsMs: 0, isExpired: false },
    ...{ tookMs: 0, retryAfterMs: 0, draw: 0.5 },
  }),
  initial: 'checking holder',
  on: { 'duty.written': { description: 'Recorded only: the writes.' } },
  states: {
    'checking holder': {
      description: 'The holder of the Lease is not known.',
      on: { 'leader.resign': resignedTransition(false) },
      initial: 'reading',
      states: {
        reading: {
          description: 'Reads the Lease.',
          invoke: {
            ...readLease,
            onDone: [
              backOffTransitions('waiting').failed,
              {
                guard: { type: 'isFree', params: sighting },
                target: '#leader.claiming',
                actions: { type: 'recordVersion', params: sighting },
              },
              {
                description: 'The Lease expired and is unchanged.',
                guard: { type: 'isUnchangedAndExpired', params: sighting },
                target: '#leader.claiming',
                actions: { type: 'recordVersion', params: sighting },
              },
              { target: '#leader.standing by', actions: { type: 'recordHolder', params: sighting } },
            ],
            onError: backOffTransitions('waiting').broken,
          },
          after: { responseLimit: backOffTransitions('waiting').silent },
        },
        waiting: {
          description: 'The last read failed.',
          after: { retryInterval: 'reading' },
        },
      },
    },
    'standing by': {
      description: 'Another replica holds the Lease and renews it.',
      on: { 'leader.resign': resignedTransition(false) },
      after: {
        leaseTime: {
          description: 'The Lease has expired.',
          target: 'claiming',
          actions: 'recordExpired',
        },
      },
      initial: 'waiting',
      states: {
        waiting: { description: 'The Lease was renewed recently.', after: { readInterval: 'reading' } },
        reading: {
          description: 'Reads the Lease, while its time continues.',
          invoke: {
            ...readLease,
            onDone: [
              backOffTransitions('waiting').failed,
              {
                description: 'The Lease was released or deleted.',
                guard: { type: 'isFree', params: sighting },
                target: '#leader.claiming',
                actions: { type: 'recordVersion', params: sighting },
              },
              {
                guard: { type: 'isUnchanged', params: sighting },
                target: 'waiting',
                actions: { type: 'recordVersion', params: sighting },
              },
              {
                description: 'The holder renewed the Lease: its time restarts.',
                target: '#leader.standing by',
                reenter: true,
                actions: { type: 'recordHolder', params: sighting },
              },
            ],
            onError: backOffTransitions('waiting').broken,
          },
          after: { responseLimit: backOffTransitions('waiting').silent },
        },
      },
    },
    claiming: {
      description: 'Writes the Lease, on the condition that its version is unchanged.',
      invoke: {
        ...writeLease('claim'),
        onDone: [
          {
            guard: { type: 'isAcceptedInTerm', params: result },
            target: 'leading',
            actions: [
              { type: 'recordAccepted', params: result },
              { type: 'startTerm', params: termOf },
              'reportElected',
            ],
          },
          {
            description: 'This process was suspended.',
            guard: { type: 'isAccepted', params: result },
            target: 'checking holder',
          },
          {
            description: 'Usually another replica was faster.',
            guard: { type: 'isConflict', params: result },
            target: 'checking holder.waiting',
            actions: { type: 'recordDraw', params: result },
          },
          {
            guard: { type: 'isEarly', params: result },
            target: 'standing by',
            actions: { type: 'recordRemainingTime', params: result },
          },
          backOffTransitions('checking holder.waiting').failed,
        ],
        onError: backOffTransitions('checking holder.waiting').broken,
      },
      after: { responseLimit: backOffTransitions('checking holder.waiting').silent },
      on: {
        'leader.resign': { description: 'The Lease may be held by now.', target: 'resigning.reading' },
      },
    },
    leading: {
      tags: 'live',
      description: 'This replica leads: its writer runs.',
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
          description: 'The last successful renewal was sent less than a term ago.',
          after: { termTime: onLeaseLost('no renewal was taken in time') },
          initial: 'waiting',
          states: {
            waiting: { after: { renewInterval: 'renewing' } },
            renewing: {
              description: 'Renews the Lease.',
              invoke: {
                ...writeLease('renew'),
                onDone: [
                  {
                    guard: { type: 'isAcceptedInTerm', params: result },
                    target: '#leader.leading.in term',
                    reenter: true,
                    actions: [
                      { type: 'recordAccepted', params: result },
                      { type: 'extendTerm', params: termOf },
                    ],
                  },
                  {
                    guard: { type: 'isAccepted', params: result },
                    ...onLeaseLost('this process was stopped for longer than a term'),
                  },
                  { guard: { type: 'isConflict', params: result }, target: 'reading' },
                  backOffTransitions('retrying').failed,
                ],
                onError: backOffTransitions('retrying').broken,
              },
              after: { responseLimit: backOffTransitions('retrying').silent },
            },
            reading: {
              description: 'The Lease was written by another process; reads the holder.',
              invoke: {
                ...readLease,
                onDone: [
                  backOffTransitions('retrying').failed,
                  {
                    description: 'A renewal without a response, or a change that is not a claim.',
                    guard: { type: 'isHeldHere', params: sighting },
                    target: 'retrying',
                    actions: { type: 'recordVersion', params: sighting },
                  },
                  onLeaseLost('another one has the Lease'),
                ],
                onError: backOffTransitions('retrying').broken,
              },
              after: { responseLimit: backOffTransitions('retrying').silent },
            },
            retrying: { description: 'The term continues.', after: { renewRetry: 'renewing' } },
          },
        },
      },
    },
    resigning: {
      tags: 'ending',
      description: 'No new write starts. The Lease is released if running writes end in time.',
      after: {
        resignLimit: {
          description: 'The Lease expires.',
          target: 'resigned',
          actions: { type: 'reportResigned', params: { released: false } },
        },
      },
      on: { 'leader.resign': { description: 'Resignation is in progress.' } },
      initial: 'finishing',
      states: {
        finishing: {
          description: 'Waits for running writes.',
          invoke: {
            id: 'finishing',
            src: 'finishWrites',
            input: ({ context: { lease } }) => ({ lease }),
            onDone: 'releasing',
            onError: { description: 'An internal error: running writes are unknown.', ...resignedTransition(false) },
          },
        },
        releasing: {
          invoke: {
            ...writeLease('release'),
            onDone: [
              { guard: { type: 'isAccepted', params: result }, ...resignedTransition(true) },
              { guard: { type: 'isConflict', params: result }, target: 'reading' },
              resignedTransition(false),
            ],
            onError: resignedTransition(false),
          },
        },
        reading: {
          description: 'The Lease has changed, possibly by a renewal of this replica.',
          invoke: {
            ...readLease,
            onDone: [
              {
                guard: { type: 'isHeldHere', params: sighting },
                target: 'releasing',
                actions: { type: 'recordVersion', params: sighting },
              },
              resignedTransition(false),
            ],
            onError: resignedTransition(false),
          },
        },
      },
    },
    resigned: {
      tags: 'gone',
      description: 'No Lease is held, and the replica is no longer a candidate.',
      meta: { waitsFor: 'the end of the program' },
      on: { 'leader.resign': { description: 'It has resigned.' } },
    },
  },
});
