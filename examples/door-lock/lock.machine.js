/**
 * A door lock with a keypad: it opens after a valid code, locks itself again, and ignores input for a while after three
 * wrong codes.
 */
import { assign, fromCallback, sendTo, setup } from 'xstate';

export const lockMachine = setup({
  actors: {
    /** The motor of the bolt, which needs some time. */
    bolt: fromCallback(({ sendBack, receive }) => {
      let moving;
      receive(({ type }) => {
        clearTimeout(moving);
        moving = setTimeout(() => sendBack({ type: type === 'bolt.draw' ? 'bolt.drawn' : 'bolt.shot' }), 20);
      });
      return () => clearTimeout(moving);
    }),
  },
  delays: { openTime: ({ context }) => context.openMs, deafTime: 30_000 },
  guards: { isLastTry: ({ context }) => context.wrong >= 2 },
  actions: {
    drawBolt: sendTo('bolt', { type: 'bolt.draw' }),
    shootBolt: sendTo('bolt', { type: 'bolt.shoot' }),
    forgive: assign({ wrong: 0 }),
    countWrong: assign({ wrong: ({ context }) => context.wrong + 1 }),
  },
}).createMachine({
  id: 'lock',
  description: 'A door lock with a keypad.',
  // Optional: defines how the timeline shows the machine. Without it, the timeline has a lane with the machine's
  // states.
  meta: {
    timeline: {
      lane: 'each',
      marks: [
        { event: 'code.rejected', lane: '{to}', kind: 'rejected', text: 'A wrong code at {at}' },
        { timer: 'deafTime', lane: '{actor}', kind: 'retry', text: 'Codes are accepted again' },
      ],
    },
  },
  context: ({ input }) => ({ openMs: input.openMs, wrong: 0 }),
  invoke: { id: 'bolt', src: 'bolt' },
  initial: 'locked',
  states: {
    locked: {
      description: 'Waits for a code.',
      on: {
        'code.accepted': { target: 'opening', actions: 'forgive' },
        'code.rejected': [{ guard: 'isLastTry', target: 'deaf', actions: 'countWrong' }, { actions: 'countWrong' }],
      },
    },
    opening: {
      entry: 'drawBolt',
      on: { 'bolt.drawn': 'open' },
    },
    open: {
      description: 'The door can be pushed open.',
      after: { openTime: 'closing' },
      on: { 'door.closed': 'closing' },
    },
    closing: {
      entry: 'shootBolt',
      on: { 'bolt.shot': 'locked' },
    },
    deaf: {
      description: 'Three wrong codes: codes are ignored for a while.',
      after: { deafTime: { target: 'locked', actions: 'forgive' } },
    },
  },
});
