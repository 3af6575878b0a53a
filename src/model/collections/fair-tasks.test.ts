import { describe, expect, it } from 'vitest';
import { FairTasks } from './fair-tasks.ts';

/** Creates tasks that end on request; `begun` lists their names in start order. */
function createTasks(options: ConstructorParameters<typeof FairTasks>[0]) {
  const tasks = new FairTasks(options);
  const startedTasks: string[] = [];
  const finishTask = new Map<string, () => void>();
  const start = (name: string, rank = 0, signal?: AbortSignal) =>
    tasks.schedule<string>(
      {
        ...{ key: [name.split(' ')[0]!], rank },
        run: async (resolveTask) => {
          startedTasks.push(name);
          await new Promise<void>((resolve) => finishTask.set(name, resolve));
          resolveTask('done');
        },
        reject: (waitingCount) => `rejected, ${waitingCount} wait`,
        cancelled: () => 'cancelled',
      },
      signal,
    );
  return { tasks, begun: startedTasks, start, end: (name: string) => finishTask.get(name)!() };
}

describe('FairTasks', () => {
  it('runs a limited number of tasks concurrently, and starts a task of another key next', async () => {
    const { begun, start, end } = createTasks({ maxRunning: 2, maxWaiting: 10 });
    const first = start('mallory 1');
    for (const name of ['mallory 2', 'mallory 3', 'mallory 4', 'bank 1']) void start(name);
    expect(begun).toEqual(['mallory 1', 'mallory 2']);
    end('mallory 1');
    expect(await first).toBe('done');
    end('mallory 2');
    await expect.poll(() => begun.length).toBe(4);
    expect(begun.slice(2).toSorted()).toEqual(['bank 1', 'mallory 3']);
  });

  it('reserves a slot for a new key while tasks of another key fill the other slots', () => {
    const { begun, start } = createTasks({ maxRunning: 3, maxRunningOfKey: 2, maxWaiting: 10 });
    for (const name of ['mallory 1', 'mallory 2', 'mallory 3', 'bank 1']) void start(name);
    expect(begun).toEqual(['mallory 1', 'mallory 2', 'bank 1']);
  });

  it('rejects tasks of the largest key if the queue is full', async () => {
    const { start } = createTasks({ maxRunning: 1, maxWaiting: 2 });
    const [, , secondTask] = ['mallory 1', 'mallory 2', 'mallory 3'].map((name) => start(name));
    void start('bank 1');
    expect(await secondTask).toBe('rejected, 2 wait');
  });

  it('does not start tasks whose signal was aborted', async () => {
    const { begun, start, end } = createTasks({ maxRunning: 1, maxWaiting: 2 });
    const caller = new AbortController();
    const first = start('a');
    const secondTask = start('b', 0, caller.signal);
    caller.abort();
    expect(await secondTask).toBe('cancelled');
    end('a');
    await first;
    expect(begun).toEqual(['a']);
    expect(await start('c', 0, caller.signal)).toBe('cancelled');
  });

  it('runs tasks of one key by rank, and continues after a failed task', async () => {
    const { tasks, begun, start, end } = createTasks({ maxRunning: 1, maxWaiting: 9 });
    const failing = tasks.schedule({
      key: ['a'],
      run: () => Promise.reject(new Error('broken')),
      reject: () => undefined,
    });
    for (const [name, rank] of [
      ['a late', 2],
      ['a soon', 1],
    ] as const)
      void start(name, rank);
    await expect(failing).rejects.toThrow('broken');
    await expect.poll(() => begun).toEqual(['a soon']);
    end('a soon');
    await expect.poll(() => begun).toEqual(['a soon', 'a late']);
  });
});
