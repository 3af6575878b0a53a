import { describe, expect, test } from 'vitest';
import { createLogger, type LogOptions, parseLogLevels } from './log.ts';

function written(options: Omit<LogOptions, 'write'>, say: (log: ReturnType<typeof createLogger>) => void): string[] {
  const lines: string[] = [];
  say(createLogger({ ...options, write: (line) => lines.push(line) }));
  return lines;
}

/** A line of text without its time. */
function text(fields: object): string {
  const [line] = written({}, (log) => log.info('said', fields));
  const [, time, rest] = /^(\S+)\t(.*)\n$/s.exec(line!)!;
  expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  return rest!;
}

describe('a line of text', () => {
  test('has level, scope, message and fields: words as they are, everything else as JSON', () => {
    expect(text({ name: 'shop', count: 3, none: null, yes: true })).toBe(
      'info\tdefault\tsaid  name=shop  count=3  none=null  yes=true',
    );
    expect(text({ why: 'two words', quoted: 'a"b', equal: 'a=b', empty: '' })).toBe(
      'info\tdefault\tsaid  why="two words"  quoted="a\\"b"  equal="a=b"  empty=',
    );
    expect(text({ list: ['a', 1], deep: { a: { b: 'c d' } }, at: new Date(0) })).toBe(
      'info\tdefault\tsaid  list=["a",1]  deep={"a":{"b":"c d"}}  at=1970-01-01T00:00:00.000Z',
    );
  });

  test('leaves out what is nothing', () => {
    expect(text({ missing: undefined, deed: () => {}, symbol: Symbol('s') })).toBe('info\tdefault\tsaid');
  });

  test('keeps its own level, scope, time and message, whatever the fields are called', () => {
    expect(text({ level: 'error', scope: 'other', time: 1, msg: 'not said' })).toBe(
      'info\tdefault\tsaid  level=error  scope=other  time=1  msg="not said"',
    );
  });

  test('is written whatever is in the fields, and is bounded', () => {
    const circle: Record<string, unknown> = { name: 'round' };
    circle.self = circle;
    expect(text({ circle })).toBe('info\tdefault\tsaid  circle={"name":"round","self":"[Circular]"}');
    expect(text({ big: 12n })).toBe('info\tdefault\tsaid  big=12');
    expect(
      text({
        angry: {
          toJSON: () => {
            throw new Error('no');
          },
        },
      }),
    ).toMatch(/^info\tdefault\tsaid {2}angry=/);
    const many = Array.from({ length: 100_000 }, (_, index) => index);
    expect(text({ many }).length).toBeLessThan(1_000);
  });

  test('quotes a value with an escape or a backslash, so that no value looks like the escape of another', () => {
    expect(text({ name: 'a\u001b[31m' })).toBe('info\tdefault\tsaid  name="a\\u001b[31m"');
    expect(text({ name: 'a\\u001b[31m' })).toBe('info\tdefault\tsaid  name="a\\\\u001b[31m"');
    expect(text({ name: 'txt\u202eexe' })).toBe('info\tdefault\tsaid  name="txt\\u202eexe"');
  });

  test('is one line, whatever the message and the strings are', () => {
    expect(text({ why: 'first\nsecond' })).toBe('info\tdefault\tsaid  why="first\\nsecond"');
    const [line] = written({}, (log) => log.info('first\r\nsecond'));
    expect(line).toMatch(/\tinfo\tdefault\tfirst\\r\\nsecond\n$/);
  });
});

test('§1.1 --log_as_json: a line of JSON has the same', () => {
  const [line] = written({ asJson: true }, (log) => log.scope('ads').warn('said', { name: 'shop', none: undefined }));
  expect(JSON.parse(line!)).toEqual({
    level: 'warn',
    time: expect.any(String),
    scope: 'ads',
    name: 'shop',
    msg: 'said',
  });
});

test.each([false, true])('§1.1 --log_output_level: levels hold for their scope (as JSON: %s)', (asJson) => {
  const lines = written({ asJson, outputLevel: 'default:warn,ads:debug,push:none' }, (log) => {
    for (const scope of ['default', 'ads', 'push', 'constructor']) {
      const part = log.scope(scope);
      part.debug(`${scope} debug`);
      part.info(`${scope} info`);
      part.error(`${scope} error`);
      expect(part.enabled('info')).toBe(scope === 'ads');
    }
  });
  const said = lines.map((line) => /\w+ (debug|info|error)(?=[\n"])/.exec(line)![0]);
  expect(said).toEqual(['default error', 'ads debug', 'ads info', 'ads error', 'constructor error']);
});

test('a level that there is not is named', () => {
  expect(() => parseLogLevels('ads:loud')).toThrow(
    'log level "ads:loud": expected [scope:]level with level one of none,',
  );
});

describe('§1.1 --log_caller, --log_stacktrace_level', () => {
  const said = (options: LogOptions): string[] => {
    const lines: string[] = [];
    const log = createLogger({ ...options, write: (line) => lines.push(line.trimEnd()) });
    log.scope('a').warn('one', { b: 1 });
    log.info('two');
    return lines.map((line) => line.split('\t').slice(3).join(' '));
  };

  test('a line of a named scope says which line wrote it', () => {
    expect(said({ callers: 'a' })).toEqual([expect.stringMatching(/^one {2}b=1 {2}caller=log\.test\.ts:\d+$/), 'two']);
    expect(said({ callers: 'all' })[1]).toMatch(/^two {2}caller=log\.test\.ts:\d+$/);
    expect(said({ callers: '' })).toEqual(['one  b=1', 'two']);
  });

  test('a line of the level, or worse, has the stack', () => {
    const [one, two] = said({ stackTraceLevel: 'default:warn' });
    expect(one).toMatch(/^one {2}b=1 {2}stack="at .*log\.test\.ts:\d+:\d+/);
    expect(two).toBe('two');
    expect(said({ stackTraceLevel: 'a:none,default:info' })[0]).toBe('one  b=1');
  });

  test('in JSON too', () => {
    const lines: string[] = [];
    createLogger({ asJson: true, callers: '*', write: (line) => lines.push(line) }).info('m');
    expect(JSON.parse(lines[0]!)).toMatchObject({ msg: 'm', caller: expect.stringMatching(/^log\.test\.ts:\d+$/) });
  });
});
