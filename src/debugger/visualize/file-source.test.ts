import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { event, header, traceText } from '../../../test/fixtures/traces.ts';
import { formatTraceLine } from '../../runtime/trace/trace.ts';
import { traceFile } from '../../runtime/trace/trace-file.ts';
import { fileSource } from './file-source.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'chartpilot-source-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

function file(content: string): string {
  const path = join(folder, 'agent.trace');
  writeFileSync(path, content);
  return path;
}

async function lines(path: string): Promise<string[]> {
  return (await text(await fileSource(path).read({ follow: true }))).split('\n').slice(0, -1);
}

test('fileSource returns the unchanged text of a trace file', async () => {
  const path = file(traceText(5));
  expect(`${(await lines(path)).join('\n')}\n`).toBe(traceText(5));
  expect(fileSource(path)).toMatchObject({ name: 'agent.trace', kind: 'file', place: path });
});

test('fileSource drops an incomplete last line', async () => {
  const path = file(`${traceText(2)}${formatTraceLine(event(3)).slice(0, 20)}`);
  expect(`${(await lines(path)).join('\n')}\n`).toBe(traceText(2));
});

test('fileSource adds the missing newline of the last line', async () => {
  expect(`${(await lines(file(traceText(2).trimEnd()))).join('\n')}\n`).toBe(traceText(2));
});

test('fileSource returns a line that is longer than a read buffer in one piece', async () => {
  const longRecord = { ...event(1), event: { type: 'light.changed', text: 'ä'.repeat(400_000) } };
  const path = file(formatTraceLine(header) + formatTraceLine(longRecord) + formatTraceLine(event(2)));
  const parsed = (await lines(path)).map((line) => JSON.parse(line) as unknown);
  expect(parsed).toEqual([header, longRecord, event(2)]);
});

test('fileSource begins with the rotated part and its header', async () => {
  const path = join(folder, 'agent.trace');
  const sink = traceFile(path, { maxBytes: 2_000 });
  sink.write(header);
  sink.write({ kind: 'spawn', seq: 1, t: 1, actor: 'light' });
  for (let seq = 2; seq <= 40; seq++) {
    sink.write(event(seq));
    sink.flush();
  }
  sink.close();
  const read = (await lines(path)).map(
    (line) => JSON.parse(line) as { kind: string; seq?: number; actors?: unknown[] },
  );
  expect(read[0]?.kind).toBe('header');
  expect(await fileSource(path).header()).toEqual(read[0]);
  const seqs = read.flatMap(({ seq }) => seq ?? []);
  expect(seqs).toEqual(Array.from(seqs, (_, i) => 41 - seqs.length + i));
  expect(seqs.length).toBeGreaterThan(15);
});

test('fileSource rejects an invalid trace when the file is opened', async () => {
  await expect(fileSource(file('hello\n')).read({ follow: true })).rejects.toMatchObject({
    code: 'TRACE_INVALID',
    fields: { line: 1 },
  });
  await expect(fileSource(join(folder, 'absent')).header()).rejects.toMatchObject({ code: 'FILE_UNREADABLE' });
});
