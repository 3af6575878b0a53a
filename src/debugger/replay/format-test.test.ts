import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { headerWith } from '../../../test/fixtures/trace-header.ts';
import type { TraceRecord } from '../../runtime/trace/trace.ts';
import { formatReplayTest } from './format-test.ts';

const header = headerWith({
  program: 'pilot-agent',
  level: 'full',
  startedAt: '2026-11-21T03:12:00.000Z',
  machines: [{ id: 'agent', states: [], transitions: [] }],
});
const texts = ['plain', `it's "quoted" \\ and \\"both\\"`, '</script> \u2028 é', 'two\nlines'];
const records = texts.map(
  (text, i): TraceRecord => ({ seq: i + 1, t: i, kind: 'log', actor: 'a', level: 'info', text }),
);

/** Runs the text of a test file with a runtime that records its arguments. */
async function run(source: string): Promise<{ name: string; lines: string[] }> {
  const body = source.replaceAll(/^import .*$/gm, '').replaceAll('import.meta.url', "'file:///'");
  let name = '';
  let testBody = async (): Promise<void> => {};
  const executedLines: string[][] = [];
  const parameters = ['test', 'expect', 'replayLines', 'readFileSync'];
  const file = new Function(...parameters, body) as (...given: unknown[]) => void;
  file(
    (title: string, testFunction: typeof testBody) => {
      name = title;
      testBody = testFunction;
    },
    expect,
    async (lines: string[]) => {
      executedLines.push(lines);
      return {};
    },
  );
  await testBody();
  return { name, lines: executedLines[0]! };
}

test('a generated test replays the lines of the trace unchanged', async () => {
  const { source, trace } = formatReplayTest({ header, records, name: "a restart's story" });
  expect(trace).toBeUndefined();
  expect(source).toContain("import { replayLines } from 'chartpilot/replay-test';");
  const { name, lines } = await run(source);
  expect(name).toBe("a restart's story");
  const [first, ...otherLines] = lines.map((line) => JSON.parse(line) as unknown);
  // The runtime of the test contains the machines.
  expect(first).toEqual({ ...header, machines: [] });
  expect(otherLines).toEqual(records);
  // The source may be embedded in a page.
  expect(source).not.toContain('</script>');
});

test('a generated test replays the trace up to the chosen record', async () => {
  const { lines } = await run(formatReplayTest({ header, records, name: 'x', upTo: 2 }).source);
  expect(lines).toHaveLength(3);
});

test('a generated test names a separate file for a long trace', () => {
  const text = 'x'.repeat(250_000);
  const longRecords = [{ ...records[0]!, text }] as TraceRecord[];
  const { source, trace } = formatReplayTest({ header, records: longRecords, name: 'A restart, at 03:12!' });
  expect(trace?.name).toBe('a-restart-at-03-12.trace');
  expect(source).toContain("readFileSync(new URL('./a-restart-at-03-12.trace', import.meta.url), 'utf8')");
  expect(source).not.toContain(text);
  expect(trace?.text.split('\n').map((line) => line.length > 0)).toEqual([true, true, false]);
});

test('the test generator uses no Node API, so that the page can import it', () => {
  const source = readFileSync(join(import.meta.dirname, 'format-test.ts'), 'utf8');
  expect([...source.matchAll(/^import (type )?.* from '(.*)';$/gm)].map(([, , from]) => from)).toEqual([
    '../../runtime/trace/trace.ts',
  ]);
});
