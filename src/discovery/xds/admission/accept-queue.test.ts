import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { uncaughtErrors } from '../../../../test/harness/uncaught-errors.ts';
import { AcceptQueue, acceptQueueLimits } from './accept-queue.ts';

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

class Connection extends EventEmitter {
  destroyed = false;
  destroy(): void {
    this.destroyed = true;
    this.emit('close');
  }
}

/** @param randoms results of the random source; the last one repeats */
function createQueue(limits: Partial<ConstructorParameters<typeof AcceptQueue>[0]> = {}, randoms = [0]) {
  const line = new AcceptQueue<Connection>(
    { ...acceptQueueLimits, spacingMs: 20, maxWaiting: 3, maxTotal: 100, ...limits },
    () => (randoms.length > 1 ? randoms.shift()! : randoms[0]!),
  );
  const startedNames: string[] = [];
  const add = (name: string, group = 'here', onStart = () => void startedNames.push(name)) => {
    const connection = new Connection();
    const isQueued = line.add(group, connection, onStart);
    return { connection, hasRoom: isQueued };
  };
  return { line, begun: startedNames, add };
}

test('AcceptQueue accepts one connection per address at a time, oldest first', () => {
  const { begun, add } = createQueue();
  for (const name of ['a', 'b', 'c']) add(name);
  add('x', 'elsewhere');
  expect(begun).toEqual([]);
  vi.advanceTimersByTime(20);
  expect(begun).toEqual(['a', 'x']);
  vi.advanceTimersByTime(40);
  expect(begun).toEqual(['a', 'x', 'b', 'c']);
});

test('AcceptQueue reduces rate and queue length of an address to a quarter for 5 s after a busy connection', () => {
  const { line, begun, add } = createQueue({ maxWaiting: 8 });
  line.throttle('busy');
  const busyConnections = Array.from({ length: 4 }, (_, i) => add(`busy ${i}`, 'busy').connection);
  for (let i = 0; i < 8; i++) add(`quiet ${i}`, 'quiet');
  expect(busyConnections.filter(({ destroyed }) => !destroyed)).toHaveLength(2);
  vi.advanceTimersByTime(80);
  expect(begun.filter((name) => name.startsWith('quiet'))).toHaveLength(4);
  expect(begun.filter((name) => name.startsWith('busy'))).toHaveLength(1);
  vi.advanceTimersByTime(5_000);
  for (let i = 4; i < 8; i++) expect(add(`busy ${i}`, 'busy').hasRoom).toBe(true);
  vi.advanceTimersByTime(80);
  expect(begun.filter((name) => name.startsWith('busy'))).toHaveLength(6);
});

test('AcceptQueue skips closed connections', () => {
  const { begun, add } = createQueue();
  add('a').connection.destroy();
  add('b');
  vi.advanceTimersByTime(20);
  expect(begun).toEqual(['b']);
});

test('AcceptQueue closes a random connection when its queue is full', () => {
  const { begun, add } = createQueue({}, [0.3, 0.99]);
  const waitingEntries = ['a', 'b', 'c', 'd', 'e'].map((name) => add(name));
  expect(waitingEntries.map(({ connection }) => connection.destroyed)).toEqual([false, true, false, false, true]);
  expect(waitingEntries.map(({ hasRoom: isQueued }) => isQueued)).toEqual([true, true, true, true, false]);
  vi.advanceTimersByTime(100);
  expect(begun).toEqual(['a', 'c', 'd']);
});

test('AcceptQueue limits the total number of waiting connections', () => {
  const { add } = createQueue({ maxTotal: 2 });
  expect(['a', 'b', 'c'].map((name) => add(name, `of ${name}`).hasRoom)).toEqual([true, true, false]);
});

test('AcceptQueue closes waiting connections when it is cleared', () => {
  const { line, begun, add } = createQueue();
  const { connection } = add('a');
  line.clear();
  vi.advanceTimersByTime(100);
  expect([connection.destroyed, begun]).toEqual([true, []]);
  expect(add('b').hasRoom).toBe(true);
  vi.advanceTimersByTime(20);
  expect(begun).toEqual(['b']);
});

test('AcceptQueue reports an error in the setup of a connection, and accepts further connections', async () => {
  const caughtErrors = uncaughtErrors();
  const { begun, add } = createQueue();
  add('broken', 'here', () => {
    throw new Error('a bug');
  });
  add('a');
  add('x', 'elsewhere');
  vi.advanceTimersByTime(20);
  expect(begun).toEqual(['x']);
  vi.advanceTimersByTime(20);
  expect(begun).toEqual(['x', 'a']);
  await Promise.resolve();
  expect(caughtErrors.map(({ error }) => String(error))).toEqual(['Error: a bug']);
});
