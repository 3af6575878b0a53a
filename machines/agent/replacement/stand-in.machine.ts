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
  delays: { holdLimit: standLimitMs, forwardLimit: lastLimitMs },
  actions: {
    /** Questions are kept, the newest up to a number; connections wait in the kernel. */
    holdTraffic: () => {},
    /** The kernel gives the next agent's socket what comes from now on. */
    stopReceiving: () => {},
    forwardTraffic: () => {},
    closeSockets: () => {},
  },
}).createMachine({
  id: 'stand-in',
  description: 'Keeps the ports of an agent open until the next agent has them.',
  initial: 'agent running',
  states: {
    'agent running': {
      meta: { waitsFor: 'the end of the agent, which serves these ports itself' },
      description: 'Has duplicates of the sockets and does not read them.',
      on: { 'agent.gone': { target: 'holding traffic', actions: 'holdTraffic' }, 'end.order': 'ended' },
    },
    'holding traffic': {
      description: 'Requests wait.',
      after: { holdLimit: 'ended' },
      on: { 'successor.ready': { target: 'forwarding', actions: ['stopReceiving', 'forwardTraffic'] } },
    },
    forwarding: {
      description: 'Forwards held requests to the next agent.',
      after: { forwardLimit: 'ended' },
      on: { 'port.drained': 'ended' },
    },
    ended: { type: 'final', entry: 'closeSockets' },
  },
});
