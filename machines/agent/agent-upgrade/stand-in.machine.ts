import { setup } from 'xstate';

export type StandInEvent =
  | { type: 'agent.gone' }
  | { type: 'end.order' }
  | { type: 'successor.ready' }
  /** The kernel has no more traffic for this port. */
  | { type: 'port.drained' };

const standLimitMs = 10_000;
const lastLimitMs = 20_000;

/**
 * Keeps the sockets of an exited agent until the next one has received their traffic. Implemented by src/agent/ports/port-keeper.ts and
 * port-stand-in.ts; this machine is for documentation and checks.
 */
export const standInMachine = setup({
  types: { events: {} as StandInEvent },
  delays: { holdLimit: standLimitMs, forwardLimit: lastLimitMs },
  actions: {
    /** Queues DNS queries up to a limit; connections wait in the kernel. */
    holdTraffic: () => {},
    /** From now on, the kernel delivers to the next agent's socket. */
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
