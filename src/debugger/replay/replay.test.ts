import { setImmediate } from 'node:timers/promises';
import { describe, expect, test, vi } from 'vitest';
import {
  type Actor,
  type AnyStateMachine,
  assign,
  createActor,
  fromCallback,
  fromPromise,
  fromTransition,
  type Snapshot,
  sendTo,
  setup,
  spawnChild,
} from 'xstate';
import { createRecorder } from '../../runtime/trace/recorder.ts';
import type { TraceHeader, TraceLine, TraceRecord } from '../../runtime/trace/trace.ts';
import { type ReplayReport, replay } from './replay.ts';

/** Called for every action outside the machine when the run is recorded. */
const sideEffect = vi.fn<(effectName: string) => void>();

type Order = { type: 'order'; n: number };
type Fact = { type: 'fact'; n: number } | { type: 'go' } | { type: 'ask' } | { type: 'late' } | { type: 'end' };

interface Variant {
  /** Milliseconds until the machine stops. */
  readonly delay?: number;
  /** The amount that the machine adds for each fact. */
  readonly step?: number;
  readonly orders?: boolean;
  /** Whether the machine responds to requests. */
  readonly responds?: boolean;
}

/** A machine with every feature that a replay handles, and options for a different version of it. */
function shop({ delay = 100, step = 1, orders = true, responds = false }: Variant = {}): AnyStateMachine {
  const child = setup({
    types: { input: {} as { size: number }, context: {} as { size: number } },
  }).createMachine({
    id: 'till',
    context: ({ input }) => input,
    initial: 'open',
    states: { open: { on: { go: 'shut' } }, shut: { type: 'final' } },
  });
  return setup({
    types: { context: {} as { sum: number; names: string[] }, events: {} as Fact, input: {} as { names: string[] } },
    actors: {
      supplier: fromCallback<Order>(({ sendBack, receive }) => {
        sendBack({ type: 'fact', n: 1 });
        // Sent immediately, while the machine is still processing.
        receive(({ n }) => sendBack({ type: 'fact', n }));
      }),
      count: fromPromise<number>(async () => 5),
      fails: fromPromise<number>(async () => {
        throw new Error('no stock');
      }),
      total: fromTransition((sum: number) => sum + 1, 0),
      till: child,
    },
    delays: { enough: delay },
    actions: {
      write: () => sideEffect('named'),
      add: assign({ sum: ({ context, event }) => context.sum + (event.type === 'fact' ? event.n * step : 0) }),
    },
  }).createMachine({
    id: 'shop',
    context: ({ input }) => ({ sum: 0, names: input.names }),
    invoke: [
      { id: 'supplier', src: 'supplier' },
      { id: 'total', src: 'total' },
      { id: 'count', src: 'count', onSnapshot: { actions: 'add' }, onDone: { actions: 'write' } },
      {
        id: 'fails',
        src: 'fails',
        onError: { actions: assign({ names: ({ event }) => [(event.error as Error).message] }) },
      },
      { id: 'till', src: 'till', input: ({ context }) => ({ size: context.names.length }) },
    ],
    on: {
      fact: { actions: 'add' },
      end: '.closed',
      ask: responds ? { actions: sendTo('supplier', { type: 'order', n: 3 } as never) } : {},
    },
    initial: 'open',
    states: {
      open: {
        on: {
          go: {
            target: 'busy',
            actions: [
              () => sideEffect('in place'),
              spawnChild(fromPromise(async () => sideEffect('spawned in place'))),
              sendTo('supplier', orders ? { type: 'order', n: 2 } : ({ type: 'nothing' } as never)),
              sendTo('till', { type: 'go' }),
            ],
          },
        },
      },
      busy: {
        entry: sendTo(({ self }) => self, { type: 'late' }, { delay: 50 }),
        after: { enough: 'closed' },
        on: { late: { actions: assign({ sum: 100 }) } },
      },
      closed: { type: 'final' },
    },
  });
}

interface Recorded {
  readonly header: TraceHeader;
  readonly records: TraceRecord[];
}

async function record(
  drive: (send: (event: Fact) => void, stop: () => void, ended: Promise<unknown>) => Promise<void>,
): Promise<Recorded> {
  const lines: TraceLine[] = [];
  const recorder = createRecorder({
    program: 'test',
    sinks: [{ write: (line) => lines.push(JSON.parse(JSON.stringify(line)) as TraceLine), flush() {}, close() {} }],
  });
  const actor = createActor(shop(), { id: 'shop', input: { names: ['a', 'b'] }, inspect: recorder.inspect });
  const completed = new Promise<void>((complete) => void actor.subscribe({ complete }));
  actor.start();
  await drive(
    (event) => actor.send(event),
    () => void actor.stop(),
    completed,
  );
  const [header, ...records] = lines;
  return { header: header as TraceHeader, records: records as TraceRecord[] };
}

/** Waits for the timers of the run instead of a fixed time, which would depend on the load of the host. */
const wholeRun = (): Promise<Recorded> =>
  record(async (send, _, completed) => {
    // All promises that are settled by now are reported before this one.
    await setImmediate();
    send({ type: 'ask' });
    send({ type: 'go' });
    await completed;
  });

function replayRecorded({ header, records }: Recorded, variant?: Variant): ReplayReport {
  return replay(header, records, [shop(variant)]);
}

const eventOf = (record: TraceRecord | undefined): string | undefined =>
  record && `${record.kind} ${'actor' in record ? record.actor : `${record.from}>${record.to} ${record.event.type}`}`;

describe('a replay with the same machine', () => {
  test('reproduces the recording without side effects', async () => {
    const run = await wholeRun();
    expect(sideEffect.mock.calls.map(([effectName]) => effectName)).toEqual(['named', 'in place', 'spawned in place']);
    sideEffect.mockClear();
    const report = replayRecorded(run);
    expect(report.difference).toBeUndefined();
    expect(report).toMatchObject({ records: run.records.length, compared: run.records.length, warnings: [] });
    expect(run.records.map(eventOf)).toEqual(
      expect.arrayContaining([
        'event shop>shop late',
        'event shop/count>shop xstate.snapshot.count',
        'timer shop',
        'effect shop',
        'stop shop/fails',
        'stop till',
        'event shop/supplier>shop fact',
      ]),
    );
    expect(sideEffect).not.toHaveBeenCalled();
  });

  test('reproduces a trace that was cut off by a crash', async () => {
    const { header, records } = await wholeRun();
    for (let length = 0; length <= records.length; length++) {
      const report = replayRecorded({ header, records: records.slice(0, length) });
      expect(report.difference).toBeUndefined();
      expect(report.compared).toBe(length);
    }
  });

  test('stops the machine when it was stopped from outside', async () => {
    const run = await record(async (_send, stop) => stop());
    expect(eventOf(run.records.at(-1))).toBe('stop shop');
    const report = replayRecorded(run);
    expect(report.difference).toBeUndefined();
    expect(report.compared).toBe(run.records.length);
  });
});

describe('a replay with a different machine', () => {
  test.each<[string, Variant, object]>([
    ['has another delay', { delay: 90 }, { field: '/ms', actor: 'shop' }],
    ['computes another value', { step: 2 }, { field: '/change/sum', actor: 'shop' }],
  ])('reports the first difference if the machine %s', async (_, variant, expected) => {
    expect(replayRecorded(await wholeRun(), variant).difference).toMatchObject(expected);
  });

  test('shows the recorded and the replayed event with the preceding records if the machine sends another event', async () => {
    const { difference } = replayRecorded(await wholeRun(), { orders: false });
    expect(eventOf(difference?.recorded)).toBe('event shop>shop/supplier order');
    expect(eventOf(difference?.replayed)).toBe('event shop>shop/supplier nothing');
    expect(difference?.field).toBe('/event/type');
    expect(difference?.before).toHaveLength(4);
    expect(difference?.seq).toBe(difference?.recorded?.seq);
  });

  test('reports an event that was not recorded, if the next recorded event is from outside', async () => {
    const run = await wholeRun();
    const { difference } = replayRecorded(run, { responds: true });
    expect(eventOf(difference?.replayed)).toBe('step shop');
    expect(difference?.recorded).toBeUndefined();
    expect(eventOf(run.records[difference!.seq - 1])).toBe('event outside>shop go');
  });

  test('reports a recorded timer that the machine does not define', async () => {
    const { header, records } = await wholeRun();
    const timer = records.find(({ kind }) => kind === 'timer')!;
    const renamedTimers = records.map(
      (record) => (record === timer ? { ...record, timer: 'other' } : record) as TraceRecord,
    );
    const { difference } = replayRecorded({ header, records: renamedTimers });
    expect(difference).toMatchObject({ seq: timer.seq, why: 'timer other of shop is not running' });
    expect(difference?.replayed).toBeUndefined();
  });
});

describe('the replay of an unsuitable trace', () => {
  test('is rejected if the trace starts after the beginning of the run', async () => {
    const { header, records } = await wholeRun();
    expect(() => replayRecorded({ header, records: records.slice(2) })).toThrow(
      /expected record 1 first, got record 3/,
    );
  });

  test('is rejected if the trace has a gap', async () => {
    const { header, records } = await wholeRun();
    expect(() => replayRecorded({ header, records: records.toSpliced(4, 2) })).toThrow(/records 5 to 6 are missing/);
  });

  test('is rejected if the trace contains an unknown machine', async () => {
    const { header, records } = await wholeRun();
    expect(() => replay(header, records, [])).toThrow(/runs machine 'shop', which is unknown/);
  });
});

test('the replay warns of truncated data', async () => {
  const { header, records } = await wholeRun();
  const names = Array.from({ length: 16 }, (_, i) => `n${i}`);
  const cutRecords = JSON.parse(
    JSON.stringify(records)
      .replaceAll('["a","b"]', JSON.stringify([...names, '… (20 items)']))
      .replaceAll('"size":2', '"size":20'),
  ) as TraceRecord[];
  const report = replayRecorded({ header, records: cutRecords });
  expect(report.difference).toBeUndefined();
  expect(report.warnings).toEqual(['record 1: /input/names is truncated in the trace']);
});

test('the replay excludes an actor whose messages the trace omits, and replays the other actors', async () => {
  const { header, records } = await wholeRun();
  const omitting = { ...header, omits: ['fact'] };
  const report = replayRecorded({ header: omitting, records });
  expect(report).toMatchObject({ records: records.length, compared: 0 });
  expect(report.warnings).toEqual([expect.stringMatching(/^shop: not replayed, because the trace omits fact/)]);
});

describe('the replay of the roots of a program', () => {
  const child = setup({}).createMachine({
    id: 'child',
    initial: 'a',
    states: { a: { on: { go: 'b' } }, b: {} },
  });
  const machine = setup({
    types: { events: {} as { type: 'go' } | { type: 'fail' } },
    actors: { child },
    actions: {
      fail: () => {
        throw new Error('broken on purpose');
      },
    },
  }).createMachine({
    id: 'root',
    initial: 'a',
    invoke: { id: 'child', src: 'child' },
    entry: sendTo('child', { type: 'go' }),
    states: { a: { on: { go: 'b', fail: { actions: 'fail' } } }, b: {} },
  });

  /** Records actions of a program on actors of the machine, and replays them. */
  function run(program: (create: (id: string, snapshot?: Snapshot<unknown>) => Actor<typeof machine>) => void) {
    const lines: TraceLine[] = [];
    const recorder = createRecorder({
      program: 'test',
      foreign: true,
      sinks: [{ write: (line) => lines.push(JSON.parse(JSON.stringify(line)) as TraceLine), flush() {}, close() {} }],
    });
    program((id, snapshot) => {
      const actor = createActor(machine, {
        id,
        inspect: recorder.inspect,
        ...(snapshot !== undefined && { snapshot }),
      });
      actor.subscribe({ error: () => {} });
      return actor;
    });
    recorder.close();
    const [header, ...records] = lines;
    return { records, report: () => replay(header as TraceHeader, records as TraceRecord[], [machine]) };
  }

  test('starts roots in the recorded order even if they were created in another order, one of them with a waiting event', () => {
    const { records, report } = run((create) => {
      const [first, secondActor] = [create('first'), create('second')];
      secondActor.send({ type: 'go' });
      secondActor.start();
      first.start();
      first.send({ type: 'go' });
    });
    expect(report()).toMatchObject({ compared: records.length });
    expect(report().difference).toBeUndefined();
  });

  test('does not start roots that never started', () => {
    const { records, report } = run((create) => {
      create('never').getSnapshot();
      create('other').start().send({ type: 'go' });
    });
    expect(report()).toMatchObject({ compared: records.length });
    expect(report().difference).toBeUndefined();
  });

  test('throws the recorded error of an action', () => {
    const { records, report } = run((create) => void create('failing').start().send({ type: 'fail' }));
    expect(records.at(-1)).toMatchObject({ kind: 'stop', status: 'error', error: 'broken on purpose' });
    expect(report().difference).toBeUndefined();
  });

  test('rejects roots that start from a persisted snapshot', () => {
    const { report } = run((create) => {
      const savedActor = create('saved').start();
      create('restored', savedActor.getPersistedSnapshot()).start();
    });
    expect(report).toThrow('restored was created from a persisted snapshot, which a trace does not contain');
  });
});
