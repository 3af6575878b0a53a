/** The commands and the page read a trace of each version of the format, as programs of that version wrote them. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { openTrace, readRecords } from '../../../src/debugger/trace/read-trace.ts';
import { type TraceRecord, traceVersion } from '../../../src/runtime/trace/trace.ts';
import { TraceParser } from './incoming-trace.ts';
import { Lanes } from './lanes.ts';

const folder = join(import.meta.dirname, '../../../test/fixtures/traces-of-versions');

/** Parses a file in the same way as the page. */
function streamed(file: string): { readonly stream: TraceParser; readonly records: readonly TraceRecord[] } {
  const stream = new TraceParser();
  stream.push(readFileSync(join(folder, file), 'utf8'));
  return { stream, ...stream.read(() => true) };
}

function lanesOf(file: string): Lanes {
  const { stream, records } = streamed(file);
  const lanes = new Lanes(stream.header!);
  for (const [index, record] of records.entries()) lanes.addRecord(record, index);
  return lanes;
}

test('a trace of each version is stored', () => {
  const versions = readdirSync(folder).map((file) => Number(/^version-(\d+)/.exec(file)?.[1]));
  expect([...new Set(versions)].sort()).toEqual(Array.from({ length: traceVersion }, (_, i) => i + 1));
});

describe.each(readdirSync(folder))('the stored trace %s', (file) => {
  const lines = readFileSync(join(folder, file), 'utf8').trimEnd().split('\n').length;

  test('is read completely, and converted to the current version', async () => {
    const openedTrace = await openTrace(join(folder, file));
    expect(openedTrace.header.version).toBe(traceVersion);
    const { records } = await readRecords(openedTrace.records);
    expect(records).toHaveLength(lines - 1);
    expect(streamed(file).records).toEqual(records);
    for (const record of records) if (record.kind === 'transition') expect(record.on).toEqual(expect.any(String));
  });
});

test('the lanes of an agent of version 2 are the same as in that version', () => {
  const { lanes } = lanesOf('version-2.trace');
  expect(lanes.map(({ name }) => name)).toEqual(['program', 'epoch-0', 'epoch-1']);
  expect(lanes[0]!.marks.map(({ kind }) => kind)).toEqual(['change', 'restart', 'change', 'restart', 'signal']);
  expect(lanes[1]!.spans.map(({ phase }) => phase)).toEqual(['starting', 'live', 'draining']);
  expect(lanes[2]!.spans.map(({ phase }) => phase)).toEqual(['starting', 'live', 'draining', 'ending']);
});

test('the lanes of a control plane of version 2 are the same as in that version', () => {
  const { lanes } = lanesOf('version-2-discovery.trace');
  expect(lanes.map(({ name }) => name)).toEqual(['sources', 'pushes', 'connections']);
  expect(lanes[1]!.spans.map(({ phase }) => phase)).toContain('building');
  expect(lanes[1]!.marks.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['request', 'push']));
  expect(lanes[2]!.counts.at(-1)?.n).toBe(2);
});

test('a trace of version 1, whose header has no machines, has a lane for each actor', () => {
  const { lanes } = lanesOf('version-1.trace');
  const epoch = lanes.find(({ name }) => name === 'epoch-0');
  expect(epoch?.spans.map(({ phase }) => phase)).toContain('live');
  expect(lanes.map(({ name }) => name)).toContain('supervisor');
});

test.each([traceVersion + 1, 0, 1.5, -1])('a trace of version %d is rejected with a hint', (version) => {
  const stream = new TraceParser();
  stream.push(`{"kind":"header","version":${version},"program":"x","pid":1,"startedAt":""}\n`);
  expect(() => stream.read(() => true)).toThrow(/version .*use the chartpilot release/);
});
