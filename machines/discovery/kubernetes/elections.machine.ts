import { assign, enqueueActions, sendParent, setup } from 'xstate';
import { electionsTimeline } from '../timeline.ts';
import { type LeaderInput, leaderMachine } from './leader.machine.ts';
import type { LeaderReport, LeadersResign, LeadersResigned, LeadersStand } from './leader-protocol.ts';

export type ElectionsInput = {
  /** Of each duty its Lease and its times. */
  leaders: Omit<LeaderInput, 'number'>[];
};

interface ElectionsContext extends ElectionsInput {
  /** Leases for which somebody still stands or leads. */
  held: string[];
}

/** All duties that one replica of many has for a cluster: each has an election of its own (leader.machine.ts). */
export const electionsMachine = setup({
  types: {
    context: {} as ElectionsContext,
    input: {} as ElectionsInput,
    events: {} as LeadersStand | LeadersResign | LeaderReport,
    children: {} as Record<`leader-${number}`, 'leader'>,
  },
  actors: { leader: leaderMachine },
  guards: {
    isLast: ({ context }, { lease }: { lease: string }) => context.held.every((other) => other === lease),
  },
  actions: {
    startLeaders: enqueueActions(({ context, enqueue }) => {
      for (const [index, leader] of context.leaders.entries()) {
        const number = index + 1;
        enqueue.spawnChild('leader', { id: `leader-${number}`, input: { ...leader, number } });
      }
      enqueue.assign({ held: context.leaders.map(({ lease }) => lease) });
    }),
    orderToResign: enqueueActions(({ context, enqueue }) => {
      for (const index of context.leaders.keys()) enqueue.sendTo(`leader-${index + 1}`, { type: 'leader.resign' });
    }),
    noteResigned: assign({
      held: ({ context }, { lease }: { lease: string }) => context.held.filter((other) => other !== lease),
    }),
    reportResigned: sendParent({ type: 'leaders.resigned' } satisfies LeadersResigned),
  },
}).createMachine({
  id: 'elections',
  description: 'Which of the duties of a cluster this replica has.',
  meta: { timeline: electionsTimeline },
  context: ({ input }) => ({ ...input, held: [] }),
  initial: 'waiting',
  on: {
    'leader.elected': { description: 'For the record.' },
    'leader.lost': { description: 'For the record: it stands again.' },
    'leader.failed': { description: 'For the record: it tries again.' },
  },
  states: {
    waiting: {
      description: 'The program does not serve yet: what it knows is not whole, and nothing is written of it.',
      meta: { waitsFor: 'the end of the start; /ready says what it waits for' },
      on: { 'leaders.stand': { target: 'standing', actions: 'startLeaders' }, 'leaders.resign': 'resigned' },
    },
    standing: {
      description: 'Of each duty this replica is the one that has it, or waits for its turn.',
      meta: { waitsFor: 'the end of the program: this is the work' },
      on: { 'leaders.resign': { target: 'resigning', actions: 'orderToResign' } },
    },
    resigning: {
      description: 'What is held is being given back.',
      meta: { waitsFor: 'each of the leaders, all of which have a limit' },
      on: {
        'leader.resigned': [
          {
            guard: { type: 'isLast', params: ({ event }) => event },
            target: 'resigned',
            actions: { type: 'noteResigned', params: ({ event }) => event },
          },
          { actions: { type: 'noteResigned', params: ({ event }) => event } },
        ],
        'leaders.resign': { description: 'It is under way; its end is told once.' },
      },
    },
    resigned: {
      description: 'Nothing is held.',
      meta: { waitsFor: 'the end of the program' },
      entry: 'reportResigned',
      on: { 'leaders.resign': { description: 'Whoever waits for it is told once more.', actions: 'reportResigned' } },
    },
  },
});
