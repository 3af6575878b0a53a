import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { eventBody } from '../../../test/fixtures/event-body.ts';
import { headerWith } from '../../../test/fixtures/trace-header.ts';
import { ChartpilotError } from '../../runtime/errors.ts';
import { formatTraceLine, type TraceBody, type TraceRecord } from '../../runtime/trace/trace.ts';
import { printTrace, type TraceCommandOptions } from './trace-command.ts';

const header = headerWith({ program: 'pilot-agent', pid: 7, startedAt: '2026-03-01T03:12:00.000Z' });
const bodies: TraceBody[] = [
  /* 1 */ { kind: 'spawn', actor: 'supervisor', machine: 'supervisor' },
  /* 2 */ eventBody('outside', 'supervisor', 'supervisor.start'),
  /* 3 */ { kind: 'spawn', actor: 'epoch-0', parent: 'supervisor', machine: 'epoch', cause: 2 },
  /* 4 */ { kind: 'spawn', actor: 'epoch-0/process', parent: 'epoch-0', cause: 3 },
  /* 5 */ { kind: 'timer-started', actor: 'epoch-0', timer: 'liveLimit', state: 'starting', ms: 100, cause: 3 },
  /* 6 */ { kind: 'timer', actor: 'epoch-0', timer: 'liveLimit' },
  /* 7 */ eventBody('epoch-0', 'epoch-0/process', 'process.kill', 6),
  /* 8 */ eventBody('epoch-0/process', 'epoch-0', 'process.exited'),
  /* 9 */ { kind: 'stop', actor: 'epoch-0/process', status: 'done' },
  /* 10 */ eventBody('epoch-10', 'supervisor', 'epoch.live'),
];

let path: string;
beforeEach(() => {
  path = join(mkdtempSync(join(tmpdir(), 'chartpilot-print-')), 'a.trace');
  writeFileSync(
    path,
    [header, ...bodies.map((body, i) => ({ seq: i + 1, t: i, ...body }))].map(formatTraceLine).join(''),
  );
});
afterEach(() => rmSync(join(path, '..'), { recursive: true }));

async function printedTrace(options: Partial<TraceCommandOptions> = {}): Promise<{ out: string; error: string }> {
  const run = { out: '', error: '' };
  await printTrace(
    path,
    { format: 'text', ...options },
    {
      out: async (text) => {
        // Simulates a slow reader.
        await new Promise(setImmediate);
        run.out += text;
      },
      error: (text) => {
        run.error += text;
      },
    },
  );
  return run;
}

async function shownSeqs(options: Partial<TraceCommandOptions>): Promise<number[]> {
  return (await printedTrace(options)).out
    .split('\n')
    .slice(0, -1)
    .map((line) => Number(line.slice(0, 7)));
}

describe('chartpilot trace', () => {
  test('prints one line per record', async () => {
    expect(await shownSeqs({})).toEqual(bodies.map((_, i) => i + 1));
  });

  test('prints the records of the given actors and their effects', async () => {
    expect(await shownSeqs({ actor: ['epoch-0'] })).toEqual([3, 4, 5, 6, 7, 8, 9]);
    expect(await shownSeqs({ actor: ['epoch-0/process'] })).toEqual([4, 7, 8, 9]);
    expect(await shownSeqs({ actor: ['epoch-N'] })).toEqual([3, 4, 5, 6, 7, 8, 9, 10]);
    expect(await shownSeqs({ actor: ['epoch-10', 'outside'] })).toEqual([2, 10]);
    expect(await shownSeqs({ actor: ['nobody'] })).toEqual([]);
  });

  test('prints the records in a range and of the given kinds', async () => {
    expect(await shownSeqs({ from: 3, to: 5 })).toEqual([3, 4, 5]);
    expect(await shownSeqs({ from: 9, to: 99 })).toEqual([9, 10]);
    expect(await shownSeqs({ kind: ['timer', 'stop'] })).toEqual([6, 9]);
    expect(await shownSeqs({ kind: ['event'], actor: ['supervisor'], from: 3 })).toEqual([10]);
  });

  test('prints wall-clock times on request', async () => {
    expect((await printedTrace({ from: 2, to: 2, clock: true })).out).toBe(
      '      2 2026-03-01T03:12:00.001Z  outside → supervisor: supervisor.start\n',
    );
  });

  test('prints JSON as stored in the file', async () => {
    const lines = (await printedTrace({ format: 'json', kind: ['timer', 'stop'] })).out.trim().split('\n');
    expect(lines.map((line) => (JSON.parse(line) as TraceRecord).seq)).toEqual([6, 9]);
  });

  test('warns of an incomplete line', async () => {
    writeFileSync(path, '{"seq":11,', { flag: 'a' });
    const { out, error } = await printedTrace();
    expect(out.trimEnd().split('\n')).toHaveLength(10);
    expect(error).toBe(`${path}:12: truncated line, skipped\n`);
  });
});

test('chartpilot trace reports that no record matches the filters', async () => {
  const { out, error } = await printedTrace({ actor: ['nobody'] });
  expect({ out, error }).toEqual({ out: '', error: `${path}: no matching records\n` });
});

describe('chartpilot trace --why', () => {
  test('prints the causes of a record back to the first one', async () => {
    const { out } = await printedTrace({ why: 8 });
    expect(out).toBe(
      [
        '      8         7.000  epoch-0/process → epoch-0: process.exited',
        '      7         6.000  ← output of effect epoch-0/process, last event that it received: epoch-0 → epoch-0/process: process.kill',
        '      6         5.000  ← epoch-0: timer liveLimit elapsed',
        '      5         4.000  ← timer started by: epoch-0: timer liveLimit started: 100 ms in [starting]',
        '      3         2.000  ← supervisor → epoch-0: spawn (machine epoch)',
        '      2         1.000  ← outside → supervisor: supervisor.start',
        '                       Sent from outside the program.',
        '',
      ].join('\n'),
    );
  });

  test('prints the causes as JSON with --format json', async () => {
    const { record, causes, origin } = JSON.parse((await printedTrace({ why: 9, format: 'json' })).out);
    expect(record.seq).toBe(9);
    expect(causes.map((link: { how: string; record: TraceRecord }) => `${link.how} ${link.record.seq}`)).toEqual([
      'received 7',
      'cause 6',
      'timer-started 5',
      'cause 3',
      'cause 2',
    ]);
    expect(origin).toBe('outside');
  });

  test.each([
    [{ why: 0 }, { path: '--why', got: '0' }, 'starts with 1'],
    [{ why: 99 }, { path: '--why', got: '99' }, 'has 1 to 10'],
    [{ from: 5, to: 4 }, { path: '--from', got: '5' }, ''],
    [{ actor: ['epoch-N-1'] }, { path: '--actor', got: 'epoch-N-1' }, ''],
  ])('rejects the invalid flag %j', async (options, fields, detail) => {
    const error = await printedTrace(options).catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(ChartpilotError);
    expect((error as ChartpilotError).code).toBe('FLAG_INVALID');
    expect((error as ChartpilotError).fields).toMatchObject(fields);
    expect((error as Error).message).toContain(detail);
  });
});
