import { EventEmitter } from 'node:events';
import { expect, test } from 'vitest';
import { createActor, setup } from 'xstate';
import { type DueOrder, dueOrdersOf, successionExitCodeOf } from '../../machines/agent/agent-upgrade/due-orders.ts';
import type { Signal } from '../../machines/agent/protocol.ts';
import { handledSignals, isStartedByLauncher, SignalInbox, type SignalSource, signals } from './signals.ts';

const emitter = (): EventEmitter & SignalSource => new EventEmitter() as EventEmitter & SignalSource;

/**
 * Starts an actor that listens to the inbox.
 *
 * @returns received signals and a stop function
 */
function listener(inbox: SignalInbox): { events: unknown[]; stop: () => void } {
  const events: unknown[] = [];
  const parent = setup({ actors: { signals: signals(inbox) } }).createMachine({
    invoke: { src: 'signals' },
    on: { '*': { actions: ({ event }) => void events.push(event) } },
  });
  const actor = createActor(parent).start();
  return { events, stop: () => actor.stop() };
}

const signalEvent = (signal: string): object => ({ type: 'signal.received', signal });

test('delivers each handled signal', () => {
  const source = emitter();
  const { events } = listener(new SignalInbox({ source }));
  for (const signal of handledSignals) source.emit(signal, signal);
  expect(events).toEqual(handledSignals.map(signalEvent));
});

test('delivers queued signals first and only once', () => {
  const source = emitter();
  const inbox = new SignalInbox({ source });
  source.emit('SIGTERM', 'SIGTERM');
  source.emit('SIGUSR1', 'SIGUSR1');
  const { events } = listener(inbox);
  source.emit('SIGTERM', 'SIGTERM');
  expect(events).toEqual(['SIGTERM', 'SIGUSR1', 'SIGTERM'].map(signalEvent));
});

test('encodes pending orders and the number of received signals in the exit code of a hand-over', () => {
  const source = emitter();
  const inbox = new SignalInbox({ source });
  for (const signal of ['SIGHUP', 'SIGUSR1', 'SIGHUP', 'SIGHUP', 'SIGHUP']) source.emit(signal, signal);
  expect(inbox.pendingSignals).toHaveLength(5);
  expect(inbox.counts.get('SIGHUP')).toBe(4);
  expect(successionExitCodeOf([], inbox.counts)).toBe(75 + 4 + 12);
  const { events, stop } = listener(inbox);
  expect(events).toHaveLength(5);
  expect(inbox.pendingSignals).toEqual([]);
  stop();
  source.emit('SIGUSR1', 'SIGUSR1');
  expect(inbox.pendingSignals).toEqual(['SIGUSR1']);
  expect(successionExitCodeOf(['SIGHUP', 'SIGUSR1'], inbox.counts)).toBe(75 + 1 + 2 + 4 + 24);
});

test('decodes pending orders only from exit codes of a hand-over', () => {
  const dues: DueOrder[][] = [[], ['SIGHUP'], ['SIGUSR1'], ['SIGHUP', 'SIGUSR1']];
  for (const dueOrders of dues)
    for (const [hups, usr1s] of [0, 1, 2, 3, 4].flatMap((one) => [0, 1, 2, 7].map((other) => [one, other] as const))) {
      const counts = new Map<Signal, number>([
        ['SIGHUP', hups],
        ['SIGUSR1', usr1s],
      ]);
      expect(dueOrdersOf(successionExitCodeOf(dueOrders, counts))).toEqual(dueOrders);
    }
  for (const code of [0, 1, 74, 111, 126, 127, 137, 255]) expect(dueOrdersOf(code)).toBeUndefined();
});

test('ignores a signal after the effect ends', () => {
  const source = emitter();
  const inbox = new SignalInbox({ source });
  const { events, stop } = listener(inbox);
  stop();
  for (const signal of handledSignals) expect(source.emit(signal, signal)).toBe(true);
  expect(events).toEqual([]);
});

test('leaves terminal signals to the launcher while it runs', () => {
  const source = emitter();
  const { events } = listener(new SignalInbox({ source, terminalIsAnothers: true }));
  for (const signal of ['SIGINT', 'SIGQUIT', 'SIGTERM']) expect(source.emit(signal, signal)).toBe(true);
  expect(events).toEqual([signalEvent('SIGTERM')]);
});

test('detects the launcher by the parent process, not by an inherited environment', () => {
  expect(isStartedByLauncher({ CHARTPILOT_LAUNCHER: '1' }, 1)).toBe(true);
  expect(isStartedByLauncher({ CHARTPILOT_LAUNCHER: '1' }, 77)).toBe(false);
  expect(isStartedByLauncher({}, 1)).toBe(false);
});
