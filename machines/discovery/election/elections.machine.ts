import { assign, enqueueActions, sendParent, setup } from 'xstate';
import { electionsTimeline } from '../timeline.ts';
import { type LeaderInput, leaderMachine } from './leader.machine.ts';
import type {
  ElectionsJoin,
  ElectionsResign,
  ElectionsResigned,
  LeaderReport,
  LeaseName,
  ReplicaAnnounce,
  ReplicaAnnounced,
} from './leader-protocol.ts';

export type ElectionsInput = {
  leaders: Omit<LeaderInput, 'number'>[];
  /** The Lease for the presence of this replica, one of `leaders`. */
  presence: LeaseName;
};

/** How long the start waits for the Lease of this replica. */
const maxAnnounceMs = 5_000;

interface ElectionsContext extends ElectionsInput {
  held: string[];
}

/** All duties of a replica for a cluster, each with an election. */
export const electionsMachine = setup({
  types: {
    context: {} as ElectionsContext,
    input: {} as ElectionsInput,
    events: {} as ReplicaAnnounce | ElectionsJoin | ElectionsResign | LeaderReport,
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
    requestResignation: enqueueActions(({ context, enqueue }) => {
      for (const [index, { lease }] of context.leaders.entries()) {
        if (context.held.includes(lease)) enqueue.sendTo(`leader-${index + 1}`, { type: 'leader.resign' });
      }
    }),
    recordResigned: assign({
      held: ({ context }, { lease }: { lease: string }) => context.held.filter((other) => other !== lease),
    }),
    reportAnnounced: sendParent({ type: 'replica.announced' } satisfies ReplicaAnnounced),
    reportResigned: sendParent({ type: 'elections.resigned' } satisfies ElectionsResigned),
  },
}).createMachine({
  id: 'elections',
  description: 'The duties of this replica for a cluster.',
  meta: { timeline: electionsTimeline },
  context: ({ input }) => ({ ...input, held: [] }),
  initial: 'waiting',
  on: {
    'leader.elected': { description: 'Recorded only.' },
    'leader.lost': { description: 'Recorded only: it is a candidate again.' },
    'leader.failed': { description: 'Recorded only: it tries again.' },
  },
  states: {
    waiting: {
      description: 'The program does not serve yet, so its knowledge is incomplete and nothing is written.',
      meta: { waitsFor: 'the end of the start; /ready reports the current stage' },
      on: {
        'replica.announce': 'announcing',
        'elections.join': { target: 'participating', actions: 'startLeaders' },
        'elections.resign': 'resigned',
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
        'elections.join': { target: 'participating', actions: 'startLeaders' },
        'elections.resign': { target: 'resigning', actions: 'requestResignation' },
      },
    },
    announced: {
      description: 'Other replicas know that this one runs. It is a candidate for no other duty yet.',
      meta: { waitsFor: 'the end of the start; /ready reports the current stage' },
      entry: 'reportAnnounced',
      on: {
        'elections.join': { target: 'participating', actions: 'startLeaders' },
        'elections.resign': { target: 'resigning', actions: 'requestResignation' },
      },
    },
    participating: {
      description: 'For each duty, this replica is the leader or a candidate.',
      meta: { waitsFor: 'the end of the program: normal operation' },
      on: { 'elections.resign': { target: 'resigning', actions: 'requestResignation' } },
    },
    resigning: {
      description: 'Gives back all Leases.',
      meta: { waitsFor: 'the leaders, each of which has a limit' },
      on: {
        'leader.resigned': [
          {
            guard: { type: 'isLast', params: ({ event }) => event },
            target: 'resigned',
            actions: { type: 'recordResigned', params: ({ event }) => event },
          },
          { actions: { type: 'recordResigned', params: ({ event }) => event } },
        ],
        'elections.resign': { description: 'Resignation is in progress; its end is reported once.' },
      },
    },
    resigned: {
      description: 'No Lease is held.',
      meta: { waitsFor: 'the end of the program' },
      entry: 'reportResigned',
      on: { 'elections.resign': { description: 'Reports the resignation again.', actions: 'reportResigned' } },
    },
  },
});
