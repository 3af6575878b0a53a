import { setup } from 'xstate';

export type StandInEvent =
  /** The agent has ended, however: the pipe of which it alone had the other end has ended. */
  | { type: 'agent.gone' }
  /** The agent ends in order, and nobody comes after it. */
  | { type: 'end.order' }
  /** Another agent has the same port, and hears what is passed on. */
  | { type: 'successor.ready' }
  /** The kernel has nothing more for this port. */
  | { type: 'port.drained' };

/** The next agent has started by then, or none comes. */
const standLimitMs = 10_000;
/** How long requests that were under way may take. */
const lastLimitMs = 20_000;

/**
 * Who has the sockets of an agent that has ended, until the next one has what came to them meanwhile. It answers nothing, and decides nothing of
 * an Envoy. A shell is its first state and a small program the rest (src/agent/ports/port-keeper.ts, port-stand-in.ts); the chart is there to be
 * read and checked.
 */
export const standInMachine = setup({
  types: { events: {} as StandInEvent },
  delays: { standLimit: standLimitMs, lastLimit: lastLimitMs },
  actions: {
    /** Questions are kept, the newest up to a number; connections wait in the kernel. */
    hold: () => {},
    /** The kernel gives the next agent's socket what comes from now on. */
    hearNoMore: () => {},
    passOn: () => {},
    closeSockets: () => {},
  },
}).createMachine({
  id: 'stand-in',
  description: 'Keeps the ports of an agent open from its end until the next one has them.',
  initial: 'beside an agent',
  states: {
    'beside an agent': {
      meta: { waitsFor: 'the end of the agent, which answers at these ports itself' },
      description: 'The sockets are here, too: nothing is read.',
      on: { 'agent.gone': { target: 'without an agent', actions: 'hold' }, 'end.order': 'ended' },
    },
    'without an agent': {
      description: 'Whoever asks waits.',
      after: { standLimit: 'ended' },
      on: { 'successor.ready': { target: 'passing on', actions: ['hearNoMore', 'passOn'] } },
    },
    'passing on': {
      description: 'What came meanwhile is answered by the next agent, as if it had come to that.',
      after: { lastLimit: 'ended' },
      on: { 'port.drained': 'ended' },
    },
    ended: { type: 'final', entry: 'closeSockets' },
  },
});
