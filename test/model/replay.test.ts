/**
 * Simulated runs of the agent are replayed: the same machines behave the same, and changed machines do not. The worlds of the other model tests are
 * replayed where they are checked against the diagrams (scenes.ts and others).
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { agentMachine } from '../../machines/agent/agent.machine.ts';
import { supervisorMachine } from '../../machines/agent/envoy/supervisor.machine.ts';
import { checkTraces } from '../../src/debugger/check/check-command.ts';
import { replay } from '../../src/debugger/replay/replay.ts';
import { replayTraces } from '../../src/debugger/replay/replay-command.ts';
import { formatReplay } from '../../src/debugger/replay/replay-report-text.ts';
import { replayLines } from '../../src/debugger/replay/replay-test.ts';
import type { TraceHeader, TraceLine, TraceRecord } from '../../src/runtime/trace/trace.ts';
import { randomAgent } from '../simulation/random-effects.ts';
import { type Schedule, schedules } from '../simulation/random-schedule.ts';
import { writeRandomTrace } from '../simulation/random-search.ts';
import { writeSkippedEpochTrace } from '../simulation/skipping-supervisor.ts';

/** XState's development build warns about every event for a stopped actor. */
beforeAll(() => {
  vi.spyOn(console, 'warn').mockImplementation(() => {});
});

const folder = mkdtempSync(join(tmpdir(), 'chartpilot-replay-'));
afterAll(() => rmSync(folder, { recursive: true }));

const agent = randomAgent();

function recordSchedule(schedule: Schedule): { header: TraceHeader; records: TraceRecord[] } {
  const lines: TraceLine[] = [];
  const write = (line: TraceLine): void => void lines.push(JSON.parse(JSON.stringify(line)) as TraceLine);
  writeRandomTrace(schedule, { write, flush() {}, close() {} }, agent);
  const [header, ...records] = lines;
  return { header: header as TraceHeader, records: records as TraceRecord[] };
}

test('60 random agent runs, with and without faults, are replayed without a difference', () => {
  let total = 0;
  for (const schedule of fc.sample(schedules, { seed: 11, numRuns: 60 })) {
    const { header, records } = recordSchedule(schedule);
    const report = replay(header, records, [agentMachine]);
    expect(report.difference, formatReplay(report)).toBeUndefined();
    expect(report.compared).toBe(records.length);
    total += records.length;
  }
  expect(total).toBeGreaterThan(5_000);
});

test('a truncated trace is replayed to its end', () => {
  const [schedule] = fc.sample(schedules, { seed: 5, numRuns: 1 });
  const { header, records } = recordSchedule(schedule!);
  for (let length = 1; length <= Math.min(300, records.length); length++) {
    const report = replay(header, records.slice(0, length), [agentMachine]);
    expect(report.difference, formatReplay(report)).toBeUndefined();
  }
});

test('replay with a modified machine, such as one that ignores changes, reports the first difference', () => {
  const certificate = { gap: { ms: 5_000 }, scheduledEvent: { kind: 'certificate' } } as const;
  const { header, records } = recordSchedule({
    ...{ settings: 'short times', startConditions: 'in order', durationSeed: 0, ending: 'in trouble' },
    steps: [certificate, { gap: { ms: 20_000 }, scheduledEvent: { kind: 'ready?' } }],
  });
  const changedSupervisor = supervisorMachine.provide({ guards: { changesDesired: () => false } });
  const { difference } = replay(header, records, [agentMachine, changedSupervisor]);
  expect(difference?.recorded).toMatchObject({ kind: 'transition', actor: 'supervisor', from: 'running.settled' });
  expect(difference?.replayed).toBeUndefined();
});

describe('a supervisor that skips an epoch number', () => {
  const path = join(folder, 'skipped.trace');
  beforeAll(() => writeSkippedEpochTrace(path));

  async function captureOutput(
    command: (output: { out: (text: string) => void; error: (text: string) => void }) => Promise<number>,
  ): Promise<{ code: number; text: string }> {
    let text = '';
    const print = (chunk: string): void => {
      text += chunk;
    };
    const code = await command({ out: print, error: print });
    return { code, text };
  }

  test('is detected by the check, with the missing number and the record', async () => {
    const { code, text } = await captureOutput((output) => checkTraces([path], { format: 'text' }, output));
    expect(code).toBe(1);
    expect(text).toMatch(
      /^deviation 1 of \d+: record \d+ is out of order \(machines\/agent\/sequences\/numbers\.mmd:/m,
    );
    expect(text).toMatch(
      /supervisor → epoch-3: spawn\n +record \d+ at 25506 ms: supervisor → restart: spawn\n +► record \d+ at 25506 ms: supervisor → agent: restart\.decided/,
    );
    expect(text).toMatch(/expected next:\n +► \d+: supervisor->>child: spawn {3}\(supervisor → epoch-2: spawn\)/);
  });

  test('first deviates from the correct supervisor where it starts the wrong epoch', async () => {
    const { code, text } = await captureOutput((output) => replayTraces([path], { format: 'text' }, output));
    expect(code).toBe(1);
    const records = readFileSync(path, 'utf8').trimEnd().split('\n').slice(1);
    const skip = records.findIndex((line) => line.includes('"kind":"spawn","actor":"epoch-3"')) + 1;
    expect(text).toContain(`record ${skip}: supervisor: differs from the recording in /actor`);
    expect(text).toMatch(/recorded .* supervisor → epoch-3: spawn/);
    expect(text).toMatch(/replayed .* supervisor → epoch-2: spawn/);
    expect(text).toContain(`${skip - 1} compared before the first difference`);
  });
});

test('100,000 records are replayed within seconds', () => {
  const steps = Array.from({ length: 400 }, (_, i) => ({
    gap: { ms: 60_000 },
    scheduledEvent: i % 8 === 0 ? ({ kind: 'crash', target: 'serving' } as const) : ({ kind: 'certificate' } as const),
  }));
  const { header, records } = recordSchedule({
    ...{ settings: 'short times', startConditions: 'in order', durationSeed: 0, ending: 'in trouble' },
    steps,
  });
  const startUsage = process.cpuUsage();
  const report = replay(header, records, [agentMachine]);
  const { user, system } = process.cpuUsage(startUsage);
  const secondsFor100000 = (user + system) / 1e6 / (records.length / 100_000);
  expect(report.difference, formatReplay(report)).toBeUndefined();
  console.log(`CPU time of replaying 100,000 records: ${secondsFor100000.toFixed(1)} s`);
  expect(records.length).toBeGreaterThan(20_000);
  expect(secondsFor100000).toBeLessThan(15);
});

test('a trace is replayed with the machines of its program', async () => {
  const path = join(folder, 'lines.trace');
  writeSkippedEpochTrace(path);
  const lines = readFileSync(path, 'utf8').split('\n');
  const skip = lines.findIndex((line) => line.includes('"kind":"spawn","actor":"epoch-3"'));
  expect(await replayLines(lines.slice(0, skip))).toMatchObject({ compared: skip - 1, warnings: [] });
  const { difference, details } = await replayLines(lines);
  expect(difference).toMatch(/epoch-3/);
  expect(details?.seq).toBe(skip);
});
