import { assign, sendParent, setup } from 'xstate';
import type { ChildAbort, RestartEvent } from '../protocol.ts';
import { noLane } from '../timeline.ts';

export interface RestartInput {
  /** Whether another epoch serves, which continues if the candidate never becomes live. */
  isBesideServing: boolean;
  hasNoParent: boolean;
  /** Whether the desired state changed after the start of the candidate, and no client uses the candidate. */
  isOutdated: boolean;
  /** Maximum start time while another epoch serves. */
  startLimitMs: number;
  /** Maximum wait for an outdated candidate, which may be about to become live. */
  outdatedLimitMs: number;
}

export interface RestartOutput {
  /** Another start follows `called off` immediately; after `failed`, the next attempt waits for the backoff. */
  end: 'called off' | 'failed';
}

export type RestartTag = 'starting' | 'beside the serving epoch' | 'no serving epoch' | 'outdated' | 'aborting';

/** Envoy responds within milliseconds, unless its main thread is busy. */
const probeLimitMs = 1_000;

const requestAbort = (reason: ChildAbort['reason']) => ({ type: 'requestAbort', params: { why: reason } }) as const;
const abortOnTimeout = { target: '#restart.aborting', actions: requestAbort('not live in time') } as const;
const abortWithParent = { target: '#restart.aborting', actions: requestAbort('its parent hangs') } as const;
const abortOrphan = { target: '#restart.aborting', actions: requestAbort('its parent is gone') } as const;
const cancelStart = { target: '#restart.cancelling', actions: requestAbort('something newer is wanted') } as const;

const onProbeDue = <Then>(description: string, nextTransition: Then) => ({
  description,
  entry: 'requestProbe' as const,
  after: { probeLimit: nextTransition },
  on: { 'child.not-live': nextTransition },
});

export const restartMachine = setup({
  types: {
    context: {} as RestartInput,
    input: {} as RestartInput,
    output: {} as RestartOutput,
    tags: {} as RestartTag,
    events: {} as RestartEvent,
  },
  delays: {
    startLimit: ({ context }) => context.startLimitMs,
    probeLimit: probeLimitMs,
    outdatedLimit: ({ context }) => context.outdatedLimitMs,
  },
  guards: {
    hasServingEpoch: ({ context }) => context.isBesideServing,
    isIndependent: ({ context }) => context.hasNoParent,
    isOutdated: ({ context }) => context.isOutdated,
    becomesOutdated: ({ event }) => event.type === 'desired.changed' && event.isOutdated,
  },
  actions: {
    recordDesired: assign(({ event }) => (event.type === 'desired.changed' ? { isOutdated: event.isOutdated } : {})),
    recordServingLost: assign({ isBesideServing: false }),
    requestProbe: sendParent({ type: 'child.probe' }),
    requestAbort: sendParent(
      (_, { why }: { why: ChildAbort['reason'] }): ChildAbort => ({ type: 'child.abort', reason: why }),
    ),
  },
}).createMachine({
  id: 'restart',
  description: 'One candidate, from its start until it is live or aborted.',
  meta: { timeline: noLane },
  context: ({ input }) => input,
  initial: 'starting',
  on: { 'desired.changed': { actions: 'recordDesired' } },
  states: {
    starting: {
      tags: 'starting',
      description: 'The candidate is starting.',
      initial: 'choosing',
      states: {
        choosing: {
          always: [{ guard: 'hasServingEpoch', target: 'beside the serving epoch' }, { target: 'no serving epoch' }],
        },
        'beside the serving epoch': {
          tags: 'beside the serving epoch',
          description: 'The serving epoch continues to serve until the candidate is live.',
          initial: 'within limit',
          states: {
            'within limit': {
              description: 'Changes are evaluated when the candidate is live or its limit has passed.',
              after: { startLimit: 'final probe' },
              on: { 'child.not-live': {} },
            },
            'final probe': onProbeDue(
              'The start limit has passed. Probes again, because the candidate may have become live since the last probe.',
              abortOnTimeout,
            ),
          },
          on: {
            'serving.lost': [
              { guard: 'isIndependent', target: 'no serving epoch', actions: 'recordServingLost' },
              { target: 'parent exited', actions: 'recordServingLost' },
            ],
          },
        },
        'no serving epoch': {
          tags: 'no serving epoch',
          description: 'No limit: an Envoy that waits for the control plane is better than none.',
          initial: 'choosing',
          states: {
            choosing: { always: [{ guard: 'isOutdated', target: 'outdated' }, { target: 'waiting' }] },
            waiting: {
              meta: { waitsFor: 'the dependencies of Envoy (see epoch.waiting); changes and orders cancel the start' },
              description: 'The candidate has the newest configuration, or its parent limits the wait.',
              on: {
                'desired.changed': [
                  { guard: 'becomesOutdated', target: 'outdated', actions: 'recordDesired' },
                  { actions: 'recordDesired' },
                ],
                'child.not-live': {},
              },
            },
            outdated: {
              tags: 'outdated',
              description:
                'The desired state changed. Waits briefly, because the candidate may be about to become live.',
              after: { outdatedLimit: 'final probe' },
              on: {
                'desired.changed': [
                  { guard: 'becomesOutdated', actions: 'recordDesired' },
                  { target: 'waiting', actions: 'recordDesired' },
                ],
                'child.not-live': {},
              },
            },
            'final probe': onProbeDue(
              'Probes again: if the candidate is live, a hot restart follows instead of a cancellation.',
              cancelStart,
            ),
            'parent unresponsive': onProbeDue(
              'An unresponsive parent blocks its child. Probes again, because the child may have become live.',
              abortWithParent,
            ),
          },
          on: {
            'parent.overdue': '.parent unresponsive',
            'parent.lost': 'parent exited',
          },
        },
        'parent exited': {
          tags: 'no serving epoch',
          ...onProbeDue(
            'Without its parent the candidate cannot become live. Probes again, because it may be live already.',
            abortOrphan,
          ),
        },
      },
    },
    aborting: {
      tags: 'aborting',
      meta: { waitsFor: 'its exit, or its report that SIGKILL has no effect: at most 10 s' },
      description: 'The candidate is being killed because it cannot become live.',
      on: { 'child.ended': 'failed', 'serving.lost': {} },
    },
    cancelling: {
      tags: 'aborting',
      meta: { waitsFor: 'its exit, or its report that SIGKILL has no effect: at most 10 s' },
      description: 'The candidate is being killed because the desired state changed and no client uses it.',
      on: { 'child.ended': 'cancelled' },
    },
    failed: { type: 'final', description: 'The next attempt waits for the backoff.', output: { end: 'failed' } },
    cancelled: {
      type: 'final',
      description: 'The next attempt starts at once.',
      output: { end: 'called off' },
    },
  },
  output: ({ event }) => event.output as RestartOutput,
});
