import { describe, expect, test } from 'vitest';
import { type EnvoyFlags, envoyArguments, parseProxyLogLevel, validationArguments } from './envoy-args.ts';

const flags: EnvoyFlags = {
  drainMs: 45_900,
  parentShutdownMs: 60_000,
  ipVersion: 'v4',
  logLevel: 'trace',
  componentLogLevel: 'misc:error',
  concurrency: 8,
  configOverride: '{"key": "value"}',
};

const logFormat = '%Y-%m-%dT%T.%fZ\t%l\tenvoy %n\t%v';

describe('Envoy command line', () => {
  test('has the arguments in the order of the reference, with durations rounded down to seconds', () => {
    expect(envoyArguments(flags, { configFile: 'test.json', epoch: 3, baseId: 7 })).toEqual([
      ...['-c', 'test.json', '--restart-epoch', '3', '--drain-time-s', '45', '--parent-shutdown-time-s', '60'],
      ...['--local-address-ip-version', 'v4', '--file-flush-interval-msec', '1000', '--log-format', logFormat],
      ...['-l', 'trace', '--component-log-level', 'misc:error', '--config-yaml', '{"key": "value"}'],
      ...['--concurrency', '8', '--base-id', '7'],
    ]);
  });

  test('omits arguments of unconfigured options', () => {
    const args = envoyArguments({ ...flags, componentLogLevel: '', configOverride: '' }, run);
    expect(args).not.toContain('--component-log-level');
    expect(args).not.toContain('--config-yaml');
  });

  test('omits restart epoch and base ID for a validation', () => {
    const args = validationArguments(flags, 'test.json');
    expect(args.slice(0, 4)).toEqual(['--mode', 'validate', '-c', 'test.json']);
    expect(args).not.toContain('--restart-epoch');
    expect(args).not.toContain('--base-id');
    expect(args).toContain('--config-yaml');
  });
});

const run = { configFile: 'test.json', epoch: 0, baseId: 1 };

test.each([
  ['info', { level: 'info', components: '', dropped: [] }],
  ['info,warn', { level: 'warn', components: '', dropped: [] }],
  ['misc:warn,info', { level: 'info', components: 'misc:warn', dropped: [] }],
  ['misc:warn,info,upstream:debug', { level: 'info', components: 'misc:warn,upstream:debug', dropped: [] }],
  ['a:b:c,info', { level: 'info', components: '', dropped: ['a:b:c'] }],
])(
  'has the valid level and component levels of --proxyLogLevel %s, and returns the rejected items',
  (spec, expected) => {
    expect(parseProxyLogLevel(spec, '')).toEqual(expected);
  },
);

test('uses --proxyComponentLogLevel only if --proxyLogLevel has no component levels', () => {
  expect(parseProxyLogLevel('info', 'misc:error').components).toBe('misc:error');
  expect(parseProxyLogLevel('info,http:debug', 'misc:error').components).toBe('http:debug');
});
