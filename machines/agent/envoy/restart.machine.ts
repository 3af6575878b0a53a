import { assign, sendParent, setup } from 'xstate';
import type { ChildAbort, RestartFact } from '../protocol.ts';
import { noLane } from '../timeline.ts';

export interface RestartInput {
  /** An epoch serves: it goes on serving if the newcomer is never live. */
  beside: boolean;
  /** The newcomer is nobody's child. */
  needsNobody: boolean;
  /** Something newer is wanted than what it was started for, and nobody would miss it. */
  isOutdated: boolean;
  /** A child beside a serving epoch must be live within this. */
  startLimitMs: number;
  /** How long it is better to wait for an Envoy that is about to be live than to start anew. */
  outdatedLimitMs: number;
}

export interface RestartOutput {
  /** `called off`: something newer is to be started at once. `failed`: the next try has to wait. */
  end: 'called off' | 'failed';
}

export type RestartTag = 'starting' | 'beside the serving epoch' | 'with nobody serving' | 'outdated' | 'aborting';

/** An Envoy is asked once more: it answers within milliseconds, or its main thread is busy with something else. */
const lookLimitMs = 1_000;

const giveUp = (why: ChildAbort['why']) => ({ type: 'orderAbort', params: { why } }) as const;
const notInTime = { target: '#restart.aborting', actions: giveUp('not live in time') } as const;
const withItsParent = { target: '#restart.aborting', actions: giveUp('its parent hangs') } as const;
const orphaned = { target: '#restart.aborting', actions: giveUp('its parent is gone') } as const;
const calledOff = { target: '#restart.calling off', actions: giveUp('something newer is wanted') } as const;

/** It is asked once more: what follows where it is not live, or does not say. */
const looks = <Then>(description: string, then: Then) => ({
  description,
  entry: 'orderLook' as const,
  after: { lookLimit: then },
  on: { 'child.not-live': then },
});

/**
 * One restart: how long an Envoy may be on its way to live, and what puts an end to that. It is told what happens to the
 * newcomer, its parent and the epoch that serves; that it is live ends this chart from outside.
 */
export const restartMachine = setup({
  types: {
    context: {} as RestartInput,
    input: {} as RestartInput,
    output: {} as RestartOutput,
    tags: {} as RestartTag,
    events: {} as RestartFact,
  },
  delays: {
    startLimit: ({ context }) => context.startLimitMs,
    lookLimit: lookLimitMs,
    outdatedLimit: ({ context }) => context.outdatedLimitMs,
  },
  guards: {
    isBeside: ({ context }) => context.beside,
    needsNobody: ({ context }) => context.needsNobody,
    isOutdated: ({ context }) => context.isOutdated,
    becomesOutdated: ({ event }) => event.type === 'wanted.changed' && event.isOutdated,
  },
  actions: {
    note: assign(({ event }) => (event.type === 'wanted.changed' ? { isOutdated: event.isOutdated } : {})),
    noteLoss: assign({ beside: false }),
    orderLook: sendParent({ type: 'child.look' }),
    orderAbort: sendParent((_, { why }: { why: ChildAbort['why'] }): ChildAbort => ({ type: 'child.abort', why })),
  },
}).createMachine({
  id: 'restart',
  description: 'One Envoy is on its way to live.',
  meta: { timeline: noLane },
  context: ({ input }) => input,
  initial: 'starting',
  on: { 'wanted.changed': { actions: 'note' } },
  states: {
    starting: {
      tags: 'starting',
      description: 'The newest epoch is on its way to live.',
      initial: 'choosing',
      states: {
        choosing: {
          always: [{ guard: 'isBeside', target: 'beside the serving epoch' }, { target: 'with nobody serving' }],
        },
        'beside the serving epoch': {
          tags: 'beside the serving epoch',
          description: 'The old epoch serves until the new one is live, and goes on serving if it never is.',
          initial: 'in time',
          states: {
            'in time': {
              description: 'News are looked at when it is live, or when its time is over.',
              after: { startLimit: 'looking once more' },
              on: { 'child.not-live': {} },
            },
            'looking once more': looks(
              'Its time is over. Since the last look it may have become live: then its parent serves no more.',
              notInTime,
            ),
          },
          on: {
            'serving.lost': [
              { guard: 'needsNobody', target: 'with nobody serving', actions: 'noteLoss' },
              { target: 'its parent is gone', actions: 'noteLoss' },
            ],
          },
        },
        'with nobody serving': {
          tags: 'with nobody serving',
          description: 'However long it takes: an Envoy that waits for the control plane is better than none.',
          initial: 'choosing',
          states: {
            choosing: { always: [{ guard: 'isOutdated', target: 'outdated' }, { target: 'waiting' }] },
            waiting: {
              meta: { waitsFor: 'whatever Envoy waits for (epoch.waiting says what); news and orders call it off' },
              description: 'It has the newest configuration, or it needs a parent that will not wait for long.',
              on: {
                'wanted.changed': [
                  { guard: 'becomesOutdated', target: 'outdated', actions: 'note' },
                  { actions: 'note' },
                ],
                'child.not-live': {},
              },
            },
            outdated: {
              tags: 'outdated',
              description: 'Something newer is wanted. One that is about to be live is still better than a start anew.',
              after: { outdatedLimit: 'looking once more' },
              on: {
                'wanted.changed': [
                  { guard: 'becomesOutdated', actions: 'note' },
                  { target: 'waiting', actions: 'note' },
                ],
                'child.not-live': {},
              },
            },
            'looking once more': looks(
              'Since the last look it may have become live: then a hot restart follows, and nothing is lost.',
              calledOff,
            ),
            'waiting for a parent that hangs': looks(
              'A parent that hangs answers nobody, and its child waits for ever, unless it has become live meanwhile.',
              withItsParent,
            ),
          },
          on: {
            'parent.overdue': '.waiting for a parent that hangs',
            'parent.lost': 'its parent is gone',
          },
        },
        'its parent is gone': {
          tags: 'with nobody serving',
          ...looks(
            'It never becomes live any more, but since the last look it may have: then its parent had closed its listeners for it.',
            orphaned,
          ),
        },
      },
    },
    aborting: {
      tags: 'aborting',
      meta: { waitsFor: 'its exit, or its report that SIGKILL does not end it: 10 s at most' },
      description: 'A child that will not become live is being killed.',
      on: { 'child.gone': 'failed', 'serving.lost': {} },
    },
    'calling off': {
      tags: 'aborting',
      meta: { waitsFor: 'its exit, or its report that SIGKILL does not end it: 10 s at most' },
      description: 'What it was started with is no longer wanted, and nobody needs it: it is being killed.',
      on: { 'child.gone': 'called off' },
    },
    failed: { type: 'final', description: 'The next try has to wait.', output: { end: 'failed' } },
    'called off': {
      type: 'final',
      description: 'Something newer is to be started.',
      output: { end: 'called off' },
    },
  },
  output: ({ event }) => event.output as RestartOutput,
});
