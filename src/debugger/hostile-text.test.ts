import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { headerWith } from '../../test/fixtures/trace-header.ts';
import { ChartpilotError, explainError } from '../runtime/errors.ts';
import { formatTraceLine, type TraceBody, type TraceHeader } from '../runtime/trace/trace.ts';
import { checkTraces } from './check/check-command.ts';
import { formatFindings } from './findings/format-findings.ts';
import { replayTraces } from './replay/replay-command.ts';
import { formatReplay } from './replay/replay-report-text.ts';
import { drawDiagram } from './visualize/diagram-command.ts';

const folder = mkdtempSync(join(tmpdir(), 'chartpilot-hostile-'));
afterAll(() => rmSync(folder, { recursive: true }));

/**
 * Clears the screen, sets the window title, writes into the clipboard (also with a single C1 character), and forges a
 * line.
 */
const hostile = (text: string): string =>
  `${text}\u001b[2J\u001b]0;owned\u0007\u001b]52;c;AAAA\u0007\u009b31m\r\nforged`;
// biome-ignore lint/suspicious/noControlCharactersInRegex: the test searches for control characters.
const anyControl = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/;

function trace(name: string, fields: Partial<TraceHeader>, bodies: readonly TraceBody[] = []): string {
  const path = join(folder, name);
  const lines = [
    headerWith({ startedAt: hostile('2026'), ...fields }),
    ...bodies.map((body, i) => ({ seq: i + 1, t: i, ...body })),
  ];
  writeFileSync(path, lines.map(formatTraceLine).join(''));
  return path;
}

async function outputOf(
  command: (output: { out: (text: string) => void; error: (text: string) => void }) => unknown,
): Promise<string> {
  let text = '';
  const add = (chunk: string): void => {
    text += chunk;
  };
  await command({ out: add, error: add });
  return text;
}

test('chartpilot check prints no control characters of a trace', async () => {
  const diagrams = join(folder, 'diagrams');
  mkdirSync(diagrams, { recursive: true });
  writeFileSync(
    join(diagrams, 'greet.mmd'),
    'sequenceDiagram\nparticipant a\nparticipant b\na->>b: b.greet\nb->>a: b.greeted\n',
  );
  const event = (from: string, to: string, type: string): TraceBody => ({ kind: 'event', from, to, event: { type } });
  const path = trace('check', { program: hostile('world'), omits: [hostile('x')] }, [
    event('a', 'b', 'b.greet'),
    event('a', 'b', hostile('b.greet')),
    event(hostile('c'), 'b', 'b.greet'),
  ]);
  for (const format of ['text', 'mermaid'] as const) {
    const text = await outputOf((output) => checkTraces([path], { format, diagrams }, output));
    expect(text).toContain('world');
    expect(text).not.toMatch(anyControl);
    expect(text).not.toMatch(/^forged/m);
  }
  // The package has no diagrams of this program, and the error contains the program name.
  const refusalText = await outputOf((output) => checkTraces([path], { format: 'text' }, output));
  expect(refusalText).toContain('world');
  expect(refusalText).not.toMatch(anyControl);
});

test('chartpilot replay prints no control characters of a trace', async () => {
  const actor = hostile('a');
  const path = trace('replay', { program: hostile('limits') }, [
    { kind: 'spawn', actor, machine: 'start-limiter', input: { burst: 1, refillMs: 1_000 } },
  ]);
  const text = await outputOf((output) => replayTraces([path], { machine: ['start-limiter'], format: 'text' }, output));
  expect(text).toContain('limits');
  expect(text).not.toMatch(anyControl);
  const recordedEffect = { seq: 1, t: 1, kind: 'effect', actor, effect: 'x', params: { a: '\u009b1m' } } as const;
  const difference = {
    seq: 1,
    actor,
    recorded: recordedEffect,
    replayed: { ...recordedEffect, params: 1 },
    before: [],
    field: '/params',
  };
  const report = formatReplay({
    records: 1,
    compared: 1,
    warnings: [hostile('w')],
    difference,
  } as unknown as Parameters<typeof formatReplay>[0]);
  expect(report).toContain('differs from the recording');
  expect(report).not.toMatch(anyControl);
  expect(report).not.toMatch(/^forged/m);
});

test('summaries, charts and errors contain no control characters of a trace', async () => {
  const finding = { index: 0, weight: 'bad', sentence: hostile('bad') } as Parameters<typeof formatFindings>[0][number];
  const record = { seq: 1, t: 1, kind: 'timer', actor: 'a', timer: 'b' } as const;
  const lines = formatFindings([finding], [{ rule: 'r', reason: hostile('why') }], [record], () => '1');
  expect(lines.join('\n')).not.toMatch(anyControl);
  expect(lines).toHaveLength(2);

  const states = [{ path: '', type: 'atomic', description: hostile('d') }] as const;
  const transitions = [{ source: 0, targets: [0], kind: 'event', on: hostile('go') }] as const;
  const from = trace('diagram', { machines: [{ id: hostile('m'), states, transitions }] });
  expect(await outputOf((output) => drawDiagram(undefined, { format: 'mermaid', from }, output))).not.toMatch(
    anyControl,
  );
  for (const format of ['mermaid', 'table'] as const) {
    const text = await outputOf((output) => drawDiagram(hostile('m'), { format, from }, output));
    expect(text).toContain('go');
    expect(text).not.toMatch(anyControl);
  }

  const error = new ChartpilotError('TRACE_INVALID', hostile('x'), { hint: hostile('y') });
  expect(explainError(error)).toContain('→ y');
  expect(explainError(error)).not.toMatch(anyControl);
  expect(explainError(new Error(hostile('z')))).not.toMatch(anyControl);
});
