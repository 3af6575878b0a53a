import { describe, expect, test } from 'vitest';
import { checkTrace } from '../../src/debugger/check/check.ts';
import { parseDiagram } from '../../src/debugger/diagram/parse.ts';
import { parseTraceLine } from '../../src/debugger/trace/trace-line.ts';
import type { TraceBody, TraceHeader, TraceRecord } from '../../src/runtime/trace/trace.ts';
import { TraceState } from '../../src/runtime/trace/trace-state.ts';
import { headerWith } from '../../test/fixtures/trace-header.ts';
import { PageRecording } from '../model/recording/recording.ts';
import { columnsOf } from '../sequence/sequence-lifelines.ts';
import { SequenceIndex, SequenceRows } from '../sequence/sequence-rows.ts';
import { exportedRange, fileName } from './exported-range.ts';
import { minimalTrace } from './minimal-trace.ts';
import { rangeMermaid } from './range-mermaid.ts';
import { rangeTest, testErrorText } from './range-test.ts';
import { rowsWithin, sequenceSvg } from './sequence-svg.ts';

const diagram = parseDiagram(
  'sequenceDiagram\n  participant a\n  participant b\n  loop\n    a->>b: ping.sent\n    b->>a: pong.sent\n  end\n',
  'ping.mmd',
);
const traceBodies: TraceBody[] = [
  { kind: 'spawn', actor: 'a', machine: 'first' },
  { kind: 'spawn', actor: 'b', parent: 'a', machine: 'second' },
  { kind: 'transition', actor: 'a', from: '', to: 'on', on: 'xstate.init', change: [{ path: '', value: { n: 1 } }] },
  { kind: 'event', from: 'a', to: 'b', event: { type: 'ping.sent' } },
  { kind: 'timer-started', actor: 'b', timer: 'pause', state: 'waiting', ms: 5 },
  {
    kind: 'transition',
    actor: 'b',
    from: '',
    to: 'waiting',
    on: 'ping.sent',
    change: [{ path: '', value: { m: [1] } }],
  },
  { kind: 'event', from: 'b', to: 'a', event: { type: 'pong.sent' } },
  { kind: 'step', actor: 'a', on: 'pong.sent', change: [{ path: '/n', value: 2 }] },
  { kind: 'event', from: 'a/x', to: 'a', event: { type: 'xstate.done.actor.x' } },
  { kind: 'stop', actor: 'a', status: 'stopped' },
  { kind: 'spawn', actor: 'c', machine: 'third' },
  { kind: 'stop', actor: 'b', status: 'done' },
];

describe('the exported range', () => {
  test('the exported range is the complete trace unless a range is selected, and never exceeds the trace', () => {
    expect(exportedRange(recordingOf(traceBodies), undefined)).toEqual({ first: 0, last: 11 });
    expect(exportedRange(recordingOf(traceBodies), [3, 99])).toEqual({ first: 3, last: 11 });
    expect(exportedRange(recordingOf([]), undefined)).toBeUndefined();
  });

  test('the names of exported files contain the numbers of their records', () => {
    expect(fileName(recordingOf(traceBodies), { first: 3, last: 5 }, '.trace')).toBe('my-program-4-6.trace');
  });
});

describe('a minimal trace', () => {
  test.each([
    [0, 11],
    [3, 7],
    [6, 6],
    [9, 11],
  ])('a minimal trace of the records %i to %i leads to the same state at its end', (first, last) => {
    const recording = recordingOf(traceBodies);
    const { header, records } = read(minimalTrace(recording, { first, last }));
    const state = TraceState.of(header);
    for (const record of records) state.apply(record);
    expect([...state.actors]).toEqual([...recording.stateAt(last).actors]);
    expect(records).toEqual(recording.recordsIn(first, last));
  });

  test('a minimal trace has only the machines that occur in it', () => {
    const machines = (first: number, last: number) =>
      read(minimalTrace(recordingOf(traceBodies), { first, last })).header.machines.map(({ id }) => id);
    expect(machines(3, 7)).toEqual(['first', 'second']);
    expect(machines(10, 11)).toEqual(['second', 'third']);
  });

  test('a minimal trace from the beginning has no earlier actors', () => {
    expect(read(minimalTrace(recordingOf(traceBodies), { first: 0, last: 2 })).header.actors).toBeUndefined();
  });

  test('a minimal trace that starts in the middle of a diagram has no deviation', () => {
    const { header, records } = read(minimalTrace(recordingOf(traceBodies), { first: 4, last: 8 }));
    expect(checkTrace([diagram], records, header).departures).toEqual([]);
  });
});

describe('the export of a range as a sequence', () => {
  test('the mermaid diagram has the messages of the range, without internal ones of XState', () => {
    const text = rangeMermaid(recordingOf(traceBodies), { first: 3, last: 11 });
    expect(text).toContain('sequenceDiagram');
    expect([...text.matchAll(/\w+->>\w+: \S+/g)].map(([arrow]) => arrow)).toEqual([
      'a->>b: ping.sent',
      'b->>a: pong.sent',
      'outside->>c: spawn',
      'b->>a: done',
    ]);
  });

  test('the mermaid diagram marks a deviation and the expected messages', () => {
    const repeatedBodies = [traceBodies[0]!, traceBodies[1]!, traceBodies[3]!, traceBodies[3]!];
    const text = rangeMermaid(recordingOf(repeatedBodies), { first: 0, last: 3 });
    expect(text).toMatch(/rect .*\n\s+a->>b: ping\.sent \(record 4/);
    expect(text).toContain('b → a: pong.sent');
  });

  test('the picture has the rows of the range and no characters that are invalid in XML', () => {
    const nasty: TraceBody = { kind: 'event', from: 'a', to: 'b', event: { type: 'x.y', text: '<b>&"\u0001' } };
    const { rows, picture } = drawnOf([...traceBodies, nasty], { first: 3, last: 12 });
    const { from, end } = rowsWithin(rows, { first: 3, last: 12 });
    expect(end - from).toBe(9);
    expect(picture.text).toContain('&lt;b&gt;&amp;');
    expect(picture.text).not.toContain('\u0001');
    expect(picture.text).not.toContain('ping.sent</tspan> <tspan fill="#mute">{');
    expect([...picture.text.matchAll(/font-weight="600">(ping\.sent|pong\.sent|done|x\.y)</g)]).toHaveLength(4);
    expect(picture.height).toBeGreaterThan(9 * 26);
  });

  test('the picture shows the messages that are expected at a deviation', () => {
    const repeatedBodies = [traceBodies[0]!, traceBodies[1]!, traceBodies[3]!, traceBodies[3]!];
    expect(drawnOf(repeatedBodies, { first: 0, last: 3 }).picture.text).toContain('expected b → a: pong.sent');
  });
});

describe('a test generated from a range', () => {
  test('the generated test replays from the beginning to the last record of the range', () => {
    const { source } = rangeTest(recordingOf(traceBodies), { first: 3, last: 6 });
    expect(source).toContain("test('my program does what was recorded, up to record 7 (b → a: pong.sent)'");
    expect(source).toContain('"seq":1,');
    expect(source).toContain('"seq":7,');
    expect(source).not.toContain('"seq":8,');
  });

  test('no test is generated from a trace that lacks its beginning', () => {
    expect(testErrorText(recordingOf(traceBodies))).toBeUndefined();
    const lateRecording = new PageRecording(header());
    lateRecording.append([{ ...traceBodies[0]!, seq: 5, t: 5 }]);
    expect(testErrorText(lateRecording)).toContain('cannot be replayed');
    const rotated = new PageRecording({ ...header(), actors: [] });
    rotated.append([{ ...traceBodies[0]!, seq: 1, t: 5 }]);
    expect(testErrorText(rotated)).toContain('cannot be replayed');
  });
});

function drawnOf(bodies: readonly TraceBody[], range: { first: number; last: number }) {
  const recording = recordingOf(bodies);
  const rows = new SequenceRows(new SequenceIndex(recording), { states: true, internal: true });
  const columns = columnsOf(rows.lifelines, new Map(), { foldEffects: true });
  const palette = {
    paper: '#fff',
    ink: '#000',
    muted: '#mute',
    line: '#888',
    box: '#eee',
    active: '#cfc',
    activeInk: '#060',
    failureColor: '#c00',
  };
  return { rows, picture: sequenceSvg(rows, columns, range, palette) };
}

function read(text: string): { header: TraceHeader; records: TraceRecord[] } {
  const [first, ...rest] = text.trimEnd().split('\n').map(parseTraceLine);
  for (const line of [first, ...rest]) expect(line).toBeTypeOf('object');
  return { header: first as TraceHeader, records: rest as TraceRecord[] };
}

function recordingOf(bodies: readonly TraceBody[]): PageRecording {
  const recording = new PageRecording(header(), [diagram]);
  recording.append(bodies.map((body, i) => ({ ...body, seq: i + 1, t: i * 10 })));
  return recording;
}

function header(): TraceHeader {
  const machines = ['first', 'second', 'third'].map((id) => ({ id, states: [], transitions: [] }));
  return headerWith({ program: 'my program', level: 'full', machines });
}
