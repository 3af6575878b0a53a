import { expect, test } from 'vitest';
import { parseDiagram } from '../../src/debugger/diagram/parse.ts';
import type { ActorSnapshot, TraceBody, TraceHeader, TraceRecord } from '../../src/runtime/trace/trace.ts';
import { headerWith } from '../../test/fixtures/trace-header.ts';
import { bestOf } from '../../test/harness/best-of.ts';
import { cpuMs } from '../../test/harness/cpu-time.ts';
import { growthOf } from '../../test/harness/growth.ts';
import { PageRecording } from '../model/recording/recording.ts';
import {
  columnsOf,
  lifeAt,
  livesWithin,
  maxColumns,
  maxLifelines,
  participantOrder,
  titleOf,
} from './sequence-lifelines.ts';
import { deviationLineText, deviationOfLine, SequenceIndex, SequenceRows } from './sequence-rows.ts';

const all = { states: true, internal: true };

test('messages, spawns, ends and state changes have rows, but started timers and log lines do not', () => {
  const rows = rowsOf([
    { kind: 'spawn', actor: 'a' },
    { kind: 'event', from: 'outside', to: 'a', event: { type: 'go.now' } },
    { kind: 'timer-started', actor: 'a', timer: 'pause', state: 'waiting', ms: 5 },
    { kind: 'transition', actor: 'a', from: '', to: 'waiting', on: 'go.now' },
    { kind: 'log', actor: 'a', level: 'info', text: 'hello' },
    { kind: 'timer', actor: 'a', timer: 'pause' },
    { kind: 'effect', actor: 'a', effect: 'ring' },
    { kind: 'step', actor: 'a', on: 'go.now' },
    { kind: 'stop', actor: 'a', status: 'error', error: 'broke' },
  ]);
  expect(rowTexts(rows)).toEqual([
    'spawn outside→a',
    'event outside→a',
    'state a→a',
    'timer a→a',
    'effect a→a',
    'ended a→a',
  ]);
});

test('the end of an actor is sent to its parent even if its spawn was before the first record', () => {
  const livingActors: ActorSnapshot[] = [
    { actor: 'b', parent: 'a', machine: 'm', state: '', spawned: 1, spawnedAt: 0 },
  ];
  const rows = rowsOf([{ kind: 'stop', actor: 'b', status: 'done' }], { livingActors });
  expect(rowTexts(rows)).toEqual(['done b→a']);
});

test('the filter by actor keeps records of the selected actor and its effects', () => {
  const rows = rowsOf(
    [
      { kind: 'event', from: 'a', to: 'b', event: { type: 'x.y' } },
      { kind: 'event', from: 'b/process', to: 'b', event: { type: 'x.z' } },
      { kind: 'event', from: 'a', to: 'bc', event: { type: 'x.y' } },
    ],
    { filter: { ...all, actor: 'b' } },
  );
  expect(rowTexts(rows)).toEqual(['event a→b', 'event b/process→b']);
});

test('a filter hides internal events of XState, but not the failure of an actor', () => {
  const rows = rowsOf(
    [
      { kind: 'event', from: 'a/x', to: 'a', event: { type: 'xstate.done.actor.x' } },
      { kind: 'event', from: 'a/x', to: 'a', event: { type: 'xstate.error.actor.x' } },
    ],
    { filter: { states: true, internal: false } },
  );
  expect(rows.length).toBe(1);
});

test('a filter hides rows of state changes and effects', () => {
  const rows = rowsOf(
    [
      { kind: 'transition', actor: 'a', from: '', to: 'on', on: 'xstate.init' },
      { kind: 'effect', actor: 'a', effect: 'ring' },
      { kind: 'event', from: 'a', to: 'b', event: { type: 'x.y' } },
    ],
    { filter: { states: false, internal: true } },
  );
  expect(rowTexts(rows)).toEqual(['event a→b']);
});

test('a position between two rows belongs to the row above it', () => {
  const rows = rowsOf([
    { kind: 'spawn', actor: 'a' },
    { kind: 'step', actor: 'a', on: 'x' },
    { kind: 'event', from: 'a', to: 'b', event: { type: 'x.y' } },
  ]);
  expect([-1, 0, 1, 2, 99].map((index) => rows.rowOf(index))).toEqual([-1, 0, 0, 1, 1]);
});

test('rows that grow with the trace equal those built at its end, and each record is read only once', () => {
  const bodies: TraceBody[] = Array.from({ length: 60 }, (_, i) => ({
    kind: 'event',
    from: `a-${i % 7}`,
    to: 'b',
    event: { type: 'x.y' },
  }));
  const recording = new PageRecording(header(), []);
  const index = new SequenceIndex(recording);
  const rows = new SequenceRows(index, all);
  const entries: unknown[] = [];
  for (const record of numbered(bodies)) {
    recording.append([record]);
    index.grow();
    rows.grow();
    entries.push(index.entry(index.length - 1));
  }
  expect(Array.from({ length: index.length }, (_, at) => index.entry(at))).toEqual(entries);
  expect(rowTexts(rows)).toEqual(rowTexts(rowsOf(bodies)));
});

const pingPong = parseDiagram(
  'sequenceDiagram\n  participant a\n  participant b\n  a->>b: ping.sent\n  b->>a: pong.sent\n',
  'ping.mmd',
);

test('a deviation has rows below it with its location in the diagram and the expected messages', () => {
  const rows = rowsOf(
    [
      { kind: 'event', from: 'a', to: 'b', event: { type: 'ping.sent' } },
      { kind: 'event', from: 'a', to: 'b', event: { type: 'ping.sent' } },
    ],
    { diagrams: [pingPong] },
  );
  expect(Array.from({ length: rows.length }, (_, i) => rows.row(i).line)).toEqual([0, 0, 1, 2]);
  const deviations = rows.index.recording.deviationsAt(1);
  const lines = [1, 2, 3].map((line) => {
    const matchedDeviation = deviationOfLine(deviations, line);
    return matchedDeviation && deviationLineText(matchedDeviation.deviation, matchedDeviation.lineIndex);
  });
  expect(lines).toEqual([
    'out of order: ping.mmd:5, started at #1',
    'expected b → a: pong.sent  (ping.mmd:5)',
    undefined,
  ]);
  expect([rows.rowOf(1), rows.rowOf(99)]).toEqual([1, 1]);
  expect([0, 1, 2, 99].map((index) => rows.rowsBefore(index))).toEqual([0, 1, 4, 4]);
});

test('no filter hides a deviation', () => {
  const rows = rowsOf(
    [
      { kind: 'event', from: 'a', to: 'b', event: { type: 'ping.sent' } },
      { kind: 'event', from: 'a', to: 'b', event: { type: 'ping.sent' } },
    ],
    { diagrams: [pingPong], filter: { states: false, internal: false, actor: 'somebody' } },
  );
  expect(rows.row(0).entry.index).toBe(1);
});

test('numbered actors share as many lifelines as actors run simultaneously', () => {
  const rows = rowsOf([
    { kind: 'spawn', actor: 'epoch-0' },
    { kind: 'spawn', actor: 'epoch-1' },
    { kind: 'stop', actor: 'epoch-0', status: 'done' },
    { kind: 'spawn', actor: 'epoch-2' },
    { kind: 'stop', actor: 'epoch-1', status: 'done' },
    { kind: 'spawn', actor: 'epoch-3' },
  ]);
  const epochs = rows.index.lifelines.filter(({ family }) => family === 'epoch-N');
  expect(epochs.map(({ lives }) => lives.map(({ actor }) => actor))).toEqual([
    ['epoch-0', 'epoch-2'],
    ['epoch-1', 'epoch-3'],
  ]);
  expect([0, 2, 3].map((index) => lifeAt(epochs[0]!, index)?.actor)).toEqual(['epoch-0', undefined, 'epoch-2']);
  expect(livesWithin(epochs[0]!, 1, 5).map(({ actor }) => actor)).toEqual(['epoch-0', 'epoch-2']);
  const [column] = columnsOf(epochs, new Map(), { foldEffects: true }).list;
  expect([0, 2, 5].map((index) => titleOf(column!, index))).toEqual(['epoch-0', 'epoch-0', 'epoch-2']);
});

test('a root actor is spawned and ends without a lifeline for the program', () => {
  const rows = rowsOf([
    { kind: 'spawn', actor: 'a' },
    { kind: 'stop', actor: 'a', status: 'done' },
  ]);
  expect([...rows.lifelines].map(({ family }) => family)).toEqual(['a']);
});

test('effects are drawn on the lifeline of their owner or on a separate one', () => {
  const rows = rowsOf([
    { kind: 'spawn', actor: 'a' },
    { kind: 'spawn', actor: 'b' },
    { kind: 'spawn', actor: 'a/process', parent: 'a' },
    { kind: 'event', from: 'outside', to: 'b', event: { type: 'x.y' } },
  ]);
  const families = (foldEffects: boolean) =>
    columnsOf(rows.lifelines, new Map(), { foldEffects }).list.map(({ family }) => family);
  expect(families(true)).toEqual(['outside', 'a', 'b']);
  expect(families(false)).toEqual(['outside', 'a', 'a/process', 'b']);
  const folded = columnsOf(rows.lifelines, new Map(), { foldEffects: true });
  const process = rows.index.entry(2);
  expect([folded.columnIndexOf(process.from), folded.columnIndexOf(process.to)]).toEqual([1, 1]);
});

test('a child machine has a separate lifeline, also for its effects, when effects are folded', () => {
  const rows = rowsOf([
    { kind: 'spawn', actor: 'par', machine: 'par' },
    { kind: 'spawn', actor: 'par/kid', parent: 'par', machine: 'kid' },
    { kind: 'spawn', actor: 'par/kid/load', parent: 'par/kid' },
    { kind: 'transition', actor: 'par/kid', from: '', to: 'cold', on: 'xstate.init' },
    { kind: 'event', from: 'par/kid/load', to: 'par/kid', event: { type: 'loaded' } },
  ]);
  const folded = columnsOf(rows.lifelines, new Map(), { foldEffects: true, actor: 'par/kid' });
  expect(folded.list.map(({ family }) => family)).toEqual(['par', 'par/kid']);
  expect([3, 4].map((at) => folded.columnIndexOf(rows.index.entry(at).from))).toEqual([1, 1]);
});

test('the lifelines of a range are those with a row in the range', () => {
  const rows = rowsOf([
    { kind: 'spawn', actor: 'a', machine: 'a' },
    { kind: 'spawn', actor: 'b', machine: 'b' },
    { kind: 'event', from: 'a', to: 'b', event: { type: 'x.y' } },
    { kind: 'event', from: 'outside', to: 'b', event: { type: 'x.z' } },
  ]);
  const familiesWithin = (first: number, last: number) =>
    [...rows.lifelinesWithin(first, last)].map(({ family }) => family);
  expect(familiesWithin(2, 2)).toEqual(['a', 'b']);
  expect(familiesWithin(3, 3)).toEqual(['outside', 'b']);
});

test("the column of an effect is next to its owner's", () => {
  const rows = rowsOf([
    { kind: 'spawn', actor: 'epoch-0' },
    { kind: 'spawn', actor: 'epoch-0/process', parent: 'epoch-0' },
    { kind: 'stop', actor: 'epoch-0/process', status: 'done' },
    { kind: 'spawn', actor: 'epoch-1' },
    { kind: 'spawn', actor: 'epoch-1/process', parent: 'epoch-1' },
  ]);
  const columns = columnsOf(rows.lifelines, new Map(), { foldEffects: false }).list;
  expect(columns.map((column) => titleOf(column, 4))).toEqual([
    'epoch-0',
    'epoch-0/process',
    'epoch-1',
    'epoch-1/process',
  ]);
});

test('a large family is one column with the number of running actors', () => {
  const rows = rowsOf([
    ...Array.from({ length: 300 }, (_, i): TraceBody => ({ kind: 'spawn', actor: `ads-connection-${i}` })),
    { kind: 'stop', actor: 'ads-connection-7', status: 'done' },
  ]);
  const columns = columnsOf(rows.lifelines, new Map(), { foldEffects: true }).list;
  expect(columns).toHaveLength(1);
  expect(titleOf(columns[0]!, 299)).toBe('ads-connection-N (300)');
  expect(titleOf(columns[0]!, 300)).toBe('ads-connection-N (299)');
});

test('families without a separate column share the last one, while the selected actor and diagram participants have their own', () => {
  const name = (i: number): string => `x${String.fromCharCode(97 + (i % 26), 97 + Math.floor(i / 26))}`;
  const rows = rowsOf([
    ...Array.from({ length: 600 }, (_, i): TraceBody => ({ kind: 'spawn', actor: name(i) })),
    { kind: 'spawn', actor: 'supervisor' },
    { kind: 'spawn', actor: `${name(599)}/process`, parent: name(599) },
  ]);
  const { list, columnIndexOf } = columnsOf(rows.lifelines, new Map([['supervisor', 0]]), {
    foldEffects: true,
    actor: `${name(599)}/process`,
  });
  expect(list).toHaveLength(maxColumns);
  expect(list[0]!.family).toBe('supervisor');
  expect(list.slice(1, 4).map(({ family }) => family)).toEqual(['xaa', 'xba', 'xca']);
  expect(list.at(-2)!.family).toBe(name(599));
  expect(titleOf(list.at(-1)!, 600)).toBe(`${601 - (maxColumns - 1)} others`);
  // Actors without their own column are drawn in the shared one.
  expect(columnIndexOf(rows.index.entry(400).to)).toBe(maxColumns - 1);
  const all = columnsOf([...rows.lifelines].slice(0, maxColumns), new Map(), { foldEffects: true });
  expect(all.list.map(({ isRest }) => isRest)).toEqual(Array.from({ length: maxColumns }, () => undefined));
});

test('a name with a million owners has a lifeline', () => {
  const rows = rowsOf([{ kind: 'spawn', actor: 'a/'.repeat(1_000_000) }]);
  expect(rows.index.lifelines.length).toBeLessThan(5);
});

test('columns have the order of the participants in the merged diagrams', () => {
  const longDiagram = parseDiagram(
    'sequenceDiagram\n participant agent\n participant supervisor\n participant child as epoch-N+1\n participant status\n agent->>supervisor: x.y\n',
    'long.mmd',
  );
  const shortDiagram = parseDiagram(
    'sequenceDiagram\n participant watcher as cert-watcher\n participant supervisor\n participant limiter as start-limiter\n watcher->>supervisor: x.y\n',
    'short.mmd',
  );
  expect([...participantOrder([shortDiagram, longDiagram]).keys()]).toEqual([
    'agent',
    'cert-watcher',
    'supervisor',
    'start-limiter',
    'epoch-N',
    'status',
  ]);
});

interface Options {
  livingActors?: ActorSnapshot[];
  diagrams?: ConstructorParameters<typeof PageRecording>[1];
  filter?: ConstructorParameters<typeof SequenceRows>[1];
}

function rowsOf(
  bodies: readonly TraceBody[],
  { livingActors, diagrams = [], filter = all }: Options = {},
): SequenceRows {
  const recording = new PageRecording(header(livingActors), diagrams);
  recording.append(numbered(bodies));
  return new SequenceRows(new SequenceIndex(recording), filter);
}

function rowTexts(rows: SequenceRows): string[] {
  return Array.from({ length: rows.length }, (_, i) => {
    const { kind, fromActor, toActor } = rows.row(i).entry;
    return `${kind} ${fromActor}→${toActor}`;
  });
}

function numbered(bodies: readonly TraceBody[]): TraceRecord[] {
  return bodies.map((body, i) => ({ ...body, seq: i + 1, t: i * 10 }));
}

function header(actors?: ActorSnapshot[]): TraceHeader {
  return headerWith(actors === undefined ? {} : { actors });
}

/** Many actors that live together and end, followed by as many new ones. */
function crowdBodies(actorCount: number): TraceBody[] {
  const spawnBodies = (from: number): TraceBody[] =>
    Array.from({ length: actorCount }, (_, i) => ({ kind: 'spawn', actor: `a-${from + i}` }));
  const stopBodies = Array.from(
    { length: actorCount },
    (_, i): TraceBody => ({ kind: 'stop', actor: `a-${i}`, status: 'stopped' }),
  );
  return [...spawnBodies(0), ...stopBodies, ...spawnBodies(actorCount)];
}

test('lifelines of very many actors are reused, and only running actors are counted', () => {
  const rows = rowsOf(crowdBodies(1_000));
  expect(rows.index.lifelines.length).toBeLessThanOrEqual(1_000 + maxLifelines);
  const { list } = columnsOf(rows.lifelines, new Map(), { foldEffects: true });
  expect(list.map((column) => titleOf(column, 1_999))).toEqual(['a-N (0)']);
  expect(list.map((column) => titleOf(column, 2_999))).toEqual(['a-N (1000)']);
});

test('the time per actor is constant for very many actors', async () => {
  const recordings = new Map<number, PageRecording>();
  const recordingOf = (actorCount: number): PageRecording => {
    const recording = recordings.get(actorCount) ?? new PageRecording(header(), []);
    if (!recordings.has(actorCount)) recording.append(numbered(crowdBodies(actorCount)));
    recordings.set(actorCount, recording);
    return recording;
  };
  const cost = (actorCount: number): number => {
    const recording = recordingOf(actorCount);
    return cpuMs(() => expect(new SequenceIndex(recording).length).toBe(3 * actorCount));
  };
  // Four times as many actors take four times as long, or sixteen times if each is compared with all others. Measured alternately, because a machine
  // may be busy for a while.
  expect(await bestOf(3, 9, async () => growthOf(cost, 6_000, 24_000))).toBeLessThan(9);
});
