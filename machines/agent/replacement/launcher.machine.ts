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
  /** The agent's exit code has been taken. */
  | { type: 'agent.ended'; how: AgentEnd }
  /** That of the newer one beside it. */
  | { type: 'newcomer.ended' };

/** An agent whose successor has ended takes back what it gave up, or ends. The shell counts from that one's start, and not as exactly. */
const settledMs = 2_000;

/**
 * The first process of a container, which is the shell bin/pilot-agent: it starts agents, and takes their exit codes. That shell is this
 * chart's program; the chart is there to be explored with two agents (test/model/explore-succession.test.ts), and read.
 */
export const launcherMachine = setup({
  types: { context: {} as { endAsked: boolean; nextAsked: boolean }, events: {} as LauncherEvent },
  delays: { settled: settledMs },
  guards: {
    endedInOrder: (_, { how }: { how: AgentEnd }) => how === 'in order',
    endAsked: ({ context }) => context.endAsked,
    nextAsked: ({ context }) => context.nextAsked,
  },
  actions: {
    startAgent: () => {},
    startNewcomer: () => {},
    /** It is the agent from now on. */
    takeNewcomer: () => {},
    endNewcomer: () => {},
    /** To the agent, as soon as that one hears signals. */
    tellEnd: () => {},
    noteEnd: assign({ endAsked: true, nextAsked: false }),
    noteNext: assign({ nextAsked: true }),
    forgetNext: assign({ nextAsked: false }),
    /** To the agent; one that does not hear yet, and is not the first one, is told when it does. So is the one after an agent that has ended. */
    pass: () => {},
    /** A copy of what is passed: the agent may have given way by the time that it hears. */
    keepCopy: () => {},
    /** The next agent is told what the one before it was while another one was there: done twice is better than not at all. */
    passCopies: () => {},
    /** A person reads it. */
    sayNotNow: () => {},
  },
}).createMachine({
  id: 'launcher',
  description: 'Starts an agent, another one when it was killed, and a newer one beside it when that is ordered.',
  context: { endAsked: false, nextAsked: false },
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
        'end.order': { actions: ['noteEnd', 'tellEnd'] },
        'agent.ended': [
          { guard: { type: 'endedInOrder', params: ({ event }) => event }, target: 'ended' },
          { guard: 'endAsked', actions: ['startAgent', 'tellEnd'] },
          { target: 'one agent', actions: ['startAgent', 'passCopies'] },
        ],
      },
      initial: 'alone',
      states: {
        alone: { on: { 'signal.order': { actions: 'pass' } } },
        'after another': {
          description: 'A newer agent has ended. The agent may have given way to it before, and end.',
          after: { settled: 'alone' },
          on: { 'signal.order': { actions: ['pass', 'keepCopy'] } },
        },
      },
    },
    'two agents': {
      meta: { waitsFor: 'the end of either: the newer one takes over or ends within its limits' },
      on: {
        'succession.order': [{ guard: 'endAsked', actions: 'sayNotNow' }, { actions: 'noteNext' }],
        'signal.order': { actions: ['pass', 'keepCopy'] },
        'end.order': { actions: ['noteEnd', 'tellEnd'] },
        'newcomer.ended': [
          { guard: 'nextAsked', actions: ['forgetNext', 'startNewcomer'] },
          { target: 'one agent.after another' },
        ],
        'agent.ended': [
          {
            guard: { type: 'endedInOrder', params: ({ event }) => event },
            target: 'ending the newcomer',
            actions: 'endNewcomer',
          },
          { guard: 'endAsked', target: 'one agent', actions: ['takeNewcomer', 'tellEnd'] },
          { guard: 'nextAsked', actions: ['takeNewcomer', 'passCopies', 'keepCopy', 'forgetNext', 'startNewcomer'] },
          { target: 'one agent', actions: ['takeNewcomer', 'passCopies'] },
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
