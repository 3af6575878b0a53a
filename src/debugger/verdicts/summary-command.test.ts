import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { headerWith } from '../../../test/fixtures/trace-header.ts';
import { formatTraceLine, type TraceBody } from '../../runtime/trace/trace.ts';
import { printSummary } from './summary-command.ts';

let path: string;
beforeEach(() => {
  path = join(mkdtempSync(join(tmpdir(), 'chartpilot-summary-')), 'a.trace');
});
afterEach(() => rmSync(join(path, '..'), { recursive: true }));

function write(bodies: readonly TraceBody[], rest = ''): void {
  const lines = bodies.map((body, i) => ({ seq: 100 + i, t: i * 250, ...body }));
  const header = headerWith({ startedAt: '2026-03-01T03:12:00.000Z' });
  writeFileSync(path, [header, ...lines].map(formatTraceLine).join('') + rest);
}

async function printed(format: 'text' | 'json', clock = false): Promise<{ out: string; error: string }> {
  const run = { out: '', error: '' };
  await printSummary(
    path,
    { format, clock },
    {
      out: (text) => {
        run.out += text;
      },
      error: (text) => {
        run.error += text;
      },
    },
  );
  return run;
}

const served: TraceBody[] = [
  { kind: 'spawn', actor: 'agent' },
  { kind: 'event', from: 'supervisor', to: 'status', event: { type: 'serving.began', name: 'epoch-0' }, cause: 100 },
];

test('a sentence is a line, with the number of its record, its time, and where the time went', async () => {
  write(served);
  expect((await printed('text')).out).toMatch(
    /^ +101 +250\.000 {2}✓ epoch 0 serves, 250 ms after the start\n +250 ms: 250 ms supervisor\n +101 .*• the trace breaks off/,
  );
  expect((await printed('text', true)).out).toContain('101 2026-03-01T03:12:00.250Z  ✓');
});

test('json names records by their numbers', async () => {
  write(served);
  const { verdicts } = JSON.parse((await printed('json')).out);
  expect(verdicts[0]).toMatchObject({ rule: 'restart', weight: 'fine', record: 101, range: [100, 101], root: 100 });
});

test('an empty trace comes to nothing; a half written line is told', async () => {
  write([], '{"seq":1,"t":0,"ki');
  expect(await printed('text')).toEqual({
    out: 'nothing to tell\n',
    error: expect.stringMatching(/a\.trace:2: the line is half written/),
  });
});
