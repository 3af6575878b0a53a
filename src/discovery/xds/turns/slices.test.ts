import { setImmediate as turn } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { eventually } from '../../../../test/harness/eventually.ts';
import { uncaughtErrors } from '../../../../test/harness/uncaught-errors.ts';
import { countSocketBytes, isTurnFull, maxSliceMs, SliceScheduler } from './slices.ts';

test('Slices continue once and asynchronously if their own work stops and restarts them', async () => {
  const completedPieces: string[] = [];
  const slices: SliceScheduler = new SliceScheduler(() => {
    completedPieces.push('piece');
    if (completedPieces.length > 1) return false;
    slices.stop();
    slices.start();
    return true;
  });
  slices.start();
  await turn();
  completedPieces.push('turn');
  for (let i = 0; i < 3; i++) await turn();
  expect(completedPieces).toEqual(['piece', 'turn', 'piece']);
});

test('Slices report an error and continue with other work', async () => {
  const caughtErrors = uncaughtErrors();
  const completedPieces: string[] = [];
  const pieces = ['a', 'broken', 'b', 'c'];
  const slices = new SliceScheduler(() => {
    const piece = pieces.shift();
    if (piece === 'broken') throw new Error('a bug');
    if (piece !== undefined) completedPieces.push(piece);
    return pieces.length > 0;
  });
  slices.start();
  await eventually('the rest is done', () => completedPieces.length === 3);
  expect(caughtErrors.map(({ error }) => String(error))).toEqual(['Error: a bug']);
  pieces.push('d');
  slices.start();
  await eventually('what comes later is done', () => completedPieces.includes('d'));
});

test('Slices let other tasks run even if work throws repeatedly', async () => {
  uncaughtErrors();
  let thrown = 0;
  const slices = new SliceScheduler(() => {
    thrown++;
    throw new Error('a bug');
  });
  slices.start();
  for (let i = 0; i < 10; i++) await turn();
  slices.stop();
  const thrownBefore = thrown;
  expect(thrownBefore).toBeLessThanOrEqual(11);
  for (let i = 0; i < 3; i++) await turn();
  expect(thrown).toBe(thrownBefore);
});

test('Slices pause until the next event loop iteration after writing too many bytes to sockets', async () => {
  const mib = 1024 * 1024;
  const pieces: string[] = [];
  const slices = new SliceScheduler(() => {
    pieces.push('piece');
    countSocketBytes(mib);
    return pieces.filter((one) => one === 'piece').length < 6;
  });
  slices.start();
  for (let i = 0; i < 4; i++) {
    await turn();
    pieces.push('turn');
  }
  // Two pieces fill an iteration.
  expect(pieces.join(' ')).toBe('piece piece turn piece piece turn piece piece turn turn');
});

test('an event loop iteration that exceeds the limit of written bytes is full for all users until it ends', async () => {
  countSocketBytes(1_000);
  expect(isTurnFull()).toBe(false);
  countSocketBytes(4 * 1024 * 1024);
  expect(isTurnFull()).toBe(true);
  await turn();
  expect(isTurnFull()).toBe(false);
});

/** Slices whose steps take the given time on a virtual clock. They record their names. */
function timedSlices(...all: readonly { name: string; isUrgent?: boolean; stepMs: number; steps: number }[]): string[] {
  let nowMs = performance.now();
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
  onTestFinished(() => clock.mockRestore());
  const events: string[] = [];
  for (const { name, isUrgent = false, stepMs, steps } of all) {
    let remainingSteps = steps;
    const slices = new SliceScheduler(() => {
      events.push(name);
      nowMs += stepMs;
      return --remainingSteps > 0;
    }, isUrgent);
    slices.start();
  }
  return events;
}

async function recordTurns(events: string[], turns: number): Promise<string> {
  for (let i = 0; i < turns; i++) {
    await turn();
    events.push('|');
  }
  return events.join(' ');
}

test('Slices share the time of an event loop iteration, and work that got no time runs first in the next iteration', async () => {
  const slice = { stepMs: 0.75 * maxSliceMs, steps: 2 };
  const events = timedSlices({ name: 'a', ...slice }, { name: 'b', ...slice }, { name: 'c', ...slice });
  expect(await recordTurns(events, 4)).toBe('a b | c a | b c | |');
});

test('urgent Slices run first, for half of the time if other work waits', async () => {
  const events = timedSlices(
    { name: 'other', stepMs: maxSliceMs / 4, steps: 3 },
    { name: 'push', isUrgent: true, stepMs: maxSliceMs / 4, steps: 7 },
  );
  expect(await recordTurns(events, 3)).toBe('push push other other | push push other | push push push |');
});
