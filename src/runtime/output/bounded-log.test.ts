import { expect, test } from 'vitest';
import { boundedLogger, longestLogText } from './bounded-log.ts';
import { createLogger } from './log.ts';

test('no line is as long as a stranger likes, in whatever scope and field', () => {
  const lines: string[] = [];
  const log = boundedLogger(createLogger({ write: (line) => lines.push(line) })).scope('ads');
  log.relay('envoy.output', 'warn', 'x'.repeat(1_000_000), { node: 'y'.repeat(1_000_000), port: 80 });
  expect(lines[0]!.length).toBeLessThan(2 * longestLogText + 200);
  expect(lines[0]).toContain('(1000000 characters)');
  expect(lines[0]).toContain('port=80');
});

test('a line in order is as it was', () => {
  const lines: string[] = [];
  boundedLogger(createLogger({ write: (line) => lines.push(line) })).info('client.connected', { node: 'a' });
  expect(lines[0]).toMatch(/\tclient connected {2}node=a\n$/);
});
