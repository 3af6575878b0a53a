import { describe, expect, test } from 'vitest';
import { recordingLog } from '../../../../test/harness/recording-log.ts';
import { createLogger } from '../../../runtime/output/log.ts';
import { type EnvoyLogLine, EnvoyOutput, parseEnvoyLine } from './envoy-log.ts';

const run = { epoch: 0, baseId: 1 };

const line = (level: string, text: string): string => `2026-01-02T03:04:05.678901Z\t${level}\tenvoy main\t${text}`;

test('a line of Envoy is level, component and text', () => {
  expect(parseEnvoyLine(line('critical', 'a\tb'))).toEqual({ level: 'error', component: 'main', text: 'a\tb' });
  expect(parseEnvoyLine('previous envoy process is still initializing')).toBeUndefined();
});

test('every line reaches the log with Envoy’s level; a bare line has the level of the one before it', () => {
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

test('the text of a line is Envoy’s', () => {
  const lines: string[] = [];
  const output = new EnvoyOutput(createLogger({ write: (each) => lines.push(each.split('\t').slice(1).join(' ')) }));
  output.line(line('warning', 'b'));
  output.line('  c');
  expect(lines).toEqual(['warn default b  component=main\n', 'warn default   c\n']);
});

test('warnings about what the agent does itself are info or debug in the log, and keep their level in the trace', () => {
  const { log, lines } = recordingLog();
  const recorded: EnvoyLogLine[] = [];
  const output = new EnvoyOutput(log, { run, onLine: (entry) => recorded.push(entry) });
  const closed = 'gRPC config stream to xds-grpc closed';
  const texts = [
    'shutting down admin due to child startup',
    'terminating parent process',
    'caught ENVOY_SIGTERM',
    `DeltaAggregatedResources ${closed}: 13, upstream_reset_after_response_started{connection_termination}`,
    `StreamSecrets ${closed.replace('xds', 'sds')}: 13, upstream_reset_after_response_started{remote_reset}`,
    `StreamSecrets ${closed} since 1s ago: 14, upstream connect error{upstream_reset_before_response_started{remote_connection_failure}}`,
    `StreamSecrets ${closed} since 10s ago: 14, upstream connect error{upstream_reset_before_response_started{remote_connection_failure}}`,
    `StreamAggregatedResources ${closed}: 14, no healthy upstream`,
    `StreamAggregatedResources ${closed}: 16, unauthenticated`,
    `StreamAggregatedResources ${closed}: 16, authentication%20failed{via_upstream}`,
  ];
  for (const text of texts) output.line(line('warning', text));
  output.line(line('error', texts[1]!));
  const levels = ['info', 'info', 'info', 'info', 'info', 'info', 'warn', 'warn', 'warn', 'debug', 'error'];
  expect(lines.map(({ level }) => level)).toEqual(levels);
  expect(recorded.map(({ level }) => level)).toEqual([...texts.map(() => 'warn'), 'error']);
});

test('a level that Envoy does not have is a part of a line without a prefix, also where every object has one of that name', () => {
  const { log, lines } = recordingLog();
  const output = new EnvoyOutput(log, { run });
  for (const name of ['constructor', '__proto__', 'toString']) output.line(line(name, 'x'));
  expect(lines).toHaveLength(3);
});

test('every line is told of to whoever keeps them', () => {
  const told: EnvoyLogLine[] = [];
  const output = new EnvoyOutput(recordingLog().log, { onLine: (entry) => told.push(entry) });
  output.line(line('critical', 'bad'));
  output.line('at 1:19');
  output.line('');
  expect(told).toEqual([
    { level: 'error', component: 'main', text: 'bad' },
    { level: 'error', text: 'at 1:19' },
  ]);
});

describe('last words', () => {
  const lastWordsAfter = (...lines: string[]): string => {
    const output = new EnvoyOutput(recordingLog().log, { run });
    for (const each of lines) output.line(each);
    return output.lastWords();
  };

  test('are the error, not its continuation and not the chatter after it', () => {
    expect(lastWordsAfter(line('critical', 'cannot bind'), 'cannot bind', line('info', 'exiting'))).toBe('cannot bind');
    expect(lastWordsAfter(line('critical', 'bad field near 1:19'), 'bogus')).toBe('bad field near 1:19');
  });

  test('are the reason after a message that an error prints', () => {
    const reason = 'Proto constraint validation failed (ClusterValidationError.Name: value is required)';
    expect(lastWordsAfter(line('critical', 'error initializing: static_resources {'), '}', `: ${reason}`)).toBe(reason);
  });

  test('are the bare message when Envoy could not even log', () => {
    expect(lastWordsAfter(line('warning', 'no limit'), 'unable to bind domain socket')).toBe(
      'unable to bind domain socket',
    );
  });

  test('are what crashed, not the frames of the stack', () => {
    const frames = ['Backtrace (use tools):', 'Envoy version: 1', 'Address mapping: 5', '#0: [0x7f]'];
    expect(lastWordsAfter(...['Caught Segmentation fault', ...frames].map((text) => line('critical', text)))).toBe(
      'Caught Segmentation fault',
    );
  });

  test('are the signal that Envoy caught, unless an error explains more', () => {
    const caught = [line('warning', 'caught ENVOY_SIGTERM'), line('info', 'exiting')];
    expect(lastWordsAfter(line('warning', 'no limit'), ...caught)).toBe('caught ENVOY_SIGTERM');
    expect(lastWordsAfter(line('critical', 'cannot bind'), ...caught)).toBe('cannot bind');
  });

  test('are nothing when the last line is too old to be about the end', () => {
    let now = 0;
    const output = new EnvoyOutput(recordingLog().log, { run, now: () => now });
    output.line(line('error', 'a probe failed'));
    now = 60_000;
    expect(output.lastWords()).toBe('');
  });

  test('tell when the parent refused the child', () => {
    const output = new EnvoyOutput(recordingLog().log, { run });
    expect(output.refusedByParent).toBe(false);
    output.line('previous envoy process is still initializing');
    expect(output.refusedByParent).toBe(true);
  });
});
