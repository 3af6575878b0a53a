import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { eventually } from '../../../../test/harness/eventually.ts';
import { uncaughtErrors } from '../../../../test/harness/uncaught-errors.ts';
import { isTurnFull, noteHandedOver, Slices } from './slices.ts';

test('work that a piece of it stops and begins anew goes on in a later turn, and is done once', async () => {
  const done: string[] = [];
  const slices: Slices = new Slices(() => {
    done.push('piece');
    if (done.length > 1) return false;
    slices.stop();
    slices.begin();
    return true;
  });
  slices.begin();
  await turn();
  done.push('turn');
  for (let i = 0; i < 3; i++) await turn();
  expect(done).toEqual(['piece', 'turn', 'piece']);
});

test('a piece that throws is told of, and the others have their turn', async () => {
  const caught = uncaughtErrors();
  const done: string[] = [];
  const pieces = ['a', 'broken', 'b', 'c'];
  const slices = new Slices(() => {
    const piece = pieces.shift();
    if (piece === 'broken') throw new Error('a bug');
    if (piece !== undefined) done.push(piece);
    return pieces.length > 0;
  });
  slices.begin();
  await eventually('the rest is done', () => done.length === 3);
  expect(caught.map(({ error }) => String(error))).toEqual(['Error: a bug']);
  // It was not the last work.
  pieces.push('d');
  slices.begin();
  await eventually('what comes later is done', () => done.includes('d'));
});

test('work that throws again and again lets others have their turns', async () => {
  uncaughtErrors();
  let thrown = 0;
  const slices = new Slices(() => {
    thrown++;
    throw new Error('a bug');
  });
  slices.begin();
  for (let i = 0; i < 10; i++) await turn();
  slices.stop();
  const before = thrown;
  expect(before).toBeLessThanOrEqual(11);
  for (let i = 0; i < 3; i++) await turn();
  expect(thrown).toBe(before);
});

test('work that hands sockets more than the kernel takes at a stretch goes on in a later turn', async () => {
  const mib = 1024 * 1024;
  const pieces: string[] = [];
  const slices = new Slices(() => {
    pieces.push('piece');
    noteHandedOver(mib);
    return pieces.filter((one) => one === 'piece').length < 6;
  });
  slices.begin();
  for (let i = 0; i < 4; i++) {
    await turn();
    pieces.push('turn');
  }
  // Two fill a turn.
  expect(pieces.join(' ')).toBe('piece piece turn piece piece turn piece piece turn turn');
});

test('a turn is full for whoever comes by himself, too, until it is over', async () => {
  noteHandedOver(1_000);
  expect(isTurnFull()).toBe(false);
  noteHandedOver(4 * 1024 * 1024);
  expect(isTurnFull()).toBe(true);
  await turn();
  expect(isTurnFull()).toBe(false);
});
