import { formatTraceLine, type TraceHeader, type TraceRecord } from '../../runtime/trace/trace.ts';

export interface ReplayTestOptions {
  readonly header: TraceHeader;
  /** Must start with the first record. */
  readonly records: readonly TraceRecord[];
  readonly name: string;
  /** Number of the last record to replay. */
  readonly upTo?: number;
  /** The module that exports `replayLines`. */
  readonly runtime?: string;
}

export interface ReplayTest {
  readonly source: string;
  /** A separate file for a long trace, which must be in the same folder. */
  readonly trace?: { readonly name: string; readonly text: string };
}

/** Longer text is not readable in a test. */
const maxInlineBytes = 200_000;

/** The test replays a trace up to a record and expects that the machines behave as recorded. */
export function formatReplayTest(options: ReplayTestOptions): ReplayTest {
  const { header, records, name, upTo = Number.POSITIVE_INFINITY, runtime = 'chartpilot/replay-test' } = options;
  // Omits the machines, because the runtime of the test contains them.
  const lines = [{ ...header, machines: [] }, ...records.filter(({ seq }) => seq <= upTo)].map((line) =>
    formatTraceLine(line).trimEnd(),
  );
  const text = `${lines.join('\n')}\n`;
  if (new TextEncoder().encode(text).length <= maxInlineBytes) {
    return {
      source: testFileSource(name, runtime, [], `[\n${lines.map((line) => `  ${quoteText(line)},`).join('\n')}\n]`),
    };
  }
  const file = `${fileName(name)}.trace`;
  const readExpression = `readFileSync(new URL(${quoteText(`./${file}`)}, import.meta.url), 'utf8').split('\\n')`;
  const imports = ["import { readFileSync } from 'node:fs';"];
  return { source: testFileSource(name, runtime, imports, readExpression), trace: { name: file, text } };
}

function testFileSource(name: string, runtime: string, imports: readonly string[], lines: string): string {
  return [
    ...imports,
    `import { replayLines } from ${quoteText(runtime)};`,
    "import { expect, test } from 'vitest';",
    '',
    '// Requires: npm install --save-dev chartpilot xstate vitest',
    '// The lines of a trace. The test sends the external inputs to the machines again and compares their behaviour.',
    `const lines = ${lines};`,
    '',
    `test(${quoteText(name)}, async () => {`,
    '  const { difference } = await replayLines(lines);',
    '  expect(difference).toBeUndefined();',
    '});',
    '',
  ].join('\n');
}

/** A string literal without closing script tags and line separators. */
function quoteText(text: string): string {
  const json = JSON.stringify(text)
    .replaceAll('<', '\\u003c')
    .replaceAll('\u2028', '\\u2028')
    .replaceAll('\u2029', '\\u2029');
  return `'${json.slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`;
}

function fileName(name: string): string {
  const titleWords = name.toLowerCase().match(/[a-z0-9]+/g) ?? [];
  return titleWords.slice(0, 8).join('-') || 'replay';
}
