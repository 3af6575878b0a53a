import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { assign, createActor, setup } from 'xstate';
import { startLimiterMachine } from '../../../machines/agent/envoy/start-limiter.machine.ts';
import { createRecorder } from '../../runtime/trace/recorder.ts';
import type { TraceRecord } from '../../runtime/trace/trace.ts';
import { traceFile } from '../../runtime/trace/trace-file.ts';
import { TraceState } from '../../runtime/trace/trace-state.ts';
import { openTrace } from '../trace/read-trace.ts';
import { replay } from './replay.ts';
import { type ReplayCommandOptions, replayTraces } from './replay-command.ts';

const folder = mkdtempSync(join(tmpdir(), 'chartpilot-replay-command-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** The trace of a program with one machine, which is started and stopped. */
function writeTrace(name: string, tokens = 3): string {
  const path = join(folder, name);
  const recorder = createRecorder({ program: 'limits', sinks: [traceFile(path)] });
  const input = { burst: tokens, refillMs: 1_000 };
  createActor(startLimiterMachine, { id: 'limiter', input, inspect: recorder.inspect }).start().stop();
  recorder.close();
  return path;
}

async function runReplay(
  traces: string[],
  options: Partial<ReplayCommandOptions> = {},
): Promise<{ code: number; out: string; error: string }> {
  const printedOutput = { out: '', error: '' };
  const output = {
    out: (text: string) => {
      printedOutput.out += text;
    },
    error: (text: string) => {
      printedOutput.error += text;
    },
  };
  const code = await replayTraces(traces, { machine: ['start-limiter'], format: 'text', ...options }, output);
  return { code, ...printedOutput };
}

/** The trace with a changed text. */
function edited(name: string, change: (text: string) => string, of = writeTrace(`${name}-original`)): string {
  const path = join(folder, name);
  writeFileSync(path, change(readFileSync(of, 'utf8')));
  return path;
}

test('chartpilot replay exits 0 for a trace that the machines reproduce', async () => {
  const path = writeTrace('same');
  const { code, out } = await runReplay([path]);
  expect(out).toContain(`${path}: matches the recording (limits, started`);
  expect(out).toMatch(/3 records: 3 compared, no difference/);
  expect(code).toBe(0);
});

test('chartpilot replay exits 1 and shows the recorded and the replayed record at a difference', async () => {
  const path = edited('differs', (text) => text.replace('"tokens":3', '"tokens":4'));
  const { code, out } = await runReplay([path, writeTrace('same-again')]);
  expect(out).toContain('record 2: limiter: differs from the recording in /change/tokens');
  expect(out).toMatch(/\/change\/tokens\n {4}recorded {2}4\n {4}replayed {2}3\n/);
  expect(code).toBe(1);
});

test('chartpilot replay exits 2 if a trace cannot be read or replayed, and still reports the other traces', async () => {
  const lateTrace = edited('late', (text) => text.split('\n').toSpliced(1, 1).join('\n'));
  const { code, out, error } = await runReplay([join(folder, 'missing'), lateTrace, writeTrace('fine')]);
  expect(code).toBe(2);
  expect(error).toMatch(/missing: no such file/);
  expect(error).toMatch(/late: .*expected record 1 first, got record 2/);
  expect(error).toMatch(/→ a replay requires all records since the start/);
  expect(out).toContain('fine: matches the recording');
});

test('chartpilot replay names the flag that is required for a program with unknown machines', async () => {
  const { code, error } = await runReplay([writeTrace('foreign')], { machine: [] });
  expect(code).toBe(2);
  expect(error).toMatch(
    /limiter runs machine 'start-limiter', which is unknown \[[A-Z_]+\]\n +→ .*--machine MODULE#EXPORT/,
  );
});

test('chartpilot replay accepts a machine as a module with its export', async () => {
  const module = join(import.meta.dirname, '../../../machines/agent/envoy/start-limiter.machine.ts');
  const { code } = await runReplay([writeTrace('module')], { machine: [`${module}#startLimiterMachine`] });
  expect(code).toBe(0);
});

test('chartpilot replay --format json prints a list with one entry per trace', async () => {
  const { out } = await runReplay([writeTrace('listed'), join(folder, 'missing')], { format: 'json' });
  expect(JSON.parse(out)).toEqual([
    expect.objectContaining({ verdict: 'same', program: 'limits', records: 3, compared: 3, cutOff: [] }),
    expect.objectContaining({ verdict: 'unreadable', error: expect.objectContaining({ code: 'FILE_UNREADABLE' }) }),
  ]);
});

test('chartpilot replay ignores and reports an incomplete last line', async () => {
  const path = edited('crashed', (text) => text.slice(0, -20));
  const { code, out } = await runReplay([path]);
  expect(out).toMatch(/crashed:4: truncated line, skipped/);
  expect(out).toContain('2 records: 2 compared, no difference');
  expect(code).toBe(0);
});

test('chartpilot replay reproduces a transition that changes more fields than a list can contain', async () => {
  const zeros = Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`field${i}`, 0]));
  const wideMachine = setup({
    types: { context: {} as Record<string, number> },
    actions: { fill: assign(({ context }) => Object.fromEntries(Object.keys(context).map((key, i) => [key, i + 1]))) },
  }).createMachine({ id: 'wide', context: zeros, on: { fill: { actions: 'fill' } } });
  const path = join(folder, 'wide');
  const recorder = createRecorder({ program: 'wide', machines: [wideMachine], sinks: [traceFile(path)] });
  const actor = createActor(wideMachine, { id: 'wide', inspect: recorder.inspect }).start();
  actor.send({ type: 'fill' });
  recorder.close();
  const { header, records } = await openTrace(path);
  const read: TraceRecord[] = [];
  const state = TraceState.of(header);
  for await (const record of records) {
    read.push(record);
    state.apply(record);
  }
  expect(state.actors.get('wide')?.context).toEqual(actor.getSnapshot().context);
  const { compared, difference } = replay(header, read, [wideMachine]);
  expect({ compared, difference }).toEqual({ compared: read.length, difference: undefined });
  actor.stop();
});

test('chartpilot replay rejects a machine that is not in the trace, and lists those in the trace', async () => {
  const { code, out, error } = await runReplay([writeTrace('stranger')], { machine: ['start-limiter', 'supervisor'] });
  expect(error).toContain("no actor of the trace runs machine 'supervisor'; machines of the trace: start-limiter");
  expect(out).not.toContain('the recording');
  expect(code).toBe(2);
});
