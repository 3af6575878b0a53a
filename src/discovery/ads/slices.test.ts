import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { Slices } from './slices.ts';

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
