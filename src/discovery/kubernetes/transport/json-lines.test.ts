import { expect, it } from 'vitest';
import { JsonLines } from './json-lines.ts';

it.each([
  [
    '{"type":"ADDED","secret"\0\0',
    '26 bytes in 2 chunks; begins with {, does not end with }; 2 NUL characters, 0 invalid UTF-8 sequences',
  ],
  ['secret page not found', '21 bytes in 2 chunks; does not begin with {, does not end with }; 0 NUL characters'],
])('the error for an invalid JSON line describes the line without repeating it: %j', (line, shape) => {
  const lines = new JsonLines(() => {});
  lines.push(Buffer.from(line.slice(0, 9)));
  let message = '';
  try {
    lines.push(Buffer.from(`${line.slice(9)}\n`));
  } catch (error) {
    message = (error as Error).message;
  }
  expect(message).toContain(`a line of the watch is not valid JSON (${shape}`);
  expect(message).not.toContain('secret');
});
