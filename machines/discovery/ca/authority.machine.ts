import { reasonOf } from '../../effect.ts';
import { authorityTimeline } from '../timeline.ts';
import {
  type AuthorityContext,
  type AuthorityReading,
  authoritySetup,
  type Candidate,
  type Journal,
  namedAuthoritiesOf,
  rootsIn,
  rootsOf,
} from './authority.setup.ts';
import { orderRejections, rejectsUnrecorded } from './authority-orders.ts';
import type { AuthorityId, RotationStage } from './authority-protocol.ts';

export type { AuthorityInput, AuthorityReading, Candidate, Journal } from './authority.setup.ts';

/**
 * The authority of the mesh, and the rotation of its root without failed connections between workloads (docs/identity.md): all workloads trust the
 * next root before it signs, and the previous one is dropped when none of its certificates is in use. Each stage is recorded before it applies, and
 * resumed after a restart. Only the effects have keys.
 */
export const authorityMachine = authoritySetup.createMachine({
  id: 'authority',
  description: 'The certificate authority of the mesh.',
  meta: { timeline: authorityTimeline },
  context: ({ input }) => ({ ...input, signer: '', other: null, tainted: null, failures: 0 }),
  initial: 'idle',
  states: {
    idle: {
      description: 'Not started.',
      meta: { waitsFor: 'authority.load, sent during the start' },
      on: { 'authority.load': 'active', ...orderRejections() },
    },
    active: {
      invoke: [
        { id: 'ledger', src: 'workloadLedger', onError: onError() },
        {
          id: 'directory',
          src: 'watchAuthority',
          onError: { description: 'The directory is also read when the age of the root is checked.', ...onError() },
        },
      ],
      on: {
        'authority.load': { description: 'The authority is loaded already, or being loaded.' },
        'files.changed': {
          description:
            'During a rotation the directory is ignored; it is read at the next check of the age after it, or after another change.',
        },
        'rotation.start': { description: 'A rotation is in progress: wait for its end, or revert it.' },
        'rotation.revert': {
          description: 'There is no step to revert, or the previous root is tainted and must not sign again.',
        },
        'rotation.proceed': { description: 'No step waits for workloads.' },
        'roots.trusted': { description: 'The event belongs to an earlier step.' },
        'roots.pending': { actions: { type: 'reportPending', params: ({ event }) => event } },
        'leaf-certificates.unused': { description: 'The event belongs to an earlier step.' },
      },
      initial: 'loading',
      states: {
        loading: {
          description: 'Loads the plugged-in directory, the stored root and the journal.',
          meta: { waitsFor: 'reading files' },
          on: orderRejections(),
          invoke: {
            id: 'loading',
            src: 'loadAuthority',
            onDone: [
              resumedState('steady'),
              resumedState('trusting'),
              resumedState('signing'),
              resumedState('dropping'),
              {
                guard: { type: 'isAbsent', params: ({ event }) => event.output },
                target: 'creating first root',
                actions: 'resetFailures',
              },
              {
                target: 'unusable',
                actions: [
                  'countFailure',
                  { type: 'reportFailed', params: ({ event }) => ({ reason: failureReasonOf(event.output) }) },
                ],
              },
            ],
            onError: { target: 'unusable', ...onRepeatedFailure() },
          },
        },
        unusable: {
          description:
            'The files contain no authority that can sign. They are read again, at increasing intervals. At the start, pilot-discovery exits.',
          after: { retryDelay: 'loading' },
          on: { 'files.changed': 'loading', ...orderRejections() },
        },
        'creating first root': {
          description: 'Generates and stores a root, because there is none, or every known root has expired.',
          meta: { waitsFor: 'generating a key and writing it to disk' },
          on: orderRejections(),
          invoke: {
            id: 'preparing',
            src: 'prepareRoot',
            onDone: { target: 'steady', actions: [{ type: 'recordFirst', params: ({ event }) => event.output }] },
            onError: { target: 'unusable', ...onRepeatedFailure() },
          },
        },
        steady: {
          description: 'One authority signs, and only its root is distributed.',
          on: {
            'rotation.start': '#authority.active.preparing',
            'rotation.taint': {
              description: 'The taint is recorded first. Then a rotation starts.',
              target: '.recording',
              actions: 'taintSigner',
            },
            'rotation.revert': {
              guard: 'isSignerTainted',
              description: 'The taint is removed.',
              target: '.recording',
              actions: 'clearTaint',
            },
          },
          initial: 'recording',
          states: {
            recording: recordingState('steady', 'idle'),
            'recording backoff': recordingBackoff(),
            idle: {
              tags: 'steady',
              description: 'The stage applies. The age of the root has not been checked yet.',
              meta: { waitsFor: 'the age of the root, a changed directory, or an order: normal operation' },
              entry: appliedState('steady'),
              always: { guard: 'isSignerTainted', target: '#authority.active.preparing' },
              after: { checkInterval: 'checking age' },
              on: { 'files.changed': 'debouncing' },
            },
            debouncing: {
              description: 'Waits until the directory is written. The delay counts from the first event.',
              after: { debounceTime: 'reading directory' },
              on: { 'files.changed': {} },
            },
            'reading directory': {
              description: 'Checks whether the directory has a different authority that can sign.',
              meta: { waitsFor: 'reading files' },
              invoke: {
                id: 'reading',
                src: 'readCandidate',
                input: ({ context }) => ({ signer: context.signer }),
                onDone: [
                  {
                    guard: { type: 'isRenewed', params: ({ event }) => event.output },
                    target: 'recording',
                    actions: { type: 'changeSigner', params: ({ event }) => ({ id: authorityIdOf(event.output) }) },
                  },
                  {
                    guard: { type: 'isReplaced', params: ({ event }) => event.output },
                    target: '#authority.active.trusting',
                    actions: { type: 'recordNext', params: ({ event }) => ({ id: authorityIdOf(event.output) }) },
                  },
                  {
                    guard: { type: 'isRejected', params: ({ event }) => event.output },
                    target: 'waiting',
                    actions: {
                      type: 'reportFailed',
                      params: ({ event }) => ({ reason: failureReasonOf(event.output) }),
                    },
                  },
                  { description: 'The authority is unchanged.', target: 'waiting' },
                ],
                onError: { target: 'waiting', ...onError() },
              },
              on: { 'files.changed': 'debouncing' },
            },
            'checking age': {
              meta: { waitsFor: 'the comparison with the clock' },
              invoke: {
                id: 'age',
                src: 'isRootDue',
                input: ({ context }) => ({ signer: context.signer }),
                onDone: [
                  {
                    guard: { type: 'isDue', params: ({ event }) => ({ isDue: event.output }) },
                    target: '#authority.active.preparing',
                  },
                  { description: 'The directory may have changed without an event.', target: 'reading directory' },
                ],
                onError: { target: 'waiting', ...onError() },
              },
            },
            waiting: {
              tags: 'steady',
              description: 'The last check found nothing to do, or failed. As in `idle`.',
              meta: { waitsFor: 'the age of the root, a changed directory, or an order: normal operation' },
              always: { guard: 'isSignerTainted', target: 'awaiting next root' },
              after: { checkInterval: 'checking age' },
              on: { 'files.changed': 'debouncing' },
            },
            'awaiting next root': {
              description: 'The root is tainted, and the next one could not be created.',
              meta: { waitsFor: 'the next attempt; a plugged-in authority must be replaced in its directory' },
              after: { nextRootDelay: '#authority.active.preparing' },
              on: { 'files.changed': 'debouncing' },
            },
          },
        },
        preparing: {
          description: 'Generates and stores the next root. It is not distributed yet.',
          meta: { waitsFor: 'generating a key and writing it to disk' },
          invoke: {
            id: 'preparing',
            src: 'prepareRoot',
            onDone: {
              target: 'trusting',
              actions: { type: 'recordNext', params: ({ event }) => event.output },
            },
            onError: {
              description: 'The current authority continues to sign. The directory may contain the next one.',
              target: 'steady.reading directory',
              ...onRepeatedFailure(),
            },
          },
          on: {
            'rotation.taint': [
              { guard: 'isSignerTainted', description: 'The taint is recorded already.', actions: 'taintSigner' },
              {
                description: 'The taint is recorded first. Then the next root is generated.',
                target: 'steady.recording',
                actions: 'taintSigner',
              },
            ],
            'rotation.revert': {
              description: 'The rotation does not start, and a taint is removed.',
              target: 'steady.recording',
              actions: 'clearTaint',
            },
          },
        },
        trusting: {
          description: 'Both roots are distributed; `other` does not sign yet.',
          on: {
            'rotation.taint': {
              description: 'The certificates are renewed when the next root signs. The taint is recorded first.',
              target: '.recording',
              actions: 'taintSigner',
            },
          },
          initial: 'recording',
          states: {
            recording: recordingState('trusting', 'distributing'),
            'recording backoff': recordingBackoff(),
            distributing: {
              description:
                'Waits until all workloads acknowledge both roots: others would reject certificates of the next root.',
              meta: {
                waitsFor:
                  'each workload to acknowledge both roots, or its certificate to expire; the debug page lists them',
              },
              entry: [
                ...appliedState('trusting'),
                { type: 'awaitBundle', params: ({ context }) => ({ roots: rootsOf(context) }) },
              ],
              on: {
                'roots.trusted': {
                  guard: { type: 'isCurrentBundle', params: ({ event }) => event },
                  target: '#authority.active.signing',
                  actions: 'switchSigner',
                },
                'rotation.proceed': { target: '#authority.active.signing', actions: 'switchSigner' },
                'rotation.revert': {
                  description:
                    'Only the signer remains, and no taint. The other root is new, or it signed before this rotation was reverted.',
                  target: '#authority.active.steady',
                  actions: ['clearOther', 'clearTaint'],
                },
              },
            },
          },
        },
        signing: {
          description: '`signer` signs; both roots are distributed.',
          on: {
            'rotation.taint': {
              description:
                'The certificates of the previous root are renewed now, and the rotation can no longer be reverted.',
              target: '.recording',
              actions: 'taintOther',
            },
          },
          initial: 'recording',
          states: {
            recording: recordingState('signing', 'renewing'),
            'recording backoff': recordingBackoff(),
            renewing: {
              description: 'Workloads renew their certificates on schedule.',
              meta: { waitsFor: 'the expiry or renewal of the last certificate of the previous authority' },
              entry: [...appliedState('signing'), 'awaitLeafCertificates'],
              on: {
                'leaf-certificates.unused': {
                  guard: { type: 'isOtherAuthority', params: ({ event }) => event },
                  target: '#authority.active.dropping',
                },
                'rotation.proceed': '#authority.active.dropping',
                'rotation.revert': {
                  guard: 'isOtherUntainted',
                  description:
                    'The previous authority signs again, while both are trusted. The certificates of the new one must be renewed or expire.',
                  target: '#authority.active.signing',
                  reenter: true,
                  actions: 'switchSigner',
                },
              },
            },
          },
        },
        dropping: {
          description: 'Only the root of the signer is distributed.',
          on: {
            'rotation.taint': [
              {
                guard: 'isOtherTainted',
                description:
                  'The previous root is tainted already. To taint the signing root, repeat the order in stage steady.',
              },
              {
                description: 'The signing root is tainted. The next rotation starts when this one has ended.',
                target: '.recording',
                actions: 'taintSigner',
              },
            ],
          },
          initial: 'recording',
          states: {
            recording: recordingState('dropping', 'distributing'),
            'recording backoff': recordingBackoff(),
            distributing: {
              description:
                'Waits until all workloads acknowledge the new root alone. No certificate of the previous one is in use.',
              meta: {
                waitsFor:
                  'each workload to acknowledge the new root alone, or its certificate to expire; the debug page lists them',
              },
              entry: [
                ...appliedState('dropping'),
                { type: 'awaitBundle', params: ({ context }) => ({ roots: [context.signer] }) },
              ],
              on: {
                'roots.trusted': {
                  guard: { type: 'isSignerBundle', params: ({ event }) => event },
                  target: '#authority.active.steady',
                  actions: 'clearOther',
                },
                'rotation.proceed': { target: '#authority.active.steady', actions: 'clearOther' },
                'rotation.revert': {
                  guard: 'isOtherUntainted',
                  description:
                    'Some workloads trust only the new root, so the previous one signs after all trust both again.',
                  target: '#authority.active.trusting',
                },
              },
            },
          },
        },
      },
    },
  },
});

/** Before the next authority signs, a renewal would not help. */
function taintedAuthorityOf(stage: RotationStage, { tainted }: AuthorityContext): AuthorityId | null {
  return stage === 'signing' ? tainted : null;
}

function failureReasonOf(readResult: AuthorityReading | Candidate): string {
  return readResult.outcome === 'refused' ? readResult.reason : '';
}

function authorityIdOf(candidate: Candidate): AuthorityId {
  return candidate.outcome === 'renewed' || candidate.outcome === 'replaced' ? candidate.id : '';
}

function recordingState(stage: RotationStage, nextState: string) {
  return {
    description: 'Writes the stage to the journal, so that a restart resumes here.',
    meta: { waitsFor: 'the disk' },
    invoke: {
      id: 'journal' as const,
      src: 'writeJournal' as const,
      input: ({ context }: { context: AuthorityContext }): Journal => ({ stage, ...namedAuthoritiesOf(context) }),
      onDone: {
        target: nextState,
        actions: ['resetFailures' as const, { type: 'reportStage' as const, params: { stage } }],
      },
      onError: { description: 'The previous state applies.', target: 'recording backoff', ...onRepeatedFailure() },
    },
    on: rejectsUnrecorded(),
  };
}

function recordingBackoff() {
  return {
    description: 'The stage could not be written: the previous one applies.',
    after: { retryDelay: 'recording' as const },
    on: rejectsUnrecorded(),
  };
}

function appliedState(stage: RotationStage) {
  return [
    {
      type: 'publishRoots' as const,
      params: ({ context }: { context: AuthorityContext }) => ({
        roots: rootsIn(stage, context),
        tainted: taintedAuthorityOf(stage, context),
      }),
    },
    {
      type: 'signWith' as const,
      params: ({ context }: { context: AuthorityContext }) => ({ signer: context.signer }),
    },
    // Sent in each stage: after a restart during a rotation, workloads connect only after this report, and the rotation waits for them.
    { type: 'reportLoaded' as const, params: { stage } },
  ] as const;
}

type FailedEvent = { event: { error: unknown } };

function onError() {
  return {
    actions: {
      type: 'reportFailed' as const,
      params: ({ event }: FailedEvent) => ({ reason: reasonOf(event.error) }),
    },
  };
}

function onRepeatedFailure() {
  return { actions: ['countFailure' as const, onError().actions] };
}

function resumedState(stage: RotationStage) {
  type ReadDone = { event: { output: AuthorityReading } };
  return {
    guard: { type: 'isStage' as const, params: ({ event }: ReadDone) => ({ reading: event.output, stage }) },
    target: stage,
    actions: [
      'resetFailures' as const,
      { type: 'restoreJournal' as const, params: ({ event }: ReadDone) => event.output },
    ],
  };
}
