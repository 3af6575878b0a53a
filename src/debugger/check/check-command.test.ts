import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { headerWith } from '../../../test/fixtures/trace-header.ts';
import { programFile } from '../../../test/harness/program-files.ts';
import { packageRoot } from '../../runtime/package-root.ts';
import { formatTraceLine, type TraceBody } from '../../runtime/trace/trace.ts';
import { type CheckCommandOptions, checkTraces } from './check-command.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'chartpilot-check-'));
  mkdirSync(join(folder, 'diagrams'));
  writeFileSync(
    join(folder, 'diagrams/greet.mmd'),
    'sequenceDiagram\nparticipant a\nparticipant b as b-N\na->>b: b.greet politely\nb->>a: b.greeted\n',
  );
});
afterEach(() => rmSync(folder, { recursive: true }));

interface Run {
  code: number;
  out: string;
  error: string;
}

function chartpilot(...args: string[]): Promise<Run> {
  return new Promise((resolve) => {
    execFile(process.execPath, [programFile('chartpilot'), ...args], { cwd: folder }, (failure, stdout, error) => {
      resolve({ code: failure === null ? 0 : Number(failure.code), out: stdout, error });
    });
  });
}

/** Runs the command in this process. File names are relative to the temporary folder, also in the output. */
async function check(traces: string[], options: Partial<CheckCommandOptions> = {}): Promise<Run> {
  const run = { code: 0, out: '', error: '' };
  const withoutFolder = (text: string): string => text.replaceAll(`${folder}/`, '');
  const { diagrams, ...otherOptions } = options;
  run.code = await checkTraces(
    traces.map((name) => join(folder, name)),
    { format: 'text', ...otherOptions, ...(diagrams !== undefined && { diagrams: join(folder, diagrams) }) },
    {
      out: (text) => {
        run.out += withoutFolder(text);
      },
      error: (text) => {
        run.error += withoutFolder(text);
      },
    },
  );
  return run;
}

const event = (from: string, to: string, type: string): TraceBody => ({ kind: 'event', from, to, event: { type } });
const greet = event('a', 'b-3', 'b.greet');
const greeted = event('b-3', 'a', 'b.greeted');

function trace(name: string, bodies: TraceBody[], program = 'world'): string {
  const header = headerWith({ program });
  const lines = [header, ...bodies.map((body, i) => ({ seq: i + 1, t: i * 10, ...body }))];
  writeFileSync(join(folder, name), lines.map(formatTraceLine).join(''));
  return name;
}

describe('chartpilot check', () => {
  test('exits 0 and prints counts when the trace follows the diagrams', async () => {
    const { code, out, error } = await check([trace('good', [greet, greeted, greet])], { diagrams: 'diagrams' });
    expect({ code, error }).toEqual({ code: 0, error: '' });
    expect(out).toContain('good: matches the sequence diagrams (world, started 2026-01-01T00:00:00.000Z)');
    expect(out).toContain('diagrams/greet.mmd  2 activations: 1 completed, 0 interrupted, 1 live');
    expect(out).toContain('3 records: 3 messages accepted, 0 deviations');
  });

  test('exits 1 and shows trace and diagram when the trace deviates', async () => {
    const { code, out } = await chartpilot('check', trace('bad', [greet, greet, greeted]), '--diagrams', 'diagrams');
    expect(code).toBe(1);
    expect(out).toContain('bad: deviates from the sequence diagrams');
    expect(out).toContain(
      [
        'deviation 1 of 1: record 2 is out of order (diagrams/greet.mmd:5)',
        '  trace',
        '      record 1 at 0 ms: a → b-3: b.greet',
        '    ► record 2 at 10 ms: a → b-3: b.greet',
        '  diagrams/greet.mmd, activation started by record 1, N = 3, last step: record 1; expected next:',
        '    ► 5: b->>a: b.greeted   (b-3 → a: b.greeted)',
      ].join('\n'),
    );
  });

  test('prints JSON with one entry per trace', async () => {
    const names = [trace('good', [greet]), trace('bad', [greeted])];
    const { code, out } = await check(names, { diagrams: 'diagrams', format: 'json' });
    expect(code).toBe(1);
    expect(JSON.parse(out)).toMatchObject([
      { trace: 'good', program: 'world', departures: [], counts: { accepted: 1 } },
      {
        trace: 'bad',
        departures: [
          {
            kind: 'unexpected',
            message: { seq: 1, from: 'b-3', to: 'a', type: 'b.greeted' },
            diagram: { line: 5 },
            expected: [{ line: 4, from: 'a', to: 'b-N', type: 'b.greet' }],
          },
        ],
      },
    ]);
  });

  test('reports an incomplete last line and missing records', async () => {
    const name = trace('cut', [greet, greeted, greet, greeted]);
    const line = formatTraceLine({ seq: 9, t: 90, ...greet });
    writeFileSync(join(folder, name), line + line.slice(0, 20), { flag: 'a' });
    const { code, out } = await check([name], { diagrams: 'diagrams' });
    expect(code).toBe(0);
    expect(out).toContain('cut:7: truncated line, skipped');
    expect(out).toContain('4 records are missing from the trace');
  });

  test('prints JSON for unreadable traces, too', async () => {
    writeFileSync(join(folder, 'broken'), 'hello\n');
    const { code, out, error } = await check(['nowhere', 'broken', trace('good', [greet])], {
      diagrams: 'diagrams',
      format: 'json',
    });
    expect(code).toBe(2);
    expect(JSON.parse(out)).toMatchObject([
      { trace: 'nowhere', verdict: 'unreadable', error: { code: 'FILE_UNREADABLE' } },
      { trace: 'broken', verdict: 'unreadable', error: { code: 'TRACE_INVALID' } },
      { trace: 'good', verdict: 'accepted', cutOff: [] },
    ]);
    expect(error.split('\n')).toHaveLength(3);
  });

  test('draws the messages around the first deviation', async () => {
    const bodies = [
      ...Array.from({ length: 50 }, () => [greet, greeted]).flat(),
      greeted,
      greet,
      greeted,
      greet,
      greeted,
    ];
    const { code, out } = await check([trace('bad', bodies)], { diagrams: 'diagrams', format: 'mermaid', around: 2 });
    expect(code).toBe(1);
    expect(out).toBe(
      `%% bad: deviates from the sequence diagrams (world, started 2026-01-01T00:00:00.000Z)
%% 105 records, 1 deviations
sequenceDiagram
  participant a as a
  participant b_3 as b-3
  note over a,b_3: 98 earlier messages are not shown
  a->>b_3: b.greet (record 99, 980 ms)
  b_3->>a: b.greeted (record 100, 990 ms)
  rect rgba(220, 50, 50, 0.25)
    b_3->>a: b.greeted (record 101, 1000 ms)
    note over b_3,a: record 101 is not allowed here (diagrams/greet.mmd:5): b-3 → a: b.greeted<br/>expected:<br/>a → b-N: b.greet (diagrams/greet.mmd:4)
  end
  a->>b_3: b.greet (record 102, 1010 ms)
  b_3->>a: b.greeted (record 103, 1020 ms)
  note over a,b_3: 2 later messages are not shown
`,
    );
  });

  test('draws a short accepted run without messages that a rule ignores', async () => {
    const otherOptions = event('b-3/effect', 'b-3', 'effect.happened');
    const { code, out } = await check([trace('good', [greet, otherOptions, greeted])], {
      diagrams: 'diagrams',
      format: 'mermaid',
    });
    expect(code).toBe(0);
    expect(out).toContain('b_3->>a: b.greeted (record 3, 20 ms)');
    expect(out).not.toMatch(/effect|note|rect/);
    const emptyResult = await check([trace('empty', [])], { diagrams: 'diagrams', format: 'mermaid' });
    expect(emptyResult.out).toContain('note over nobody: no message of the diagrams');
  });

  test('names the actors that are in no diagram', async () => {
    const other = (n: number) => event(`c-${n}/effect`, 'a', 'c.called');
    const { out } = await check([trace('good', [greet, other(1), other(2)])], { diagrams: 'diagrams' });
    expect(out).toContain('0 XState internals, 2 of actors in no diagram (c-N/effect 2), 0 spawns');
  });

  test('finds the diagrams of the bundled programs in any working directory', async () => {
    const { code, out, error } = await chartpilot('check', trace('agent.trace', [], 'pilot-agent'));
    expect({ code, error }).toEqual({ code: 0, error: '' });
    expect(out).toContain(join(packageRoot(), 'machines/agent/sequences/startup.mmd'));
  });

  test('exits 2 if a trace cannot be read, and still reports the other traces', async () => {
    const { code, out, error } = await check(['nowhere', trace('good', [greet])], { diagrams: 'diagrams' });
    expect(code).toBe(2);
    expect(error).toBe('chartpilot: cannot read file: nowhere: no such file [FILE_UNREADABLE]\n');
    expect(out).toContain('good: matches');
  });

  test.each([
    [
      undefined,
      "good: no sequence diagrams are known for program 'world' [FLAG_INVALID]\n  → name a directory of *.mmd files with --diagrams",
    ],
    ['nowhere', 'cannot read file: nowhere: no such file or directory'],
    ['empty', 'empty: no sequence diagrams (*.mmd)'],
    ['broken', 'broken/x.mmd:2: participant a is not declared above\n  broken/y.mmd:1: expected'],
  ])('exits 2 and reports invalid diagrams: %j', async (diagrams, message) => {
    trace('good', [greet]);
    mkdirSync(join(folder, 'empty'));
    mkdirSync(join(folder, 'broken'));
    writeFileSync(join(folder, 'broken/x.mmd'), 'sequenceDiagram\na->>b: a.b\nparticipant a\nparticipant b');
    writeFileSync(join(folder, 'broken/y.mmd'), 'flowchart');
    const { code, out, error } = await check(['good'], diagrams === undefined ? {} : { diagrams });
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(error.replace('\n  broken/x.mmd:2: participant b is not declared above', '')).toContain(message);
  });
});

test.each([
  [['check', 'good', '--format', 'xml'], 'Allowed choices are text, json, mermaid.'],
  [['check'], "missing required argument 'trace'"],
  [['check', 'good', '--format', 'mermaid', '--around', 'many'], 'Must be an integer >= 0.'],
  [
    ['check', 'one', 'two', '--format', 'mermaid'],
    '--format mermaid: expected one trace, got 2 [FLAG_INVALID]\n  → run the command once for each trace',
  ],
  [['trace', 'good', '--kind', 'event,dance'], "Unknown record kind 'dance'."],
  [['trace', 'good', '--from', '-3'], 'Must be an integer >= 0.'],
  [['trace', 'nowhere'], 'chartpilot: cannot read file: nowhere: no such file'],
])('chartpilot exits 2 with a one-paragraph error for the arguments %j', async (args, message) => {
  const { code, out, error } = await chartpilot(...args);
  expect({ code, out }).toEqual({ code: 2, out: '' });
  expect(error).toContain(message);
  expect(error).not.toMatch(/\n\s+at /);
});

test('the help of chartpilot lists its commands', async () => {
  const { code, out } = await chartpilot('--help');
  expect(code).toBe(0);
  expect(out).toMatch(/check .*\n.*trace /);
});
