import { EventEmitter } from 'node:events';
import { expect, test } from 'vitest';
import { createActor, setup } from 'xstate';
import { handledSignals, SignalInbox, type SignalSource, signals, startedByLauncher } from './signals.ts';

const emitter = (): EventEmitter & SignalSource => new EventEmitter() as EventEmitter & SignalSource;

/** An actor that listens to the inbox. @returns what it was told so far, and how to end it */
function listener(inbox: SignalInbox): { told: unknown[]; stop: () => void } {
  const told: unknown[] = [];
  const parent = setup({ actors: { signals: signals(inbox) } }).createMachine({
    invoke: { src: 'signals' },
    on: { '*': { actions: ({ event }) => void told.push(event) } },
  });
  const actor = createActor(parent).start();
  return { told, stop: () => actor.stop() };
}

const received = (signal: string): object => ({ type: 'signal.received', signal });

test('every signal that means something is told', () => {
  const source = emitter();
  const { told } = listener(new SignalInbox({ source }));
  for (const signal of handledSignals) source.emit(signal, signal);
  expect(told).toEqual(handledSignals.map(received));
});

test('what came before anybody listened is told first, once', () => {
  const source = emitter();
  const inbox = new SignalInbox({ source });
  source.emit('SIGTERM', 'SIGTERM');
  source.emit('SIGUSR1', 'SIGUSR1');
  const { told } = listener(inbox);
  source.emit('SIGTERM', 'SIGTERM');
  expect(told).toEqual(['SIGTERM', 'SIGUSR1', 'SIGTERM'].map(received));
});

test('a signal that comes after the effect has ended does nothing', () => {
  const source = emitter();
  const inbox = new SignalInbox({ source });
  const { told, stop } = listener(inbox);
  stop();
  for (const signal of handledSignals) expect(source.emit(signal, signal)).toBe(true);
  expect(told).toEqual([]);
});

test('under the launcher what a terminal sends to everybody is heard by the launcher alone', () => {
  const source = emitter();
  const { told } = listener(new SignalInbox({ source, terminalIsAnothers: true }));
  for (const signal of ['SIGINT', 'SIGQUIT', 'SIGTERM']) expect(source.emit(signal, signal)).toBe(true);
  expect(told).toEqual([received('SIGTERM')]);
});

test('the launcher is the parent, not somebody whose environment was inherited', () => {
  expect(startedByLauncher({ CHARTPILOT_LAUNCHER: '1' }, 1)).toBe(true);
  expect(startedByLauncher({ CHARTPILOT_LAUNCHER: '1' }, 77)).toBe(false);
  expect(startedByLauncher({}, 1)).toBe(false);
});
