import { expect, it } from 'vitest';
import { JsonLines } from './json-lines.ts';

it.each([
  [
    '{"type":"ADDED","secret"\0\0',
    '26 bytes of 2 chunks; begins as an object, does not end as one; 2 zeros, 0 that are no UTF-8',
  ],
  ['secret page not found', '21 bytes of 2 chunks; does not begin as an object, does not end as one; 0 zeros'],
])('a line that is no JSON is told by its shape, and nothing of it is repeated: %j', (line, shape) => {
  const lines = new JsonLines(() => {});
  lines.push(Buffer.from(line.slice(0, 9)));
  let message = '';
  try {
    lines.push(Buffer.from(`${line.slice(9)}\n`));
  } catch (error) {
    message = (error as Error).message;
  }
  expect(message).toContain(`a line of the watch is no JSON (${shape}`);
  expect(message).not.toContain('secret');
});
