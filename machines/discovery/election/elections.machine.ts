import { assign, enqueueActions, sendParent, setup } from 'xstate';
import { electionsTimeline } from '../timeline.ts';
import { type LeaderInput, leaderMachine } from './leader.machine.ts';
import type {
  LeaderReport,
  LeadersAnnounce,
  LeadersAnnounced,
  LeadersResign,
  LeadersResigned,
  LeadersStand,
  LeaseName,
} from './leader-protocol.ts';

export type ElectionsInput = {
  /** Of each duty its Lease and its times. */
  leaders: Omit<LeaderInput, 'number'>[];
  /** The Lease of this replica's presence, one of the above. */
  presence: LeaseName;
};

/** Milliseconds that a start waits for the Lease of this replica's presence. */
const maxAnnounceMs = 5_000;

interface ElectionsContext extends ElectionsInput {
  /** Leases for which somebody still stands or leads. */
  held: string[];
}

/** All duties that one replica of many has for a cluster: each has an election of its own (leader.machine.ts). */
export const electionsMachine = setup({
  types: {
    context: {} as ElectionsContext,
    input: {} as ElectionsInput,
    events: {} as LeadersAnnounce | LeadersStand | LeadersResign | LeaderReport,
    children: {} as Record<`leader-${number}`, 'leader'>,
  },
  actors: { leader: leaderMachine },
  delays: { announceLimit: maxAnnounceMs },
  guards: {
    isPresence: ({ context }, { lease }: { lease: string }) => lease === context.presence,
    isLast: ({ context }, { lease }: { lease: string }) => context.held.every((other) => other === lease),
  },
  actions: {
    startPresence: enqueueActions(({ context: { leaders, presence }, enqueue }) => {
      const index = leaders.findIndex(({ lease }) => lease === presence);
      const number = index + 1;
      enqueue.spawnChild('leader', { id: `leader-${number}`, input: { ...leaders[index]!, number } });
      enqueue.assign({ held: [presence] });
    }),
    startLeaders: enqueueActions(({ context, enqueue }) => {
      for (const [index, leader] of context.leaders.entries()) {
        const number = index + 1;
        if (context.held.includes(leader.lease)) continue;
        enqueue.spawnChild('leader', { id: `leader-${number}`, input: { ...leader, number } });
      }
      enqueue.assign({ held: context.leaders.map(({ lease }) => lease) });
    }),
    orderToResign: enqueueActions(({ context, enqueue }) => {
      for (const [index, { lease }] of context.leaders.entries()) {
        if (context.held.includes(lease)) enqueue.sendTo(`leader-${index + 1}`, { type: 'leader.resign' });
      }
    }),
    noteResigned: assign({
      held: ({ context }, { lease }: { lease: string }) => context.held.filter((other) => other !== lease),
    }),
    reportAnnounced: sendParent({ type: 'leaders.announced' } satisfies LeadersAnnounced),
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
      on: {
        'leaders.announce': 'announcing',
        'leaders.stand': { target: 'standing', actions: 'startLeaders' },
        'leaders.resign': 'resigned',
      },
    },
    announcing: {
      description:
        'The Lease of this replica is written before proxies connect, so that the replica that writes the statuses waits for its counts.',
      entry: 'startPresence',
      after: { announceLimit: { description: 'Proxies do not wait for Leases.', target: 'announced' } },
      on: {
        'leader.elected': { guard: { type: 'isPresence', params: ({ event }) => event }, target: 'announced' },
        'leader.failed': { guard: { type: 'isPresence', params: ({ event }) => event }, target: 'announced' },
        'leaders.stand': { target: 'standing', actions: 'startLeaders' },
        'leaders.resign': { target: 'resigning', actions: 'orderToResign' },
      },
    },
    announced: {
      description: 'Other replicas can see that this one runs. It stands for no other duty yet.',
      meta: { waitsFor: 'the end of the start; /ready says what it waits for' },
      entry: 'reportAnnounced',
      on: {
        'leaders.stand': { target: 'standing', actions: 'startLeaders' },
        'leaders.resign': { target: 'resigning', actions: 'orderToResign' },
      },
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
