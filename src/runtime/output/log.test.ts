import { describe, expect, test } from 'vitest';
import { createLogger, entryText, type LogOptions } from './log.ts';
import { parseLogLevels } from './log-levels.ts';

function writtenLines(
  options: Omit<LogOptions, 'write'>,
  writeTo: (log: ReturnType<typeof createLogger>) => void,
): string[] {
  const lines: string[] = [];
  writeTo(createLogger({ ...options, write: (line) => lines.push(line) }));
  return lines;
}

/** A line of text without its time. */
function text(fields: object): string {
  const [line] = writtenLines({}, (log) => log.info('readiness.ready', fields));
  const [, time, message] = /^(\S+)\t(.*)\n$/s.exec(line!)!;
  expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  return message!;
}

describe('a log line as text', () => {
  test('has level, scope, message and fields: words without quotes, other values as JSON', () => {
    expect(text({ name: 'shop', count: 3, none: null, yes: true })).toBe(
      'info\tdefault\tready  name=shop  count=3  none=null  yes=true',
    );
    expect(text({ why: 'two words', quoted: 'a"b', equal: 'a=b', empty: '' })).toBe(
      'info\tdefault\tready  why="two words"  quoted="a\\"b"  equal="a=b"  empty=',
    );
    expect(text({ list: ['a', 1], deep: { a: { b: 'c d' } }, at: new Date(0) })).toBe(
      'info\tdefault\tready  list=["a",1]  deep={"a":{"b":"c d"}}  at=1970-01-01T00:00:00.000Z',
    );
  });

  test('omits fields without a value', () => {
    expect(text({ missing: undefined, deed: () => {}, symbol: Symbol('s') })).toBe('info\tdefault\tready');
  });

  test('keeps its level, scope, time and message regardless of field names', () => {
    expect(text({ level: 'error', scope: 'other', time: 1, msg: 'not said' })).toBe(
      'info\tdefault\tready  level=error  scope=other  time=1  msg="not said"',
    );
  });

  test('is written for any field values, with a limited length', () => {
    const circle: Record<string, unknown> = { name: 'round' };
    circle.self = circle;
    expect(text({ circle })).toBe('info\tdefault\tready  circle={"name":"round","self":"[Circular]"}');
    expect(text({ big: 12n })).toBe('info\tdefault\tready  big=12');
    expect(
      text({
        angry: {
          toJSON: () => {
            throw new Error('no');
          },
        },
      }),
    ).toMatch(/^info\tdefault\tready {2}angry=/);
    const numbers = Array.from({ length: 100_000 }, (_, index) => index);
    expect(text({ many: numbers }).length).toBeLessThan(1_000);
  });

  test('quotes a value with an escape or a backslash, so that no value looks like the escape of another', () => {
    expect(text({ name: 'a\u001b[31m' })).toBe('info\tdefault\tready  name="a\\u001b[31m"');
    expect(text({ name: 'a\\u001b[31m' })).toBe('info\tdefault\tready  name="a\\\\u001b[31m"');
    expect(text({ name: 'txt\u202eexe' })).toBe('info\tdefault\tready  name="txt\\u202eexe"');
  });

  test('is a single line for any message and strings', () => {
    expect(text({ why: 'first\nsecond' })).toBe('info\tdefault\tready  why="first\\nsecond"');
    const [line] = writtenLines({}, (log) => log.relay('envoy.output', 'info', 'first\r\nsecond'));
    expect(line).toMatch(/\tinfo\tdefault\tfirst\\r\\nsecond\n$/);
  });
});

test('a log line has the same content as JSON with --log_as_json (agent §1.1)', () => {
  const [line] = writtenLines({ asJson: true }, (log) =>
    log.scope('ads').warn('upstream.failed', { name: 'shop', none: undefined }),
  );
  expect(JSON.parse(line!)).toEqual({
    event: 'upstream.failed',
    level: 'warn',
    time: expect.any(String),
    scope: 'ads',
    name: 'shop',
    msg: 'control plane not available, will retry',
  });
});

test.each([
  ['text', false],
  ['JSON', true],
] as const)(
  'a log line is written as %s only if --log_output_level enables its level for its scope (agent §1.1)',
  (_, asJson) => {
    const lines = writtenLines({ asJson, outputLevel: 'default:warn,ads:debug,push:none' }, (log) => {
      for (const scope of ['default', 'ads', 'push', 'constructor']) {
        const scopedLog = log.scope(scope);
        for (const level of ['debug', 'info', 'error'] as const)
          scopedLog.relay('envoy.output', level, `${scope} ${level}`);
        expect(scopedLog.enabled('info')).toBe(scope === 'ads');
      }
    });
    const output = lines.map((line) => /\w+ (debug|info|error)(?=[\n"])/.exec(line)![0]);
    expect(output).toEqual(['default error', 'ads debug', 'ads info', 'ads error', 'constructor error']);
  },
);

describe('the event of a log line', () => {
  test('has its ID in lines of JSON regardless of field names, and in no line of text', () => {
    const log = (asJson: boolean): string =>
      writtenLines({ asJson }, (one) => one.info('readiness.ready', { event: 'x' }))[0]!;
    expect(JSON.parse(log(true))).toMatchObject({ event: 'readiness.ready', msg: 'ready' });
    expect(log(false)).toMatch(/\tready {2}event=x\n$/);
  });

  test('has the fields of its message in lines of JSON, but does not repeat them in lines of text', () => {
    const fields = { actor: 'supervisor', from: 'starting', to: 'serving', cause: 'epoch-1 is live', on: 'epoch.live' };
    const message = 'supervisor: starting → serving (epoch-1 is live)';
    const lines = (asJson: boolean): string[] => writtenLines({ asJson }, (log) => log.info('state.changed', fields));
    expect(lines(false)[0]).toMatch(new RegExp(`\t${message.replace(/[()]/g, '\\$&')} {2}on=epoch\\.live\n$`));
    expect(JSON.parse(lines(true)[0]!)).toMatchObject({ ...fields, msg: message });
  });

  test('is written at the level of its table if it was built as an entry', () => {
    const lines = writtenLines({ asJson: true, outputLevel: 'default:warn' }, (log) => {
      log.write({ event: 'readiness.ready' });
      log.write({ event: 'readiness.lost', reason: 'a' });
    });
    expect(lines.map((line) => JSON.parse(line))).toEqual([
      {
        ...{ event: 'readiness.lost', level: 'warn', scope: 'default', reason: 'a', msg: 'not ready' },
        time: expect.any(String),
      },
    ]);
    expect(entryText({ event: 'readiness.lost', reason: 'a b' })).toBe('not ready  reason="a b"');
  });
});

test.each([
  ['text', false],
  ['JSON', true],
] as const)('a log call below the log level reads no field and writes no %s', (_, asJson) => {
  let reads = 0;
  const fields = Object.defineProperty({}, 'reason', { enumerable: true, get: () => ++reads });
  const options = { asJson, outputLevel: 'default:error', callers: 'all', stackTraceLevel: 'default:debug' };
  const { captureStackTrace } = Error;
  let stacks = 0;
  Error.captureStackTrace = (...args) => {
    stacks++;
    captureStackTrace(...args);
  };
  try {
    const lines = writtenLines(options, (log) => {
      log.debug('certificate.issued', fields);
      log.info('readiness.ready', fields);
      log.warn('readiness.lost', fields);
      log.relay('envoy.output', 'warn', 'a', fields);
    });
    expect([lines, reads, stacks]).toEqual([[], 0, 0]);
  } finally {
    Error.captureStackTrace = captureStackTrace;
  }
});

test('an unknown log level is named in the error', () => {
  expect(() => parseLogLevels('ads:loud')).toThrow(
    'must be a list of [SCOPE:]LEVEL with LEVEL one of none, fatal, error, warn, info, debug, got "ads:loud"',
  );
});

describe('--log_caller and --log_stacktrace_level (agent §1.1)', () => {
  const output = (options: LogOptions): string[] => {
    const lines: string[] = [];
    const log = createLogger({ ...options, write: (line) => lines.push(line.trimEnd()) });
    log.scope('a').warn('upstream.failed', { b: 1 });
    log.info('readiness.ready');
    return lines.map((line) => line.split('\t').slice(3).join(' '));
  };

  test('add the source line to a line of a named scope', () => {
    expect(output({ callers: 'a' })).toEqual([
      expect.stringMatching(/^control plane not available, will retry {2}b=1 {2}caller=log\.test\.ts:\d+$/),
      'ready',
    ]);
    expect(output({ callers: 'all' })[1]).toMatch(/^ready {2}caller=log\.test\.ts:\d+$/);
    expect(output({ callers: '' })).toEqual(['control plane not available, will retry  b=1', 'ready']);
  });

  test('add the stack to a line of the level or a more severe one', () => {
    const [one, two] = output({ stackTraceLevel: 'default:warn' });
    expect(one).toMatch(/^control plane not available, will retry {2}b=1 {2}stack="at .*log\.test\.ts:\d+:\d+/);
    expect(two).toBe('ready');
    expect(output({ stackTraceLevel: 'a:none,default:info' })[0]).toBe('control plane not available, will retry  b=1');
  });

  test('add source line and stack to a line of JSON', () => {
    const lines: string[] = [];
    createLogger({ asJson: true, callers: '*', write: (line) => lines.push(line) }).info('readiness.ready');
    expect(JSON.parse(lines[0]!)).toMatchObject({
      event: 'readiness.ready',
      msg: 'ready',
      caller: expect.stringMatching(/^log\.test\.ts:\d+$/),
    });
  });
});
