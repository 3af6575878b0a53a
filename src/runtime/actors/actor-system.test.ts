import { describe, expect, test } from 'vitest';
import { assign, type createActor, fromCallback, fromPromise, not, sendParent, sendTo, setup, stateIn } from 'xstate';
import { actorName } from '../trace/known-actors.ts';
import { createRecorder, type RecorderOptions } from '../trace/recorder.ts';
import { stateName } from '../trace/statechart.ts';
import type { TraceHeader, TraceLine, TraceRecord, TraceSink } from '../trace/trace.ts';
import { startRoot } from './actor-system.ts';

const lamp = setup({
  types: { context: {} as { turns: number }, input: {} as { watts: number } },
  delays: { glow: 40 },
  actions: {
    tell: sendParent({ type: 'lamp.lit' }),
    buzz: () => {},
    count: assign({ turns: ({ context }) => context.turns + 1 }),
  },
}).createMachine({
  id: 'lamp',
  context: { turns: 0 },
  initial: 'dark',
  states: {
    dark: { on: { 'lamp.on': { target: 'lit', actions: ['count', 'tell', 'buzz'] }, 'lamp.off': {} } },
    lit: { after: { glow: 'dark' }, on: { 'lamp.turn': { actions: 'count' }, 'lamp.off': { target: 'out' } } },
    out: { type: 'final' },
  },
});

const house = setup({
  types: { context: {} as { seen: number; owner: { name: string; pets?: string[] } } },
  actors: {
    lamp,
    meter: fromCallback(({ sendBack, receive }) => receive(() => sendBack({ type: 'meter.read', kwh: 3 }))),
    sun: fromPromise(() => Promise.resolve('noon')),
  },
  actions: {
    light: sendTo('lamp-1', { type: 'lamp.on' }),
    readMeter: sendTo('meter', { type: 'meter.read-now' }),
    see: assign(({ context }) => ({ seen: context.seen + 1, owner: { name: 'B/c~d' } })),
  },
}).createMachine({
  id: 'house',
  context: { seen: 0, owner: { name: 'A', pets: ['cat'] } },
  initial: 'quiet',
  invoke: [
    { id: 'lamp-1', src: 'lamp', input: { watts: 60 } },
    { id: 'meter', src: 'meter' },
  ],
  states: {
    quiet: { on: { dusk: { target: 'evening', actions: 'light' }, 'meter.read': {} } },
    evening: { on: { 'lamp.lit': { actions: ['see', 'readMeter'] }, 'meter.read': 'night' } },
    night: { invoke: { id: 'sun', src: 'sun', onDone: 'quiet' } },
  },
});

function memorySink(): TraceSink & { lines: TraceLine[] } {
  const lines: TraceLine[] = [];
  return { lines, write: (line) => void lines.push(line), flush() {}, close() {} };
}

function houseWith(options: Partial<RecorderOptions> = {}) {
  const sink = memorySink();
  let t = 0;
  const recorder = createRecorder({ program: 'test', sinks: [sink], now: () => ++t, machines: [house], ...options });
  const sinkRecords: TraceRecord[] = [];
  recorder.observe((record) => sinkRecords.push(record));
  const actor = startRoot(house, { id: 'house', input: undefined, recorder, onError: () => {} });
  const records = (): TraceRecord[] => sink.lines.slice(1) as TraceRecord[];
  const find = (match: object): TraceRecord => {
    const matchingRecord = records().find((record) =>
      Object.entries(match).every(([key, value]) => record[key as 'kind'] === value),
    );
    if (matchingRecord === undefined) throw new Error(`no record ${JSON.stringify(match)}`);
    return matchingRecord;
  };
  const lampRef = (): ReturnType<typeof createActor<typeof lamp>> => actor.getSnapshot().children['lamp-1'] as never;
  return { actor, header: sink.lines[0] as TraceHeader, records, find, seen: sinkRecords, lampRef };
}

const eventTo = (records: readonly TraceRecord[], type: string): TraceRecord & { kind: 'event' } =>
  records.find((record) => record.kind === 'event' && record.event.type === type) as TraceRecord & { kind: 'event' };

describe('the header of a trace', () => {
  test('contains the definition of every machine that can run', () => {
    const { header } = houseWith();
    expect(header).toMatchObject({ version: 4, level: 'standard', program: 'test' });
    expect(header.machines.map(({ id }) => id)).toEqual(['house', 'lamp']);
  });
});

describe('the spawn record of an actor', () => {
  test('contains its parent, its machine and its input', () => {
    const { find } = houseWith();
    expect(find({ kind: 'spawn', actor: 'lamp-1' })).toMatchObject({
      parent: 'house',
      machine: 'lamp',
      input: { watts: 60 },
    });
    expect(find({ kind: 'spawn', actor: 'house/meter' })).not.toHaveProperty('machine');
  });

  test('has a stable name: the ID of a chart, and for an effect the names of its parent and itself', () => {
    const { actor } = houseWith();
    expect(actorName(actor)).toBe('house');
    expect(actorName(actor.getSnapshot().children['lamp-1']!)).toBe('lamp-1');
    expect(actorName(actor.getSnapshot().children.meter!)).toBe('house/meter');
  });
});

describe('the transition record of a chart', () => {
  test('contains the event that caused it, the transition, and the changes of the context', () => {
    const { actor, records, header } = houseWith();
    actor.send({ type: 'dusk' });
    const lampOn = eventTo(records(), 'lamp.on');
    expect(lampOn.cause).toBe(eventTo(records(), 'dusk').seq);
    const step = records().find(
      (record) => record.kind === 'transition' && record.actor === 'lamp-1' && record.to === 'lit',
    );
    expect(step).toMatchObject({
      from: 'dark',
      on: 'lamp.on',
      cause: lampOn.seq,
      change: [{ path: '/turns', value: 1 }],
    });
    const [taken] = (step as { taken: number[] }).taken;
    const chart = header.machines[1]!;
    const { source, targets, on } = chart.transitions[taken!]!;
    expect([chart.states[source]!.path, on, ...targets.map((target) => chart.states[target]!.path)]).toEqual([
      'dark',
      'lamp.on',
      'lit',
    ]);
  });

  test('is also written if only the context changes, with pointers to the fields', () => {
    const { actor, find } = houseWith();
    actor.send({ type: 'dusk' });
    expect(find({ kind: 'step', on: 'lamp.lit' })).toMatchObject({
      actor: 'house',
      change: [{ path: '/seen', value: 1 }, { path: '/owner/name', value: 'B/c~d' }, { path: '/owner/pets' }],
    });
  });

  test('is not written for an event that is ignored', () => {
    const { actor, records } = houseWith();
    const previous = records().length;
    actor.send({ type: 'meter.read' });
    expect(records().slice(previous)).toMatchObject([{ kind: 'event', from: 'outside' }]);
  });

  test('refers to the first queued event, even if others arrived since', () => {
    const { actor, records } = houseWith();
    actor.send({ type: 'dusk' });
    const lit = eventTo(records(), 'lamp.lit');
    const order = eventTo(records(), 'meter.read-now');
    expect(order.cause).toBe(lit.seq);
    const night = records().find((record) => record.kind === 'transition' && record.to === 'night');
    expect(night).toMatchObject({ cause: eventTo(records(), 'meter.read').seq });
  });

  test('has the spawn as its cause, even if events were sent to the actor before', () => {
    const { records, find } = houseWith();
    expect(find({ kind: 'transition', actor: 'lamp-1', from: '' })).toMatchObject({
      cause: find({ kind: 'spawn', actor: 'lamp-1' }).seq,
      change: [{ path: '', value: { turns: 0 } }],
    });
    expect(records()[0]).toMatchObject({ kind: 'spawn', actor: 'house', seq: 1 });
  });
});

describe('the record of an event that an effect sends', () => {
  test('has no cause, because the effect sends it asynchronously', () => {
    const { actor, records } = houseWith();
    actor.send({ type: 'dusk' });
    expect(eventTo(records(), 'meter.read')).not.toHaveProperty('cause');
  });
});

describe('the record of a timer', () => {
  test('is written when it starts, with its state, and when it has elapsed', async () => {
    const { actor, records, find } = houseWith();
    actor.send({ type: 'dusk' });
    expect(find({ kind: 'timer-started' })).toMatchObject({ actor: 'lamp-1', timer: 'glow', state: 'lit', ms: 40 });
    await expect.poll(() => records().some(({ kind }) => kind === 'timer')).toBe(true);
    const elapsed = find({ kind: 'timer' });
    expect(records().find(({ seq }) => seq > elapsed.seq)).toMatchObject({
      kind: 'transition',
      to: 'dark',
      cause: elapsed.seq,
    });
  });
});

describe('an omitted event', () => {
  test('is not recorded, and neither is its change of the context, until a state changes', () => {
    const { actor, records, lampRef, header } = houseWith({ omits: ['lamp.turn'] });
    expect(header.omits).toEqual(['lamp.turn']);
    actor.send({ type: 'dusk' });
    const previous = records().length;
    lampRef().send({ type: 'lamp.turn' } as never);
    lampRef().send({ type: 'lamp.turn' } as never);
    expect(records()).toHaveLength(previous);
    lampRef().send({ type: 'lamp.off' } as never);
    expect(records().find((record) => record.kind === 'transition' && record.to === 'out')).toMatchObject({
      change: [{ path: '/turns', value: 3 }],
    });
  });
});

describe('the data of a recorded event', () => {
  test('is redacted and truncated, while observers receive the original data', () => {
    const { actor, records, seen } = houseWith({ secrets: ['hunter2hunter2'] });
    const list = Array.from({ length: 40 }, (_, i) => i);
    actor.send({ type: 'dusk', password: 'x', note: 'it is hunter2hunter2', list } as never);
    const sentEvent = eventTo(records(), 'dusk').event;
    expect(sentEvent).toMatchObject({ password: '[redacted]', note: 'it is [redacted]' });
    expect(sentEvent.list).toHaveLength(17);
    expect(eventTo(seen, 'dusk').event).toMatchObject({ password: 'x', list });
  });
});

test('the name of a state contains the full path of every region', () => {
  expect(stateName({ a: { b: 'c' } })).toBe('a.b.c');
  expect(stateName({ p: { x: 'on', y: { z: 'deep' } } })).toBe('p.x.on | p.y.z.deep');
  expect(stateName({ p: {} })).toBe('p');
  expect(stateName(undefined)).toBe('');
});

test('the header of a trace describes guards in words', () => {
  const machine = setup({ guards: { dry: () => true, warm: () => true } }).createMachine({
    id: 'weather',
    initial: 'day',
    states: {
      day: {
        on: {
          walk: [
            { guard: not('dry'), target: 'night' },
            { guard: stateIn('day') as never, target: 'night' },
          ],
        },
      },
      night: {},
    },
  });
  const sink = memorySink();
  createRecorder({ program: 'test', sinks: [sink], machines: [machine] });
  const [chart] = (sink.lines[0] as TraceHeader).machines;
  expect(chart!.transitions.map(({ guard }) => guard)).toEqual(['not dry', 'in day']);
});

test('a sink that throws an error does not affect the actors or other sinks, and is reported once', async () => {
  const warnings: string[] = [];
  const warned = (warning: Error): void => void warnings.push(warning.message);
  process.on('warning', warned);
  const thrower: TraceSink = {
    write: () => {
      throw new Error('no room');
    },
    flush() {},
    close() {},
  };
  const [wholeSink, secondSink] = [memorySink(), memorySink()];
  for (const sinks of [[wholeSink], [thrower, secondSink]]) {
    const { actor } = houseWith({ sinks });
    actor.send({ type: 'dusk' });
    actor.stop();
  }
  expect(secondSink.lines.length).toBeGreaterThan(5);
  expect(secondSink.lines.map(({ kind }) => kind)).toEqual(wholeSink.lines.map(({ kind }) => kind));
  await new Promise((resolve) => setImmediate(resolve));
  process.off('warning', warned);
  expect(warnings).toEqual(['trace: no room']);
});

test('an event that a chart does not declare in its state is recorded as unexpected, but not one that the chart ignores or accepts conditionally', () => {
  const valve = setup({ guards: { never: () => false } }).createMachine({
    id: 'valve',
    initial: 'shut',
    on: { 'gauge.*': {} },
    states: {
      shut: { on: { 'valve.open': 'open', 'valve.shut': {} } },
      open: { on: { 'valve.shut': { guard: 'never' } } },
    },
  });
  const records: TraceRecord[] = [];
  const recorder = createRecorder({ program: 'test', now: () => 0 });
  recorder.observe((record) => records.push(record));
  const actor = startRoot(valve, { id: 'valve', input: undefined, recorder, onError: () => {} });
  for (const type of ['valve.shut', 'gauge.read', 'valve.open', 'valve.shut', 'valve.open', 'valve.burst']) {
    actor.send({ type } as never);
  }
  expect(records.filter(({ kind }) => kind === 'unexpected')).toEqual([
    { seq: expect.any(Number), t: 0, kind: 'unexpected', actor: 'valve', on: 'valve.open', state: 'open', cause: 8 },
    { seq: expect.any(Number), t: 0, kind: 'unexpected', actor: 'valve', on: 'valve.burst', state: 'open', cause: 10 },
  ]);
});
