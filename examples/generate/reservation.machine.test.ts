// Made by: chartpilot generate examples/generate/reservation.machine.ts --cover transitions
// When the machine is meant to behave otherwise, make this file anew.
// It needs: npm install --save-dev chartpilot xstate vitest
// It covers 6 of 6 states.
// It covers 8 of 8 transitions.
import { startMachine } from 'chartpilot/machine-test';
import { test } from 'vitest';
import { reservationMachine } from './reservation.machine.ts';

const start = () => startMachine(reservationMachine, { input: { maxSeats: 4 } }).is('choosing');

test('1. choosing: reservation.cancelled → cancelled', () => {
  const machine = start();
  machine.event({ type: 'reservation.cancelled' }).is('cancelled');
});

test('2. refused: choosing: seats.chosen [fits] → held', () => {
  const machine = start();
  machine.event({ type: 'seats.chosen', seats: 5 }).is('choosing');
});

test('3. held: after holdTime → choosing', () => {
  const machine = start();
  machine.event({ type: 'seats.chosen', seats: 2 }).is('held.waiting');
  machine.after('holdTime', 600_000).is('choosing');
});

test('4. held: reservation.cancelled → cancelled', () => {
  const machine = start();
  machine.event({ type: 'seats.chosen', seats: 2 }).is('held.waiting');
  machine.event({ type: 'reservation.cancelled' }).is('cancelled');
});

test('5. held.paying: pay is done → paid', () => {
  const machine = start();
  machine.event({ type: 'seats.chosen', seats: 2 }).is('held.waiting');
  machine.event({ type: 'payment.started' }).is('held.paying');
  machine.done('pay', { receipt: 'r-1' }).is('paid', ['tickets.printed to parent']);
});

test('6. held.paying: pay fails → cancelled and 3 more', () => {
  const machine = start();
  machine.event({ type: 'seats.chosen', seats: 2 }).is('held.waiting');
  machine.event({ type: 'payment.started' }).is('held.paying');
  machine.fails('pay', 'card refused').is('held.waiting');
  machine.event({ type: 'payment.started' }).is('held.paying');
  machine.fails('pay', 'card refused').is('held.waiting');
  machine.event({ type: 'payment.started' }).is('held.paying');
  machine.fails('pay', 'card refused').is('cancelled');
});
