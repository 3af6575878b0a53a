import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { type LogFlags, loggerFromFlags } from './log-flags.ts';

function linesWith(flags: Partial<LogFlags>): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'log-flags-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'log');
  loggerFromFlags({ log_output_level: 'default:info', log_target: file, ...flags }).log.info('agent.started');
  return readFileSync(file, 'utf8').trimEnd().split('\n');
}

test('an unknown log scope is reported with its flag and with all known scopes', () => {
  const lines = linesWith({ log_output_level: 'adz:debug,info', log_stacktrace_level: 'ads:warn', log_caller: 'x,*' });
  expect(lines).toEqual([
    expect.stringMatching(
      /warn\tdefault\tunknown log scope {2}flag=--log_output_level {2}scopes=adz {2}known=".*ads, /,
    ),
    expect.stringMatching(/warn\tdefault\tunknown log scope {2}flag=--log_caller {2}scopes=x {2}/),
    expect.stringContaining('pilot-agent started'),
  ]);
});

test('existing log scopes are not reported', () => {
  expect(linesWith({ log_output_level: 'all:debug,ads:info', log_caller: 'ads,status' })).toHaveLength(1);
});
