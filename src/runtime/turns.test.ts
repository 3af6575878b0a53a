import { setTimeout as after, setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { type Steps, Turns } from './turns.ts';

const turnMs = 6;

function* busySteps(ms: number, onDone: () => void = () => {}): Steps<void> {
  for (const endMs = performance.now() + ms; performance.now() < endMs; ) yield;
  onDone();
}

/** Number of turns of the event loop until the work is done. */
async function turnsUntil(work: Promise<unknown>): Promise<number> {
  let isDone = false;
  void work.then(() => {
    isDone = true;
  });
  let turnCount = 0;
  while (!isDone) {
    await nextTurn();
    turnCount++;
  }
  return turnCount;
}

function* steps(count: number, lastingMs: number): Steps<void> {
  for (let i = 0; i < count; i++) {
    const endMs = performance.now() + lastingMs;
    while (performance.now() < endMs);
    yield;
  }
}

test('concurrent long tasks each get an iteration of the event loop', async () => {
  await nextTurn();
  const works = Array.from({ length: 4 }, () => new Turns(turnMs).runSteps(steps(3, turnMs)));
  // The first steps run before the tasks wait for one another.
  expect(await turnsUntil(Promise.all(works))).toBeGreaterThanOrEqual(8);
});

test('a long task that starts when another one ends shares the iteration of that task', async () => {
  await nextTurn();
  const inOrder = (async () => {
    for (let i = 0; i < 10; i++) await new Turns(turnMs).runSteps(steps(1, turnMs / 2));
  })();
  expect(await turnsUntil(inOrder)).toBeGreaterThanOrEqual(4);
});

test('the long task that has waited longest gets the next iteration, so that every task completes', async () => {
  const completedTasks: string[] = [];
  let isOver = false;
  const endless = (async () => {
    const turns = new Turns(2);
    while (!isOver) {
      await turns.runSteps(busySteps(3));
      await turns.waitIfTurnEnded();
    }
  })();
  const work = ['first', 'second', 'third'].map((name) =>
    new Turns(2).runSteps(busySteps(1, () => completedTasks.push(name))),
  );
  await Promise.all(work);
  isOver = true;
  await endless;
  expect(completedTasks).toEqual(['first', 'second', 'third']);
});

test('a long task does not yield if the iteration has just started', async () => {
  const turns = new Turns(5);
  await after(10);
  await turns.waitIfTurnEnded();
  expect(turns.waitedMs).toBe(0);
});
