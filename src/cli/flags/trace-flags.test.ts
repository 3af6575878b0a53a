import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { expect, onTestFinished, test } from 'vitest';
import { codedError } from '../../../test/fixtures/error-details.ts';
import { silentLogger } from '../../runtime/output/log.ts';
import type { TraceLine } from '../../runtime/trace/trace.ts';
import { addRecordingFlags, openRecording, type ProgramRecording, type RecordingFlags } from './trace-flags.ts';

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'chartpilot-recording-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function openTraced(args: readonly string[], runDir = temporaryFolder()): ProgramRecording {
  const flags = addRecordingFlags(new Command()).parse(args, { from: 'user' }).opts<RecordingFlags>();
  return openRecording({ program: 'test', machines: [], routine: ['tick'], flags, runDir, log: silentLogger });
}

const longText = 'x'.repeat(3_000);

async function recordedIn(file: string, recording: ProgramRecording): Promise<TraceLine[]> {
  recording.recorder.record({ kind: 'effect', actor: 'a', effect: 'e', params: longText });
  await recording.close();
  return readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as TraceLine);
}

test('the trace file has the requested level, and long texts are truncated unless the level is full', async () => {
  const file = join(temporaryFolder(), 'a.trace');
  const standard = await recordedIn(file, openTraced(['--trace', file]));
  expect(standard).toMatchObject([
    { level: 'standard', omits: ['tick'] },
    { params: expect.stringMatching(/… \(3000 characters\)$/) },
  ]);
  const fullRecords = await recordedIn(file, openTraced(['--trace', file, '--traceLevel', 'full']));
  expect(fullRecords).toMatchObject([{ level: 'full' }, { params: longText }]);
  expect(fullRecords[0]).not.toHaveProperty('omits');
});

test('an empty file name disables the trace file', async () => {
  await openTraced(['--trace=']).close();
});

test('the trace is served unless the debugger is off', async () => {
  for (const args of [[], ['--debugger', 'on'], ['--debugger', 'open']]) {
    const recording = openTraced(args);
    expect(recording.trace).toBeDefined();
    await recording.close();
  }
  const off = openTraced(['--debugger', 'off']);
  expect(off.trace).toBeUndefined();
  await off.close();
});

test.each([
  ['--debugger', 'yes', 'one of on, open, off'],
  ['--traceLevel', 'loud', 'one of standard, full'],
  ['--trace', '/nonexistent/a.trace', 'a file that can be written'],
])('the flag %s %s is rejected with the expected values', (path, value, expected) => {
  expect(() => openTraced([path, value])).toThrow(
    codedError('FLAG_INVALID', { path, expected, got: JSON.stringify(value) }),
  );
});
