import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { explainError, messageOf } from './errors.ts';

const connectToClosedPort = (): Promise<unknown> =>
  new Promise((resolve) => connect({ host: '127.0.0.1', port: 1 }).once('error', resolve));

test('a refused connection is reported in one line without a stack', async () => {
  expect(explainError(await connectToClosedPort())).toBe('connect ECONNREFUSED 127.0.0.1:1');
});

test('an error caused by a refused connection is reported with both messages, without a stack', async () => {
  const wrapped = new TypeError('fetch failed', { cause: await connectToClosedPort() });
  expect(explainError(wrapped)).toBe('fetch failed: connect ECONNREFUSED 127.0.0.1:1');
  const located = new Error('server a: connect ECONNREFUSED 127.0.0.1:1', { cause: wrapped.cause });
  expect(explainError(located)).toBe('server a: connect ECONNREFUSED 127.0.0.1:1');
});

test('attempts at several addresses are reported with each address', async () => {
  const attempts = [await connectToClosedPort(), await connectToClosedPort()] as Error[];
  const error = Object.assign(new AggregateError(attempts), { code: 'ECONNREFUSED' });
  expect(messageOf(error)).toBe('connect ECONNREFUSED 127.0.0.1:1; connect ECONNREFUSED 127.0.0.1:1');
  expect(explainError(error)).not.toMatch(/\n/);
});

test('an error of the program is reported with its stack, even if its causes form a cycle', () => {
  expect(explainError(new Error('a bug'))).toMatch(/^Error: a bug\n +at /);
  const circle = new Error('a circle');
  circle.cause = circle;
  expect(explainError(circle)).toMatch(/^Error: a circle\n/);
});
