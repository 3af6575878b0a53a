/** Makes a test out of a trace: "copy as test" of the page, which runs it in a browser. */
import { formatTraceLine, type TraceHeader, type TraceRecord } from '../../runtime/trace/trace.ts';

export interface ReplayTestOptions {
  readonly header: TraceHeader;
  /** From the first one on. */
  readonly records: readonly TraceRecord[];
  /** The test's name, in words. */
  readonly name: string;
  /** Number of the last record to be replayed; all unless given. */
  readonly upTo?: number;
  /** What the file imports `replayLines` from. */
  readonly runtime?: string;
}

export interface ReplayTest {
  /** Text of a vitest file. */
  readonly source: string;
  /** A longer trace is not in it: this file has to lie beside it. */
  readonly trace?: { readonly name: string; readonly text: string };
}

/** A longer text is nothing to read in a test. */
const maxInlineBytes = 200_000;

/** A test that replays a trace up to a record and expects that the machines do what was recorded. */
export function formatReplayTest(options: ReplayTestOptions): ReplayTest {
  const { header, records, name, upTo = Number.POSITIVE_INFINITY, runtime = 'chartpilot/replay-test' } = options;
  // The replay has the machines themselves.
  const lines = [{ ...header, machines: [] }, ...records.filter(({ seq }) => seq <= upTo)].map((line) =>
    formatTraceLine(line).trimEnd(),
  );
  const text = `${lines.join('\n')}\n`;
  if (new TextEncoder().encode(text).length <= maxInlineBytes) {
    return { source: testSource(name, runtime, [], `[\n${lines.map((line) => `  ${quoted(line)},`).join('\n')}\n]`) };
  }
  const file = `${fileName(name)}.trace`;
  const read = `readFileSync(new URL(${quoted(`./${file}`)}, import.meta.url), 'utf8').split('\\n')`;
  const imports = ["import { readFileSync } from 'node:fs';"];
  return { source: testSource(name, runtime, imports, read), trace: { name: file, text } };
}

function testSource(name: string, runtime: string, imports: readonly string[], lines: string): string {
  return [
    ...imports,
    `import { replayLines } from ${quoted(runtime)};`,
    "import { expect, test } from 'vitest';",
    '',
    '// Requires: npm install --save-dev chartpilot xstate vitest',
    '// The lines of a trace. The test sends the external inputs to the machines again and compares their behaviour.',
    `const lines = ${lines};`,
    '',
    `test(${quoted(name)}, async () => {`,
    '  const { difference } = await replayLines(lines);',
    '  expect(difference).toBeUndefined();',
    '});',
    '',
  ].join('\n');
}

/** A string literal, which a closing script tag or a line separator cannot break. */
function quoted(text: string): string {
  const json = JSON.stringify(text)
    .replaceAll('<', '\\u003c')
    .replaceAll('\u2028', '\\u2028')
    .replaceAll('\u2029', '\\u2029');
  return `'${json.slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`;
}

function fileName(name: string): string {
  const words = name.toLowerCase().match(/[a-z0-9]+/g) ?? [];
  return words.slice(0, 8).join('-') || 'replay';
}
