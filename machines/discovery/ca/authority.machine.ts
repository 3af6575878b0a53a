import { reasonOf } from '../../effect.ts';
import { authorityTimeline } from '../timeline.ts';
import {
  type AuthorityContext,
  type AuthorityReading,
  authoritySetup,
  type Candidate,
  type Journal,
  namedIn,
  rootsIn,
  rootsOf,
} from './authority.setup.ts';
import type { AuthorityId, RotationStage } from './authority-protocol.ts';

export type { AuthorityInput, AuthorityReading, Candidate, Journal } from './authority.setup.ts';

/**
 * The authority that signs for the mesh (spec/discovery.md §11), and the rotation of its root without a moment in which two
 * workloads cannot talk (spec/identity.md §8): everyone trusts the next root before anything is signed by it, and the one
 * before is dropped when nothing that lives was signed by it. Each step is written down before it takes effect; killed in any
 * of them, it goes on there. Keys never come here: an authority is the id of its signing certificate.
 */
export const authorityMachine = authoritySetup.createMachine({
  id: 'authority',
  description: 'The certificate authority of the mesh.',
  meta: { timeline: authorityTimeline },
  context: ({ input }) => ({ ...input, signer: '', other: null, tainted: null, failures: 0 }),
  initial: 'idle',
  states: {
    idle: {
      description: 'Not asked for yet.',
      meta: { waitsFor: 'authority.load, which the start sends' },
      on: {
        'authority.load': 'at work',
        'rotation.order': { description: 'There is nothing to rotate yet.' },
        'rotation.revert': {},
        'rotation.taint': {},
        'rotation.force': {},
      },
    },
    'at work': {
      invoke: [
        { id: 'ledger', src: 'workloadLedger', onError: reported() },
        {
          id: 'directory',
          src: 'watchAuthority',
          onError: { description: 'The directory is looked at when its age is.', ...reported() },
        },
      ],
      on: {
        'authority.load': { description: 'It is loaded, or being loaded.' },
        'files.changed': { description: 'In a rotation nothing is taken over: it is looked at when that is over.' },
        'rotation.order': { description: 'One is under way, or nothing is there to be rotated.' },
        'rotation.revert': {
          description: 'Nothing is under way that could be reverted, or it would lead back to a tainted root.',
        },
        'rotation.taint': { description: 'There is no root yet, or the one before is given out no more.' },
        'rotation.force': { description: 'Nobody is waited for.' },
        'bundle.trusted': { description: 'Of an earlier step.' },
        'bundle.awaited': { actions: { type: 'reportAwaited', params: ({ event }) => event } },
        'leaves.ended': { description: 'Of an earlier step.' },
      },
      initial: 'loading',
      states: {
        loading: {
          description: 'What was there before the start is found: a plugged-in directory, a stored root, a journal.',
          meta: { waitsFor: 'the reading of some files' },
          invoke: {
            id: 'loading',
            src: 'loadAuthority',
            onDone: [
              resumed('steady'),
              resumed('trusting'),
              resumed('signing'),
              resumed('dropping'),
              {
                guard: { type: 'isAbsent', params: ({ event }) => event.output },
                target: 'making the first root',
                actions: 'forgetFailures',
              },
              {
                target: 'unusable',
                actions: [
                  'countFailure',
                  { type: 'reportFailed', params: ({ event }) => ({ reason: reasonIn(event.output) }) },
                ],
              },
            ],
            onError: { target: 'unusable', ...failedAgain() },
          },
        },
        unusable: {
          description: 'What is there cannot sign: nothing is signed. It is looked at again, later each time.',
          after: { retryDelay: 'loading' },
          on: { 'files.changed': 'loading' },
        },
        'making the first root': {
          description: 'Nobody trusts any root yet, or every one that was trusted has ended.',
          meta: { waitsFor: 'a key, and the disk' },
          invoke: {
            id: 'preparing',
            src: 'prepareRoot',
            onDone: { target: 'steady', actions: [{ type: 'begin', params: ({ event }) => event.output }] },
            onError: { target: 'unusable', ...failedAgain() },
          },
        },
        steady: {
          description: 'One authority signs, and its root alone is trusted.',
          initial: 'recording',
          states: {
            recording: recording('steady', 'resting'),
            'recording again': { after: { retryDelay: 'recording' } },
            resting: {
              tags: 'steady',
              description: 'The root has time.',
              meta: { waitsFor: 'the age of the root, a changed directory, an order: this is the work' },
              entry: inForce('steady'),
              after: { checkInterval: 'looking at the age' },
              on: {
                'rotation.order': '#authority.at work.preparing',
                'rotation.taint': tainted(),
                'files.changed': 'settling',
              },
            },
            settling: {
              description: 'Somebody is writing the directory; the delay counts from the first event.',
              after: { settleTime: 'reading the directory' },
              on: { 'files.changed': {}, 'rotation.order': {}, 'rotation.taint': {} },
            },
            'reading the directory': {
              description: 'Whether what is plugged in is another authority, and one that can sign.',
              meta: { waitsFor: 'the reading of some files' },
              invoke: {
                id: 'reading',
                src: 'readCandidate',
                input: ({ context }) => ({ signer: context.signer }),
                onDone: [
                  {
                    guard: { type: 'isRenewed', params: ({ event }) => event.output },
                    target: 'recording',
                    actions: { type: 'changeSigner', params: ({ event }) => ({ id: idIn(event.output) }) },
                  },
                  {
                    guard: { type: 'isReplaced', params: ({ event }) => event.output },
                    target: '#authority.at work.trusting',
                    actions: { type: 'rememberNext', params: ({ event }) => ({ id: idIn(event.output) }) },
                  },
                  {
                    guard: { type: 'isRefused', params: ({ event }) => event.output },
                    target: 'waiting',
                    actions: { type: 'reportFailed', params: ({ event }) => ({ reason: reasonIn(event.output) }) },
                  },
                  { description: 'The same: what signs goes on.', target: 'waiting' },
                ],
                onError: { target: 'waiting', ...reported() },
              },
              on: { 'files.changed': 'settling' },
            },
            'looking at the age': {
              meta: { waitsFor: 'a look at the clock' },
              invoke: {
                id: 'age',
                src: 'isRootDue',
                input: ({ context }) => ({ signer: context.signer }),
                onDone: [
                  {
                    guard: { type: 'isDue', params: ({ event }) => ({ isDue: event.output }) },
                    target: '#authority.at work.preparing',
                  },
                  { description: 'What an event did not tell is seen now.', target: 'reading the directory' },
                ],
                onError: { target: 'waiting', ...reported() },
              },
            },
            waiting: {
              tags: 'steady',
              description: 'As at rest: nothing came of the last look.',
              meta: { waitsFor: 'the age of the root, a changed directory, an order: this is the work' },
              after: { checkInterval: 'looking at the age' },
              on: {
                'rotation.order': '#authority.at work.preparing',
                'rotation.taint': tainted(),
                'files.changed': 'settling',
              },
            },
          },
        },
        preparing: {
          description: 'The next root is made, and stored. Nobody knows of it yet.',
          meta: { waitsFor: 'a key, and the disk' },
          invoke: {
            id: 'preparing',
            src: 'prepareRoot',
            onDone: {
              target: 'trusting',
              actions: { type: 'rememberNext', params: ({ event }) => event.output },
            },
            onError: {
              description: 'The one that signs goes on.',
              target: 'steady.waiting',
              actions: [reported().actions, 'forgetTaint'],
            },
          },
          on: { 'rotation.taint': { actions: 'taintSigner' } },
        },
        trusting: {
          description: 'Both roots are given out; nothing is signed by the next one.',
          on: {
            'rotation.taint': {
              description: 'Everybody renews as soon as there is something better: it is written down first.',
              target: '.recording',
              actions: 'taintSigner',
            },
          },
          initial: 'recording',
          states: {
            recording: recording('trusting', 'spreading'),
            'recording again': { after: { retryDelay: 'recording' } },
            spreading: {
              description: 'Somebody who did not know the next root would refuse what it signs.',
              meta: {
                waitsFor:
                  'each workload’s word that it trusts both roots, or the end of its certificate; the debug page names who is missing',
              },
              entry: [
                ...inForce('trusting'),
                { type: 'awaitBundle', params: ({ context }) => ({ roots: rootsOf(context) }) },
              ],
              on: {
                'bundle.trusted': {
                  guard: { type: 'isThisBundle', params: ({ event }) => event },
                  target: '#authority.at work.signing',
                  actions: 'changeOver',
                },
                'rotation.force': { target: '#authority.at work.signing', actions: 'changeOver' },
                'rotation.revert': {
                  description: 'Nothing is signed by it: it is given up.',
                  target: '#authority.at work.steady',
                  actions: 'forgetOther',
                },
              },
            },
          },
        },
        signing: {
          description: 'The new authority signs; both roots are trusted.',
          on: {
            'rotation.taint': {
              description: 'Everybody renews now, and nobody goes back.',
              target: '.recording',
              actions: 'taintOther',
            },
          },
          initial: 'recording',
          states: {
            recording: recording('signing', 'renewing'),
            'recording again': { after: { retryDelay: 'recording' } },
            renewing: {
              description: 'Workloads renew their certificates when their time comes.',
              meta: { waitsFor: 'the end or renewal of the last certificate of the old authority, which has one' },
              entry: [...inForce('signing'), 'awaitLeaves'],
              on: {
                'leaves.ended': {
                  guard: { type: 'isOfOther', params: ({ event }) => event },
                  target: '#authority.at work.dropping',
                },
                'rotation.force': '#authority.at work.dropping',
                'rotation.revert': {
                  guard: 'isOtherSound',
                  description: 'The old one signs again: both are trusted. Now the new one has leaves that must end.',
                  target: '#authority.at work.signing',
                  reenter: true,
                  actions: 'changeOver',
                },
              },
            },
          },
        },
        dropping: {
          description: 'The old root is given out no more.',
          initial: 'recording',
          states: {
            recording: recording('dropping', 'spreading'),
            'recording again': { after: { retryDelay: 'recording' } },
            spreading: {
              description: 'What the old authority has signed is over; it is no secret any more whom one trusts.',
              meta: {
                waitsFor:
                  'each workload’s word that it trusts the new root alone, or the end of its certificate; the debug page names who is missing',
              },
              entry: [
                ...inForce('dropping'),
                { type: 'awaitBundle', params: ({ context }) => ({ roots: [context.signer] }) },
              ],
              on: {
                'bundle.trusted': {
                  guard: { type: 'isOnlyOfSigner', params: ({ event }) => event },
                  target: '#authority.at work.steady',
                  actions: 'forgetOther',
                },
                'rotation.force': { target: '#authority.at work.steady', actions: 'forgetOther' },
                'rotation.revert': {
                  guard: 'isOtherSound',
                  description: 'Some trust the new root alone by now: the old one signs when all trust both again.',
                  target: '#authority.at work.trusting',
                },
              },
            },
          },
        },
      },
    },
  },
});

/** What everybody is told to renew: as long as nothing better signs, nobody could. */
function taintedIn(stage: RotationStage, { tainted }: AuthorityContext): AuthorityId | null {
  return stage === 'signing' ? tainted : null;
}

function reasonIn(reading: AuthorityReading | Candidate): string {
  return reading.outcome === 'refused' ? reading.reason : '';
}

function idIn(candidate: Candidate): AuthorityId {
  return candidate.outcome === 'renewed' || candidate.outcome === 'replaced' ? candidate.id : '';
}

/** A stage takes effect when it is written down. */
function recording(stage: RotationStage, next: string) {
  return {
    description: 'It is written down first: killed from here on, it is found again.',
    meta: { waitsFor: 'the disk' },
    invoke: {
      id: 'journal' as const,
      src: 'writeJournal' as const,
      input: ({ context }: { context: AuthorityContext }): Journal => ({ stage, ...namedIn(context) }),
      onDone: {
        target: next,
        actions: ['forgetFailures' as const, { type: 'reportStage' as const, params: { stage } }],
      },
      onError: { description: 'What was in force stays in force.', target: 'recording again', ...failedAgain() },
    },
  };
}

/** What holds in a stage, once it is written down. */
function inForce(stage: RotationStage) {
  return [
    {
      type: 'publishRoots' as const,
      params: ({ context }: { context: AuthorityContext }) => ({
        roots: rootsIn(stage, context),
        tainted: taintedIn(stage, context),
      }),
    },
    {
      type: 'signWith' as const,
      params: ({ context }: { context: AuthorityContext }) => ({ signer: context.signer }),
    },
    // A control plane that was killed in the midst of a rotation starts in it: the rotation waits for workloads, and they for it.
    'reportLoaded' as const,
  ] as const;
}

type Failed = { event: { error: unknown } };

function reported() {
  return {
    actions: {
      type: 'reportFailed' as const,
      params: ({ event }: Failed) => ({ reason: reasonOf(event.error) }),
    },
  };
}

function failedAgain() {
  return { actions: ['countFailure' as const, reported().actions] };
}

/** A rotation of which everybody's renewal is a part. */
function tainted() {
  return { target: '#authority.at work.preparing' as const, actions: 'taintSigner' as const };
}

function resumed(stage: RotationStage) {
  type Done = { event: { output: AuthorityReading } };
  return {
    guard: { type: 'isStage' as const, params: ({ event }: Done) => ({ reading: event.output, stage }) },
    target: stage,
    actions: ['forgetFailures' as const, { type: 'resume' as const, params: ({ event }: Done) => event.output }],
  };
}
