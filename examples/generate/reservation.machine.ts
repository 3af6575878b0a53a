import { assign, fromPromise, sendParent, setup } from 'xstate';

interface ReservationContext {
  seats: number;
  maxSeats: number;
  failures: number;
}

/** A reservation of cinema seats, which are held for ten minutes until they are paid. */
export const reservationMachine = setup({
  types: {
    context: {} as ReservationContext,
    input: {} as { maxSeats: number },
    events: {} as
      | { type: 'seats.chosen'; seats: number }
      | { type: 'payment.started' }
      | { type: 'reservation.cancelled' },
  },
  actors: {
    pay: fromPromise<{ receipt: string }, { seats: number }>(() => Promise.reject(new Error('not connected'))),
  },
  delays: { holdTime: 600_000 },
  guards: {
    fits: ({ context }, params: { seats: number }) => params.seats > 0 && params.seats <= context.maxSeats,
    mayTryAgain: ({ context }) => context.failures < 2,
  },
  actions: {
    hold: assign({ seats: (_, params: { seats: number }) => params.seats }),
    release: assign({ seats: 0 }),
    countFailure: assign({ failures: ({ context }) => context.failures + 1 }),
    printTickets: sendParent(({ context }) => ({ type: 'tickets.printed', seats: context.seats })),
  },
}).createMachine({
  id: 'reservation',
  context: ({ input }) => ({ seats: 0, failures: 0, ...input }),
  initial: 'choosing',
  states: {
    choosing: {
      on: {
        'seats.chosen': {
          guard: { type: 'fits', params: ({ event }) => ({ seats: event.seats }) },
          target: 'held',
          actions: { type: 'hold', params: ({ event }) => ({ seats: event.seats }) },
        },
        'reservation.cancelled': 'cancelled',
      },
    },
    held: {
      description: 'The seats are reserved for a while.',
      initial: 'waiting',
      after: { holdTime: { target: 'choosing', actions: 'release' } },
      on: { 'reservation.cancelled': 'cancelled' },
      states: {
        waiting: { on: { 'payment.started': 'paying' } },
        paying: {
          invoke: {
            src: 'pay',
            id: 'pay',
            input: ({ context }) => ({ seats: context.seats }),
            onDone: '#reservation.paid',
            onError: [
              { guard: 'mayTryAgain', target: 'waiting', actions: 'countFailure' },
              { target: '#reservation.cancelled' },
            ],
          },
        },
      },
    },
    paid: { type: 'final', entry: 'printTickets' },
    cancelled: { type: 'final' },
  },
});
