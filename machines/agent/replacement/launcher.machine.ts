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
  | { type: 'new-agent.ended' };

const forwardDeferredSignals = {
  type: 'forwardDeferredSignals' as const,
  params: ({ event }: { event: { leaves: boolean } }) => ({ leaves: event.leaves }),
};

/** A newer agent has its certificate and its ports by then, or has ended. */
const takeoverLimitMs = 150_000;

/**
 * The first process of a container, which is the shell bin/pilot-agent: it starts agents, and takes their exit codes. That shell is this
 * chart's program; the chart is there to be explored with two agents (test/model/explore-succession.test.ts), and read.
 */
export const launcherMachine = setup({
  types: { context: {} as { endAsked: boolean }, events: {} as LauncherEvent },
  delays: { takeoverLimit: takeoverLimitMs },
  guards: {
    exitedInOrder: (_, { how }: { how: AgentEnd }) => how === 'in order',
    isStopRequested: ({ context }) => context.endAsked,
  },
  actions: {
    startAgent: () => {},
    startNewAgent: () => {},
    /** The newer agent is the agent from now on. */
    promoteNewAgent: () => {},
    killNewAgent: () => {},
    /** Kills the agent that has not the base ids: a newer one that hangs, or an older one that has given way. */
    killUnresponsiveAgent: () => {},
    /** Tells the agent to end, as soon as it hears signals. */
    stopAgent: () => {},
    recordStop: assign({ endAsked: true }),
    /** Passes a signal to the agent as soon as one hears, whichever it is by then. Where none has ever heard there is nothing to restart. */
    forwardSignal: () => {},
    /** Passes on likewise, to the next agent, what one that gave way has left undone. */
    forwardDeferredSignals: (_, __: { leaves: boolean }) => {},
    /** A person reads it. */
    rejectOrder: () => {},
  },
}).createMachine({
  id: 'launcher',
  description: 'Starts an agent, restarts it if it was killed, and starts a newer one beside it by order.',
  context: { endAsked: false },
  initial: 'one agent',
  entry: 'startAgent',
  states: {
    'one agent': {
      meta: { waitsFor: 'an order, or the end of the agent: normal operation' },
      on: {
        'succession.order': [
          { guard: 'isStopRequested', actions: 'rejectOrder' },
          { target: 'two agents', actions: 'startNewAgent' },
        ],
        'signal.order': { actions: 'forwardSignal' },
        'end.order': { actions: ['recordStop', 'stopAgent'] },
        'agent.ended': [
          { guard: { type: 'exitedInOrder', params: ({ event }) => event }, target: 'ended' },
          { guard: 'isStopRequested', actions: ['startAgent', 'stopAgent'] },
          { actions: ['startAgent', forwardDeferredSignals] },
        ],
      },
    },
    'two agents': {
      description: 'The newer agent takes over, or ends within its limits.',
      after: { takeoverLimit: { target: 'two agents', reenter: true, actions: 'killUnresponsiveAgent' } },
      on: {
        'succession.order': { actions: 'rejectOrder' },
        'signal.order': { actions: 'forwardSignal' },
        'end.order': { actions: ['recordStop', 'stopAgent'] },
        'new-agent.ended': 'one agent',
        'agent.ended': [
          {
            guard: { type: 'exitedInOrder', params: ({ event }) => event },
            target: 'killing new agent',
            actions: 'killNewAgent',
          },
          { guard: 'isStopRequested', target: 'one agent', actions: ['promoteNewAgent', 'stopAgent'] },
          { target: 'one agent', actions: ['promoteNewAgent', forwardDeferredSignals] },
        ],
      },
    },
    'killing new agent': {
      meta: { waitsFor: 'the exit of a killed process' },
      on: { 'new-agent.ended': 'ended', 'succession.order': {}, 'signal.order': {}, 'end.order': {} },
    },
    ended: { type: 'final' },
  },
});
