import { assign, setup } from 'xstate';

/** An agent `gave way` after a hand-over, or because an older agent keeps control. It was `killed` by a signal that it does not handle. */
export type AgentEnd = 'in order' | 'gave way' | 'killed';

export type LauncherEvent =
  /** The launcher received SIGUSR2. */
  | { type: 'succession.order' }
  /** The launcher received SIGHUP (hot restart) or SIGUSR1 (reopen logs). */
  | { type: 'signal.order' }
  /** The launcher received SIGTERM, SIGINT or SIGQUIT. */
  | { type: 'end.order' }
  /** An agent that `leaves` exits after a hand-over, with due orders in its exit code. */
  | { type: 'agent.ended'; how: AgentEnd; leaves: boolean }
  | { type: 'new-agent.ended' };

const forwardDeferredSignals = {
  type: 'forwardDeferredSignals' as const,
  params: ({ event }: { event: { leaves: boolean } }) => ({ leaves: event.leaves }),
};

/** A newer agent obtains its certificate, opens its ports and takes over within this time. */
const takeoverLimitMs = 150_000;

/**
 * The first process of a container starts agents and reads their exit codes. The shell script bin/pilot-agent is the implementation; this machine is
 * for documentation and for the exploration of two agents (test/model/explore-succession.test.ts).
 */
export const launcherMachine = setup({
  types: { context: {} as { isEndRequested: boolean }, events: {} as LauncherEvent },
  delays: { takeoverLimit: takeoverLimitMs },
  guards: {
    exitedInOrder: (_, { how }: { how: AgentEnd }) => how === 'in order',
    isStopRequested: ({ context }) => context.isEndRequested,
  },
  actions: {
    startAgent: () => {},
    startNewAgent: () => {},
    promoteNewAgent: () => {},
    killNewAgent: () => {},
    /** The unresponsive agent has no base IDs: it is a newer one, or the older one after the hand-over. */
    killUnresponsiveAgent: () => {},
    stopAgent: () => {},
    recordStop: assign({ isEndRequested: true }),
    /** Waits until an agent handles signals. Drops the signal if no agent ever did, because then no Envoy is running. */
    forwardSignal: () => {},
    forwardDeferredSignals: (_, __: { leaves: boolean }) => {},
    rejectOrder: () => {},
  },
}).createMachine({
  id: 'launcher',
  description: 'Starts an agent, restarts it if it was killed, and starts a newer one beside it on request.',
  context: { isEndRequested: false },
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
