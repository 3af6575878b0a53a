import { expect, test } from 'vitest';
import { boundedLogger, maxLogText } from './bounded-log.ts';
import { createLogger } from './log.ts';

test('a log line has a limited length for any scope and field that a client sends', () => {
  const lines: string[] = [];
  const log = boundedLogger(createLogger({ write: (line) => lines.push(line) })).scope('ads');
  log.relay('envoy.output', 'warn', 'x'.repeat(1_000_000), { node: 'y'.repeat(1_000_000), port: 80 });
  expect(lines[0]!.length).toBeLessThan(2 * maxLogText + 200);
  expect(lines[0]).toContain('(1000000 characters)');
  expect(lines[0]).toContain('port=80');
});

test('a log line within the limits is unchanged', () => {
  const lines: string[] = [];
  boundedLogger(createLogger({ write: (line) => lines.push(line) })).info('client.connected', { node: 'a' });
  expect(lines[0]).toMatch(/\tclient connected {2}node=a\n$/);
});
