import { assign, setup } from 'xstate';

/** `gave way`: to a newer agent, or before an older one that goes on. `killed`: by a signal that it has no say in. */
export type AgentEnd = 'in order' | 'gave way' | 'killed';

export type LauncherEvent =
  /** Somebody wants a newer agent in the place of the one that runs (SIGUSR2). */
  | { type: 'succession.order' }
  /** Somebody wants a hot restart, or logs reopened: the agent does that (SIGHUP, SIGUSR1). */
  | { type: 'signal.order' }
  /** Somebody wants the end of it all (SIGTERM, SIGINT, SIGQUIT). */
  | { type: 'end.order' }
  /** The agent's exit code has been taken. `leaves`: it has given way, and has heard an order that it has not carried out. */
  | { type: 'agent.ended'; how: AgentEnd; leaves: boolean }
  /** That of the newer one beside it. */
  | { type: 'newcomer.ended' };

const passWhatIsLeft = {
  type: 'passWhatIsLeft' as const,
  params: ({ event }: { event: { leaves: boolean } }) => ({ leaves: event.leaves }),
};

/** A newer agent has its certificate and its ports by then, or has ended. */
const newcomerLimitMs = 150_000;

/**
 * The first process of a container, which is the shell bin/pilot-agent: it starts agents, and takes their exit codes. That shell is this
 * chart's program; the chart is there to be explored with two agents (test/model/explore-succession.test.ts), and read.
 */
export const launcherMachine = setup({
  types: { context: {} as { endAsked: boolean }, events: {} as LauncherEvent },
  delays: { newcomerLimit: newcomerLimitMs },
  guards: {
    endedInOrder: (_, { how }: { how: AgentEnd }) => how === 'in order',
    endAsked: ({ context }) => context.endAsked,
  },
  actions: {
    startAgent: () => {},
    startNewcomer: () => {},
    /** The newer agent is the agent from now on. */
    takeNewcomer: () => {},
    endNewcomer: () => {},
    /** Kills the agent that has not the base ids: a newer one that hangs, or an older one that has given way. */
    endWhoeverHangs: () => {},
    /** Tells the agent to end, as soon as it hears signals. */
    tellEnd: () => {},
    noteEnd: assign({ endAsked: true }),
    /** Passes a signal to the agent as soon as one hears, whichever it is by then. Where none has ever heard there is nothing to restart. */
    pass: () => {},
    /** Passes on likewise, to the next agent, what one that gave way has left undone. */
    passWhatIsLeft: (_, __: { leaves: boolean }) => {},
    /** A person reads it. */
    sayNotNow: () => {},
  },
}).createMachine({
  id: 'launcher',
  description: 'Starts an agent, another one when it was killed, and a newer one beside it when that is ordered.',
  context: { endAsked: false },
  initial: 'one agent',
  entry: 'startAgent',
  states: {
    'one agent': {
      meta: { waitsFor: 'an order, or the end of the agent: this is the work' },
      on: {
        'succession.order': [
          { guard: 'endAsked', actions: 'sayNotNow' },
          { target: 'two agents', actions: 'startNewcomer' },
        ],
        'signal.order': { actions: 'pass' },
        'end.order': { actions: ['noteEnd', 'tellEnd'] },
        'agent.ended': [
          { guard: { type: 'endedInOrder', params: ({ event }) => event }, target: 'ended' },
          { guard: 'endAsked', actions: ['startAgent', 'tellEnd'] },
          { actions: ['startAgent', passWhatIsLeft] },
        ],
      },
    },
    'two agents': {
      description: 'Either ends: the newer one takes over, or ends within its limits.',
      after: { newcomerLimit: { target: 'two agents', reenter: true, actions: 'endWhoeverHangs' } },
      on: {
        'succession.order': { actions: 'sayNotNow' },
        'signal.order': { actions: 'pass' },
        'end.order': { actions: ['noteEnd', 'tellEnd'] },
        'newcomer.ended': 'one agent',
        'agent.ended': [
          {
            guard: { type: 'endedInOrder', params: ({ event }) => event },
            target: 'ending the newcomer',
            actions: 'endNewcomer',
          },
          { guard: 'endAsked', target: 'one agent', actions: ['takeNewcomer', 'tellEnd'] },
          { target: 'one agent', actions: ['takeNewcomer', passWhatIsLeft] },
        ],
      },
    },
    'ending the newcomer': {
      meta: { waitsFor: 'the end of a process that was killed' },
      on: { 'newcomer.ended': 'ended', 'succession.order': {}, 'signal.order': {}, 'end.order': {} },
    },
    ended: { type: 'final' },
  },
});
