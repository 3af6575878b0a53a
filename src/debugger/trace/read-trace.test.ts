import { linkSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { headerWith } from '../../../test/fixtures/trace-header.ts';
import { ChartpilotError } from '../../runtime/errors.ts';
import { formatTraceLine, type TraceRecord } from '../../runtime/trace/trace.ts';
import { traceFile } from '../../runtime/trace/trace-file.ts';
import { openTrace } from './read-trace.ts';

const header = headerWith({ program: 'pilot-agent', pid: 7 });
const event = (seq: number, type = 'a.b'): TraceRecord => ({
  seq,
  t: seq,
  kind: 'event',
  from: 'a',
  to: 'b',
  event: { type },
});
const headerLine = formatTraceLine(header);
const eventLine = formatTraceLine(event(1));

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'chartpilot-trace-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

async function read(path: string): Promise<{ seqs: number[]; files: string[]; cutOff: readonly string[] }> {
  const openedTrace = await openTrace(path);
  const seqs: number[] = [];
  for await (const record of openedTrace.records) seqs.push(record.seq);
  return { seqs, files: openedTrace.files, cutOff: openedTrace.cutOff() };
}

async function refusal(path: string): Promise<ChartpilotError> {
  const error = await read(path).catch((cause: unknown) => cause);
  expect(error).toBeInstanceOf(ChartpilotError);
  return error as ChartpilotError;
}

describe('the reader of trace files', () => {
  test('returns the records as written, beginning with the rotated part', async () => {
    const path = join(folder, 'agent.trace');
    const sink = traceFile(path, { maxBytes: 2_000 });
    sink.write(header);
    for (let seq = 1; seq <= 40; seq++) {
      sink.write(event(seq, 'größer.geworden'));
      sink.flush();
    }
    sink.close();
    const { seqs, files } = await read(path);
    expect(files).toEqual([`${path}.1`, path]);
    expect(seqs.at(-1)).toBe(40);
    expect(seqs).toEqual(Array.from({ length: seqs.length }, (_, i) => 41 - seqs.length + i));
    expect(seqs.length).toBeGreaterThan(20);
  });

  test('ignores the rotated part of another run', async () => {
    file('t.1', formatTraceLine({ ...header, pid: 8 }) + eventLine);
    expect((await read(file('t', headerLine + eventLine))).seqs).toEqual([1]);
  });

  test('accepts an incomplete last line and reports it', async () => {
    const path = file('t', headerLine + eventLine + formatTraceLine(event(2)).slice(0, 30));
    expect(await read(path)).toEqual({ seqs: [1], files: [path], cutOff: [`${path}:3`] });
  });

  test('accepts a last line without a newline', async () => {
    const path = file('t', headerLine + eventLine.trimEnd());
    expect(await read(path)).toEqual({ seqs: [1], files: [path], cutOff: [] });
  });

  test('accepts two concatenated rotated parts', async () => {
    expect((await read(file('t', headerLine + eventLine + headerLine + formatTraceLine(event(2))))).seqs).toEqual([
      1, 2,
    ]);
  });

  test.each([
    ['', ':1: empty file'],
    ['hello\n', ':1: expected a trace header in the first line: the line is not valid JSON'],
    [eventLine, ':1: expected a trace header in the first line, got a record of kind event'],
    [
      formatTraceLine({ ...header, version: 99 }),
      ':1: expected a trace header in the first line: unsupported format version 99, supported are',
    ],
    [`${headerLine}{"kind"\n${eventLine}`, ':2: the line is not valid JSON'],
    [`${headerLine}[]\n`, ':2: unknown record kind undefined'],
    [`${headerLine}null\n`, ':2: the line is not a JSON object'],
    [
      `${headerLine}{"kind":"step","seq":1,"t":0,"actor":"a","on":"b","change":[null]}\n`,
      ":2: invalid field 'change' of the step record: [null]",
    ],
    [
      `${headerLine}{"kind":"effect","seq":1,"t":0,"actor":"a","effect":"b","cause":"1"}\n`,
      `:2: invalid field 'cause' of the effect record: "1"`,
    ],
    [`${headerLine}{"kind":"toString"}\n`, ':2: unknown record kind "toString"'],
    [
      `${headerLine}{"kind":"timer","seq":1,"t":0,"actor":"a"}\n`,
      ":2: invalid field 'timer' of the timer record: missing",
    ],
    [`${headerLine}{"kind":"timer","seq":"1","t":0}\n`, `:2: invalid field 'seq' of the timer record: "1"`],
    [
      `${headerLine}{"kind":"event","seq":1,"t":0,"from":"a","to":"b","event":{}}\n`,
      ":2: invalid field 'event' of the event record: {}",
    ],
    [
      `${headerLine}{"kind":"stop","seq":1,"t":0,"actor":"a","status":"x"}\n`,
      `:2: invalid field 'status' of the stop record: "x"`,
    ],
    [`${headerLine}${eventLine}${eventLine}`, ':3: records out of order: record 1 follows record 1'],
    [`${headerLine}${formatTraceLine({ ...header, pid: 9 })}`, ':2: second header: another run starts here'],
  ])('rejects an invalid trace with the line of the error: %j', async (text, message) => {
    const path = file('bad', text);
    const error = await refusal(path);
    expect(error.code).toBe('TRACE_INVALID');
    expect(error.message).toContain(path + message);
  });

  const root = { path: '', type: 'compound' };
  const leaf = { path: 'a', parent: 0, type: 'atomic' };
  const other = { path: 'b', parent: 0, type: 'atomic' };
  const go = { source: 1, targets: [2], kind: 'event', on: 'go' };

  const validMachine = { id: 'm', states: [root, leaf, other], transitions: [go] };

  function withMachine(machine: object): string {
    return file('t', formatTraceLine({ ...header, machines: [machine] as unknown as typeof header.machines }));
  }

  async function isRefused(machine: object): Promise<void> {
    const error = await refusal(withMachine(machine));
    expect(error.code).toBe('TRACE_INVALID');
    expect(error.message).toContain("invalid field 'machines' of the header record");
  }

  test('accepts only kinds of states and transitions that the format defines', async () => {
    expect((await read(withMachine(validMachine))).seqs).toEqual([]);
    const hostile = [
      { ...validMachine, states: [root, { ...leaf, type: 'atomic"><script>alert(2)</script>' }, other] },
      { ...validMachine, transitions: [{ ...go, kind: 'event" onload="alert(3)' }] },
    ];
    for (const machine of hostile) await isRefused(machine);
  });

  test('accepts only machines that list parents before children and whose transitions have existing targets', async () => {
    const brokenMachines = [
      { ...validMachine, states: [root, { ...leaf, parent: 2 }, { ...other, parent: 1 }] },
      { ...validMachine, states: [root, { ...leaf, parent: 1 }, other] },
      { ...validMachine, states: [{ ...root, parent: 0 }, leaf, other] },
      { ...validMachine, states: [root, { path: 'a', type: 'atomic' }, other] },
      { ...validMachine, states: [{ ...root, initial: 3 }, leaf, other] },
      { ...validMachine, transitions: [{ ...go, source: -1 }] },
      { ...validMachine, transitions: [{ ...go, targets: [0.5] }] },
    ];
    for (const machine of brokenMachines) await isRefused(machine);
  });

  test('accepts and reports an incomplete line in the middle, as left by a full disk', async () => {
    const halfLine = formatTraceLine(event(2)).slice(0, 30);
    const laterLine = formatTraceLine(event(7));
    const path = file('t', `${headerLine}${eventLine}${halfLine}\n\n${laterLine}${halfLine}\n`);
    expect(await read(path)).toEqual({ seqs: [1, 7], files: [path], cutOff: [`${path}:3`, `${path}:6`] });
  });

  test('rejects a line that is not the beginning of a record, even before missing records', async () => {
    for (const line of ['garbage', '  {', '<html>']) {
      const path = file('t', `${headerLine}${eventLine}${line}\n${formatTraceLine(event(7))}`);
      expect((await refusal(path)).message, line).toContain(`${path}:3: the line is not valid JSON`);
    }
    // A full disk can cut a line off after its first character.
    const path = file('t', `${headerLine}${eventLine}{\n${formatTraceLine(event(7))}`);
    expect(await read(path)).toEqual({ seqs: [1, 7], files: [path], cutOff: [`${path}:3`] });
  });

  test('rejects two consecutive incomplete lines', async () => {
    const path = file('t', `${headerLine}{"seq"\n{"seq"\n${formatTraceLine(event(7))}`);
    expect((await refusal(path)).message).toContain(`${path}:2: the line is not valid JSON`);
  });

  test.each([
    [
      'of an unknown format version',
      '{"kind":"header","version":99,"program":"pilot-agent","pid":7,"startedAt":"2026"}\n',
    ],
    ['that is empty', ''],
  ])('ignores a rotated part %s', async (_, text) => {
    file('t.1', text);
    expect((await read(file('t', headerLine + eventLine))).seqs).toEqual([1]);
  });

  test('returns the actors in the header of the oldest part', async () => {
    const livingActor = { actor: 'a', state: '', spawned: 1, spawnedAt: 0 };
    file('t.1', formatTraceLine({ ...header, actors: [livingActor] }) + formatTraceLine(event(3)));
    const path = file('t', headerLine + formatTraceLine(event(4)));
    const openedTrace = await openTrace(path);
    expect(openedTrace.header.actors).toEqual([livingActor]);
    for await (const _ of openedTrace.records);
  });

  test('reads no record twice if the file is rotated while being opened', async () => {
    const path = file('t', headerLine + eventLine);
    linkSync(path, `${path}.1`);
    // The same file has both names, as in the middle of a rotation.
    expect((await refusal(path)).message).toContain('record 1 follows record 1');
    setTimeout(() => {
      rmSync(path);
      file('t', headerLine + formatTraceLine(event(2)));
    }, 0);
    expect((await read(path)).seqs.at(-1)).toBe(2);
  });

  test('reports a missing file with its name', async () => {
    const error = await refusal(join(folder, 'nowhere'));
    expect(error.code).toBe('FILE_UNREADABLE');
    expect(error.fields).toEqual({ path: join(folder, 'nowhere') });
  });

  test('rejects a folder with FILE_UNREADABLE', async () => {
    expect((await refusal(folder)).code).toBe('FILE_UNREADABLE');
  });
});

test('the reader of trace files rejects a change with a path that is too deep for recursion', async () => {
  const record = (levels: number): string =>
    JSON.stringify({
      seq: 1,
      t: 1,
      kind: 'step',
      actor: 'a',
      on: 'e',
      change: [{ path: '/a'.repeat(levels), value: 1 }],
    });
  const path = file('deep-path.trace', `${headerLine}\n${record(20_000)}\n`.replaceAll('\n\n', '\n'));
  await expect(read(path)).rejects.toThrow(/deep-path\.trace:2: invalid field 'change' of the step record/);
  expect(await read(file('flat-path.trace', `${headerLine}\n${record(500)}\n`.replaceAll('\n\n', '\n')))).toMatchObject(
    {
      seqs: [1],
    },
  );
});

test.each([
  ['lists', (depth: number) => '['.repeat(depth) + ']'.repeat(depth)],
  ['objects', (depth: number) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`],
])('the reader of trace files rejects a record of deeply nested %s before processing it', async (_, nest) => {
  const record = (depth: number): string =>
    `{"seq":1,"t":1,"kind":"event","from":"a","to":"b","event":{"type":"a.b","x":${nest(depth)}}}`;
  const path = file('deep.trace', `${headerLine}\n${record(20_000)}\n`.replaceAll('\n\n', '\n'));
  await expect(read(path)).rejects.toThrow(/deep\.trace:2: the record is nested deeper than 500 levels/);
  expect(await read(file('flat.trace', `${headerLine}\n${record(400)}\n`.replaceAll('\n\n', '\n')))).toMatchObject({
    seqs: [1],
  });
});
