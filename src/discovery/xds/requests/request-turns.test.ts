import { describe, expect, test } from 'vitest';
import { eventually } from '../../../../test/harness/eventually.ts';
import { uncaughtErrors } from '../../../../test/harness/uncaught-errors.ts';
import { faultOwner, runAsOwner } from '../../../runtime/fences/fault-owner.ts';
import { RequestTurns } from './request-turns.ts';

/** Too large to run immediately. */
const largeBytes = 1024 * 1024;

const owner = (name: string, failedNames: string[] = []) => ({ name, fail: () => void failedNames.push(name) });

describe('RequestTurns after an error in a task', () => {
  test.each([
    ['at once', 0],
    ['from the queue', largeBytes],
  ])('report an error that is thrown %s and run further tasks of the client', async (_, bytes) => {
    const caughtErrors = uncaughtErrors();
    const turns = new RequestTurns();
    const events: string[] = [];
    turns.run(
      () => {
        throw new Error('a bug');
      },
      bytes,
      () => void events.push('next'),
    );
    turns.run(() => void events.push('another'), bytes);
    await eventually('both have been told', () => events.length === 2);
    await eventually('it is told of', () => caughtErrors.length === 1);
    turns.startWork(() => events.push('later') === 0);
    await eventually('others have their turn', () => events.includes('later'));
  });

  test('attribute the error to the owner of the task', async () => {
    const caughtErrors = uncaughtErrors();
    const turns = new RequestTurns();
    const failedNames: string[] = [];
    const owners: (string | undefined)[] = [];
    runAsOwner(owner('first', failedNames), () => turns.run(() => void owners.push(faultOwner()?.name), largeBytes));
    runAsOwner(owner('second', failedNames), () =>
      turns.startWork(() => {
        owners.push(faultOwner()?.name);
        throw new Error('a bug');
      }),
    );
    turns.run(() => void owners.push(faultOwner()?.name), largeBytes);
    await eventually('all had their turn', () => owners.length === 3);
    await eventually('it is told of', () => caughtErrors.length === 1);
    expect(owners).toEqual(['first', 'second', undefined]);
    expect(failedNames).toEqual(['second']);
  });
});

test('RequestTurns handle the requests of served clients first, but every fourth step is for new clients', async () => {
  const turns = new RequestTurns();
  const events: string[] = [];
  const add = (name: string, count: number, isServed: boolean): void => {
    for (let i = 0; i < count; i++) turns.run(() => void events.push(name), largeBytes, undefined, isServed);
  };
  add('new', 4, false);
  add('served', 5, true);
  await eventually('all are handled', () => turns.size === 0);
  expect(events.join(' ')).toBe('served served served new served served new new new');
});

test('RequestTurns handle a small request of a served client immediately while requests of new clients wait', async () => {
  const turns = new RequestTurns();
  const events: string[] = [];
  turns.run(() => void events.push('new'), largeBytes);
  turns.run(() => void events.push('served'), 0, undefined, true);
  turns.run(() => void events.push('new'), 0);
  expect(events).toEqual(['served']);
  await eventually('all are handled', () => events.length === 3);
});
