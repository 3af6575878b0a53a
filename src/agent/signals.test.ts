import { EventEmitter } from 'node:events';
import { expect, test } from 'vitest';
import { createActor, setup } from 'xstate';
import { handledSignals, type SignalSource, signals } from './signals.ts';

test('every signal that means something is told, until the effect ends', () => {
  const source = new EventEmitter();
  const told: unknown[] = [];
  const parent = setup({ actors: { signals: signals(source as unknown as SignalSource) } }).createMachine({
    invoke: { src: 'signals' },
    on: { '*': { actions: ({ event }) => void told.push(event) } },
  });
  const actor = createActor(parent).start();
  for (const signal of handledSignals) source.emit(signal, signal);
  expect(told).toEqual(handledSignals.map((signal) => ({ type: 'signal.received', signal })));
  actor.stop();
  expect(handledSignals.map((signal) => source.listenerCount(signal))).toEqual([0, 0, 0, 0]);
});
