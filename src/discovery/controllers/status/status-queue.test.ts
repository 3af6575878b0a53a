import { describe, expect, it } from 'vitest';
import { StatusQueue } from './status-queue.ts';

const acceptAny = (): boolean => true;

/** Takes all due items. */
function takeDue(queue: StatusQueue<string>, now: number): string[] {
  const all: string[] = [];
  for (let next = queue.dequeueNext(now, acceptAny); next !== undefined; next = queue.dequeueNext(now, acceptAny))
    all.push(next[1]);
  return all;
}

describe('the status queue', () => {
  it('returns urgent objects first, then the others by arrival, each once with its newest version', () => {
    const queue = new StatusQueue<string>({ pauseMs: 0 });
    queue.add('a', 'a1', false, 0);
    queue.add('b', 'b1', false, 0);
    queue.add('a', 'a2', false, 0);
    queue.add('c', 'c1', true, 0);
    queue.add('c', 'c2', false, 0);
    expect(queue.size).toBe(3);
    expect(takeDue(queue, 0)).toEqual(['c2', 'a2', 'b1']);
  });

  it('skips objects that this run has already taken', () => {
    const queue = new StatusQueue<string>({ pauseMs: 0 });
    queue.add('a', 'a', true, 0);
    queue.add('b', 'b', false, 0);
    expect(queue.dequeueNext(0, (key) => key !== 'a')).toEqual(['b', 'b']);
    expect(queue.dequeueNext(0, (key) => key !== 'a')).toBeUndefined();
    expect(queue.isDue(0)).toBe(true);
  });
});

describe('the delay of an object in the status queue', () => {
  const restMs = 10_000;

  it("starts at the object's last write, and does not apply to urgent items", () => {
    const queue = new StatusQueue<string>({ pauseMs: restMs });
    queue.markWritten('a', 1_000);
    queue.add('a', 'a', false, 2_000);
    queue.add('b', 'b', false, 2_000);
    expect(takeDue(queue, 2_000)).toEqual(['b']);
    expect(queue.isDue(10_999)).toBe(false);
    expect(queue.nextDueAt(2_000)).toBe(11_000);
    expect(takeDue(queue, 11_000)).toEqual(['a']);
    expect(queue.nextDueAt(11_000)).toBeUndefined();
    queue.add('a', 'again', false, 11_000);
    queue.add('a', 'urgent', true, 11_000);
    expect(takeDue(queue, 11_000)).toEqual(['urgent']);
  });

  it('is not extended by later items', () => {
    const queue = new StatusQueue<string>({ pauseMs: restMs });
    queue.markWritten('a', 0);
    for (let now = 100; now < restMs; now += 100) queue.add('a', `${now}`, false, now);
    expect(queue.nextDueAt(restMs - 1)).toBe(restMs);
    expect(takeDue(queue, restMs)).toEqual(['9900']);
  });

  it('ends for many objects at the same time', () => {
    const queue = new StatusQueue<string>({ pauseMs: restMs });
    for (let index = 0; index < 1_000; index++) {
      queue.markWritten(`${index}`, index * 10);
      queue.add(`${index}`, 'x', false, index * 10);
    }
    const wakings = new Set<number>();
    for (let now = queue.nextDueAt(0); now !== undefined; now = queue.nextDueAt(now)) wakings.add(now);
    expect(wakings.size).toBeLessThanOrEqual(41);
  });
});

it('the status queue ends all delays when another replica can have written statuses', () => {
  const queue = new StatusQueue<string>({ pauseMs: 10_000 });
  for (const key of ['a', 'b']) queue.markWritten(key, 0);
  queue.add('a', 'a', false, 1);
  queue.enqueueDelayed();
  queue.add('b', 'b', false, 1);
  expect(takeDue(queue, 1)).toEqual(['a', 'b']);
});

describe('a failed object in the status queue', () => {
  it('becomes due again when it changes or on a retry', () => {
    const queue = new StatusQueue<string>({ pauseMs: 0 });
    queue.addFailed('a', 'a');
    queue.addFailed('b', 'b');
    expect([queue.failedCount, queue.isDue(0)]).toEqual([2, false]);
    queue.add('b', 'new', false, 0);
    expect(takeDue(queue, 0)).toEqual(['new']);
    queue.retry(0);
    expect(takeDue(queue, 0)).toEqual(['a']);
    expect(queue.size).toBe(0);
  });

  it('is replaced by a newer item', () => {
    const queue = new StatusQueue<string>({ pauseMs: 0 });
    queue.add('a', 'newer', false, 0);
    queue.addFailed('a', 'older');
    expect(takeDue(queue, 0)).toEqual(['newer']);
    expect(queue.failedCount).toBe(0);
  });

  it('stays in the queue, like every due object, when a run is aborted', () => {
    const queue = new StatusQueue<string>({ pauseMs: 0 });
    queue.add('a', 'a', true, 0);
    queue.add('b', 'b', false, 0);
    queue.failDueItems(0);
    expect([queue.failedCount, queue.isDue(0)]).toEqual([2, false]);
  });
});

it('the status queue is limited, and counts dropped objects', () => {
  const queue = new StatusQueue<string>({ pauseMs: 0, maxItems: 2 });
  for (const key of ['a', 'b', 'c', 'a']) queue.add(key, key, false, 0);
  expect([queue.size, queue.droppedCount]).toEqual([2, 1]);
});

describe('namespaces in the status queue', () => {
  const namespaceOf = (item: string): string => item.split('/')[0]!;

  it('are served in rotation, regardless of urgency', () => {
    const queue = new StatusQueue<string>({ pauseMs: 0, namespaceOf });
    for (let i = 0; i < 5_000; i++) queue.add(`mallory/${i}`, `mallory/${i}`, true, 0);
    queue.add('bank/counts', 'bank/counts', false, 0);
    queue.add('bank/gateway', 'bank/gateway', true, 0);
    expect(takeDue(queue, 0).slice(0, 4)).toEqual(['mallory/0', 'bank/gateway', 'mallory/1', 'bank/counts']);
  });

  it('lose objects when the queue is full, starting with the namespace that has the most objects', () => {
    const queue = new StatusQueue<string>({ pauseMs: 10_000, maxItems: 4, namespaceOf });
    queue.addFailed('mallory/0', 'mallory/0');
    queue.markWritten('mallory/1', 0);
    for (const key of ['mallory/1', 'mallory/2', 'mallory/3', 'bank/a', 'bank/b']) queue.add(key, key, false, 1);
    expect([queue.size, queue.failedCount, queue.droppedCount]).toEqual([4, 1, 2]);
    expect(takeDue(queue, 20_000)).toEqual(['bank/a', 'mallory/1', 'bank/b']);
    expect(queue.size).toBe(1);
  });
});
