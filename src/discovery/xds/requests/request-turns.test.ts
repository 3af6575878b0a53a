import { describe, expect, test } from 'vitest';
import { eventually } from '../../../../test/harness/eventually.ts';
import { uncaughtErrors } from '../../../../test/harness/uncaught-errors.ts';
import { faultOwner, onBehalfOf } from '../../../runtime/fences/fault-owner.ts';
import { RequestTurns } from './request-turns.ts';

/** Larger than what is done at once. */
const large = 1024 * 1024;

const owner = (name: string, failed: string[] = []) => ({ name, fail: () => void failed.push(name) });

describe('work that throws', () => {
  test.each([
    ['at once', 0],
    ['in its turn', large],
  ])('%s is told of, and whoever brought it about may bring about more', async (_, bytes) => {
    const caught = uncaughtErrors();
    const turns = new RequestTurns();
    const told: string[] = [];
    turns.run(
      () => {
        throw new Error('a bug');
      },
      bytes,
      () => void told.push('next'),
    );
    turns.run(() => void told.push('another'), bytes);
    await eventually('both have been told', () => told.length === 2);
    await eventually('it is told of', () => caught.length === 1);
    turns.begin(() => told.push('later') === 0);
    await eventually('others have their turn', () => told.includes('later'));
  });

  test('costs whom it was done for, whoever began the turns', async () => {
    const caught = uncaughtErrors();
    const turns = new RequestTurns();
    const failed: string[] = [];
    const owners: (string | undefined)[] = [];
    onBehalfOf(owner('first', failed), () => turns.run(() => void owners.push(faultOwner()?.name), large));
    onBehalfOf(owner('second', failed), () =>
      turns.begin(() => {
        owners.push(faultOwner()?.name);
        throw new Error('a bug');
      }),
    );
    turns.run(() => void owners.push(faultOwner()?.name), large);
    await eventually('all had their turn', () => owners.length === 3);
    await eventually('it is told of', () => caught.length === 1);
    expect(owners).toEqual(['first', 'second', undefined]);
    expect(failed).toEqual(['second']);
  });
});
