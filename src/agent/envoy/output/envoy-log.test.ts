import { describe, expect, test } from 'vitest';
import { recordingLog } from '../../../../test/harness/recording-log.ts';
import { createLogger } from '../../../runtime/output/log.ts';
import { type EnvoyLogLine, EnvoyOutput, parseEnvoyLine } from './envoy-log.ts';

const run = { epoch: 0, baseId: 1 };

const line = (level: string, text: string): string => `2026-01-02T03:04:05.678901Z\t${level}\tenvoy main\t${text}`;

test('parses level, component and text of a line, and ignores lines without a prefix', () => {
  expect(parseEnvoyLine(line('critical', 'a\tb'))).toEqual({ level: 'error', component: 'main', text: 'a\tb' });
  expect(parseEnvoyLine('previous envoy process is still initializing')).toBeUndefined();
});

test("logs each line with Envoy's level, and a line without a prefix with the previous level", () => {
  const { log, lines } = recordingLog();
  const output = new EnvoyOutput(log, { run });
  output.line(line('trace', 'a'));
  output.line(line('warning', 'b'));
  output.line('  c');
  output.line('');
  const from = { event: 'envoy.output', epoch: 0, baseId: 1 };
  expect(lines).toEqual([
    { ...from, level: 'debug', component: 'main' },
    { ...from, level: 'warn', component: 'main' },
    { ...from, level: 'warn' },
  ]);
});

test("logs Envoy's text unchanged", () => {
  const lines: string[] = [];
  const output = new EnvoyOutput(
    createLogger({ write: (writtenText) => lines.push(writtenText.split('\t').slice(1).join(' ')) }),
  );
  output.line(line('warning', 'b'));
  output.line('  c');
  expect(lines).toEqual(['warn default b  component=main\n', 'warn default   c\n']);
});

test("logs warnings about the agent's own actions as info or debug, and records them as warnings", () => {
  const { log, lines } = recordingLog();
  const recordedLines: EnvoyLogLine[] = [];
  const output = new EnvoyOutput(log, { run, onLine: (entry) => recordedLines.push(entry) });
  const streamClosed = 'gRPC config stream to xds-grpc closed';
  const texts = [
    'shutting down admin due to child startup',
    'terminating parent process',
    'caught ENVOY_SIGTERM',
    `DeltaAggregatedResources ${streamClosed}: 13, upstream_reset_after_response_started{connection_termination}`,
    `StreamSecrets ${streamClosed.replace('xds', 'sds')}: 13, upstream_reset_after_response_started{remote_reset}`,
    `StreamSecrets ${streamClosed} since 1s ago: 14, upstream connect error{upstream_reset_before_response_started{remote_connection_failure}}`,
    `StreamSecrets ${streamClosed} since 10s ago: 14, upstream connect error{upstream_reset_before_response_started{remote_connection_failure}}`,
    `StreamAggregatedResources ${streamClosed}: 14, no healthy upstream`,
    `StreamAggregatedResources ${streamClosed}: 16, unauthenticated`,
    `StreamAggregatedResources ${streamClosed}: 16, authentication%20failed{via_upstream}`,
  ];
  for (const text of texts) output.line(line('warning', text));
  output.line(line('error', texts[1]!));
  const levels = ['info', 'info', 'info', 'info', 'info', 'info', 'warn', 'warn', 'warn', 'debug', 'error'];
  expect(lines.map(({ level }) => level)).toEqual(levels);
  expect(recordedLines.map(({ level }) => level)).toEqual([...texts.map(() => 'warn'), 'error']);
});

test('treats an unknown level as text, even if it is a property name of Object.prototype', () => {
  const { log, lines } = recordingLog();
  const output = new EnvoyOutput(log, { run });
  for (const name of ['constructor', '__proto__', 'toString']) output.line(line(name, 'x'));
  expect(lines).toHaveLength(3);
});

test('passes each line to the callback', () => {
  const passed: EnvoyLogLine[] = [];
  const output = new EnvoyOutput(recordingLog().log, { onLine: (entry) => passed.push(entry) });
  output.line(line('critical', 'bad'));
  output.line('at 1:19');
  output.line('');
  expect(passed).toEqual([
    { level: 'error', component: 'main', text: 'bad' },
    { level: 'error', text: 'at 1:19' },
  ]);
});

describe("exit reason in Envoy's log", () => {
  const reasonAfter = (...lines: string[]): string => {
    const output = new EnvoyOutput(recordingLog().log, { run });
    for (const logLine of lines) output.line(logLine);
    return output.exitReason();
  };

  test('is the error, without its continuation and later lines', () => {
    expect(reasonAfter(line('critical', 'cannot bind'), 'cannot bind', line('info', 'exiting'))).toBe('cannot bind');
    expect(reasonAfter(line('critical', 'bad field near 1:19'), 'bogus')).toBe('bad field near 1:19');
  });

  test('is the text after the configuration that an error prints', () => {
    const reason = 'Proto constraint validation failed (ClusterValidationError.Name: value is required)';
    expect(reasonAfter(line('critical', 'error initializing: static_resources {'), '}', `: ${reason}`)).toBe(reason);
  });

  test('is a line without prefix if Envoy could not log', () => {
    expect(reasonAfter(line('warning', 'no limit'), 'unable to bind domain socket')).toBe(
      'unable to bind domain socket',
    );
  });

  test('is the crash without its stack trace', () => {
    const frames = ['Backtrace (use tools):', 'Envoy version: 1', 'Address mapping: 5', '#0: [0x7f]'];
    expect(reasonAfter(...['Caught Segmentation fault', ...frames].map((text) => line('critical', text)))).toBe(
      'Caught Segmentation fault',
    );
  });

  test('is the caught signal, unless an error is more specific', () => {
    const caughtSignal = [line('warning', 'caught ENVOY_SIGTERM'), line('info', 'exiting')];
    expect(reasonAfter(line('warning', 'no limit'), ...caughtSignal)).toBe('caught ENVOY_SIGTERM');
    expect(reasonAfter(line('critical', 'cannot bind'), ...caughtSignal)).toBe('cannot bind');
  });

  test('is empty if the last error is too old', () => {
    let now = 0;
    const output = new EnvoyOutput(recordingLog().log, { run, now: () => now });
    output.line(line('error', 'a probe failed'));
    now = 60_000;
    expect(output.exitReason()).toBe('');
  });

  test('distinguishes a child that its parent rejected', () => {
    const output = new EnvoyOutput(recordingLog().log, { run });
    expect(output.refusedByParent).toBe(false);
    output.line('previous envoy process is still initializing');
    expect(output.refusedByParent).toBe(true);
  });
});
