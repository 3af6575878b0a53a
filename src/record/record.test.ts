import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { assign, createActor, createMachine, sendTo, setup, stopChild } from 'xstate';
import { collectGarbage } from '../../test/harness/collect-garbage.ts';
import { parseTraceLine } from '../debugger/trace/trace-line.ts';
import type { TraceLine, TraceRecord } from '../runtime/trace/trace.ts';
import { recordToFile } from './node.ts';
import { type Recording, type RecordOptions, record } from './record.ts';

const linesOf = (text: string): TraceLine[] =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => {
      const parsed = parseTraceLine(line);
      if (typeof parsed === 'string') throw new Error(`${parsed}: ${line.slice(0, 200)}`);
      return parsed;
    });
const recordsIn = (text: string): TraceRecord[] => linesOf(text).slice(1) as TraceRecord[];

const keeper = setup({
  types: { context: {} as { kept: unknown }, events: {} as { type: 'keep'; data: unknown } },
}).createMachine({
  id: 'keeper',
  context: { kept: null },
  on: { keep: { actions: assign({ kept: ({ event }) => event.data }) } },
});

/** Records a `keeper` machine that stores these values in order. */
function recordValues(
  values: readonly unknown[],
  options: Partial<RecordOptions> = {},
): { recording: Recording; records: TraceRecord[] } {
  const recording = record({ program: 'test', machines: [keeper], onProblem: () => {}, ...options });
  const actor = createActor(keeper, { id: 'keeper', inspect: recording.inspect }).start();
  for (const data of values) actor.send({ type: 'keep', data });
  return { recording, records: recordsIn(recording.text()) };
}
const valueOf = (records: readonly TraceRecord[]): unknown =>
  records.flatMap((line) => (line.kind === 'step' ? (line.change ?? []) : [])).at(-1)?.value;

test('a recording contains the actions of an actor, and the definition and source of its machine', () => {
  const { recording, records } = recordValues(['a']);
  const [header] = linesOf(recording.text());
  expect(header).toMatchObject({
    kind: 'header',
    program: 'test',
    foreign: true,
    machines: [{ id: 'keeper' }],
    pid: process.pid,
  });
  expect(records.map(({ kind }) => kind)).toEqual(['spawn', 'step', 'event', 'step']);
  expect(valueOf(records)).toBe('a');
});

test('a recording has different names for actors with the same ID below different parents', () => {
  const child = createMachine({ id: 'child' });
  const parent = setup({ actors: { child } }).createMachine({ id: 'parent', invoke: { id: 'fetcher', src: 'child' } });
  const recording = record({ program: 'test', machines: [parent] });
  for (const id of ['one', 'two']) createActor(parent, { id, inspect: recording.inspect }).start();
  const spawnedActors = recordsIn(recording.text()).flatMap((line) => (line.kind === 'spawn' ? line.actor : []));
  expect(spawnedActors).toEqual(['one', 'one/fetcher', 'two', 'two/fetcher']);
});

describe('the recording of a context with complex data', () => {
  const ring: Record<string, unknown> = { name: 'ring' };
  ring.self = ring;
  ring.list = [ring];
  const wideArray = (depth: number): unknown =>
    depth === 0 ? 1 : Array.from({ length: 30 }, () => wideArray(depth - 1));
  const throwing = {
    fine: 1,
    get broken(): never {
      throw new Error('do not look');
    },
  };
  const hostileProxy = new Proxy(
    {},
    {
      ownKeys: () => {
        throw new Error('no keys');
      },
    },
  );

  test.each<[string, unknown, unknown]>([
    ['supports a cyclic context', ring, { name: 'ring', self: '[cycle]', list: ['[cycle]'] }],
    ['supports a field that throws when it is read', throwing, { fine: 1, broken: '[unreadable]' }],
    ['supports a proxy that throws on any access', hostileProxy, '[unreadable]'],
    [
      'supports a toJSON method',
      {
        toJSON: () => {
          throw new Error('no JSON');
        },
        a: 1,
      },
      { a: 1 },
    ],
    [
      'supports values that JSON cannot represent',
      { n: 10n, d: new Date(0), m: new Map([[1, 2]]), s: Symbol('x'), e: new Error('bad') },
      { n: '10', d: '[Date]', m: '[Map]', s: 'Symbol(x)', e: 'bad' },
    ],
    ['supports a field named __proto__', JSON.parse('{"__proto__":{"polluted":true},"a":1}'), { a: 1 }],
  ])('%s', (_, data, expected) => {
    const { records } = recordValues(['before', data]);
    expect(valueOf(records)).toEqual(expected);
    expect(records).toHaveLength(6);
  });

  test('has a limited record size', () => {
    const { recording, records } = recordValues([{ text: 'x'.repeat(50_000_000) }, wideArray(5)], { level: 'full' });
    expect(records).toHaveLength(6);
    for (const line of recording.text().split('\n')) expect(line.length).toBeLessThan(100_000);
    expect(recording.text()).toContain('50000000 characters');
  });

  test('takes milliseconds even if all values reference each other', () => {
    const sharedObjects = Array.from({ length: 40 }, () => ({}) as Record<string, unknown>);
    for (const one of sharedObjects) for (const [i, other] of sharedObjects.entries()) one[`k${i}`] = other;
    const startUsage = process.cpuUsage();
    recordValues([sharedObjects]);
    const { user } = process.cpuUsage(startUsage);
    expect(user / 1_000).toBeLessThan(2_000);
  });
});

test('a recording omits secrets recognized by field name, format, environment or option', () => {
  vi.stubEnv('SHOP_TOKEN', 'from-the-environment');
  onTestFinished(() => void vi.unstubAllEnvs());
  const data = {
    password: 'hunter22',
    note: 'Authorization: Bearer abc.def.ghi and from-the-environment, told-by-hand',
    key: '-----BEGIN PRIVATE KEY-----\nMIIabc\n-----END PRIVATE KEY-----',
  };
  const { recording } = recordValues([data], { secrets: ['told-by-hand'] });
  const text = recording.text();
  for (const secret of ['hunter22', 'abc.def.ghi', 'from-the-environment', 'told-by-hand', 'MIIabc']) {
    expect(text).not.toContain(secret);
  }
  expect(text).toContain('[redacted]');
});

describe('the writer of a recording', () => {
  test('receives complete lines in order, one call at a time', async () => {
    const writtenTexts: string[] = [];
    let activeCount = 0;
    const write = async (text: string): Promise<void> => {
      expect(++activeCount).toBe(1);
      await new Promise((resolve) => setTimeout(resolve, 5));
      writtenTexts.push(text);
      activeCount--;
    };
    const { recording } = recordValues(['a', 'b'], { write });
    await recording.close();
    expect(writtenTexts.join('')).toBe(recording.text());
    expect(recording.lost()).toBe(0);
  });

  test.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('disk full');
      },
    ],
    ['rejects', () => Promise.reject(new Error('disk full'))],
  ])('is reported once, and its lost records are counted, if it %s', async (_, write) => {
    const problems: string[] = [];
    const recording = record({ program: 'test', write, onProblem: (message) => problems.push(message) });
    const actor = createActor(keeper, { id: 'keeper', inspect: recording.inspect }).start();
    for (let i = 0; i < 20; i++) {
      actor.send({ type: 'keep', data: i });
      await Promise.resolve();
    }
    await recording.close();
    expect(actor.getSnapshot().context).toEqual({ kept: 19 });
    expect(problems).toEqual(['records lost: disk full']);
    expect(recording.lost()).toBe(1 + 2 + 40);
  });

  test('uses at most 4 MiB of memory if it never resolves', () => {
    const recording = record({
      program: 'test',
      write: () => new Promise(() => {}),
      keep: 10,
      level: 'full',
      onProblem: () => {},
    });
    const actor = createActor(keeper, { id: 'keeper', inspect: recording.inspect }).start();
    for (let i = 0; i < 2_000; i++) actor.send({ type: 'keep', data: `${i}${'x'.repeat(5_000)}` });
    expect(recording.lost()).toBeGreaterThan(1_000);
    expect(linesOf(recording.text())).toHaveLength(11);
  });
});

test('a recording has different names for two running root actors with one ID', () => {
  const recording = record({ program: 'test', machines: [keeper] });
  const start = () => createActor(keeper, { id: 'one', inspect: recording.inspect }).start();
  const first = start();
  start().stop();
  first.stop();
  // After the end of an actor its name can be used again.
  start();
  const actorNames = (kind: 'spawn' | 'stop') =>
    recordsIn(recording.text()).flatMap((line) => (line.kind === kind ? [line.actor] : []));
  expect(actorNames('spawn')).toEqual(['one', 'one (2)', 'one']);
  expect(actorNames('stop')).toEqual(['one (2)', 'one']);
});

test('a recording releases ended actors, because a program can have a root actor per request', async () => {
  const recording = record({ program: 'test', machines: [keeper], keep: 10, onProblem: () => {} });
  const stoppedActors = Array.from({ length: 200 }, (_, number) => {
    const actor = createActor(keeper, { id: `request ${number}`, inspect: recording.inspect }).start();
    actor.send({ type: 'keep', data: number });
    actor.stop();
    return new WeakRef(actor);
  });
  // The last actor may still be referenced by the caller's stack.
  const alive = async (): Promise<number> => {
    await collectGarbage();
    return stoppedActors.filter((actor) => actor.deref() !== undefined).length;
  };
  await expect.poll(alive).toBeLessThan(5);
  expect(recordsIn(recording.text())).toHaveLength(10);
});

describe('the recording of a root actor that fails', () => {
  const failing = setup({
    types: { events: {} as { type: 'fail' } },
    actions: {
      fail: () => {
        throw new Error('broken on purpose');
      },
    },
  });
  const onEvent = failing.createMachine({ id: 'failing', on: { fail: { actions: 'fail' } } });
  const failingAtStart = failing.createMachine({ id: 'failing', entry: 'fail' });
  const stopRecords = (text: string): TraceRecord[] => recordsIn(text).filter(({ kind }) => kind === 'stop');
  const failedStop = [expect.objectContaining({ actor: 'failing', status: 'error', error: 'broken on purpose' })];

  test.each([
    ['by an event', onEvent, 'event'],
    ['by its start', failingAtStart, 'spawn'],
  ])(
    'contains one end with its cause (%s), and listeners are called as without a recording',
    async (_, machine, cause) => {
      const recording = record({ program: 'test', machines: [machine] });
      const actor = createActor(machine, { id: 'failing', inspect: recording.inspect });
      const errors: unknown[] = [];
      actor.subscribe({ error: (error) => errors.push(error) });
      actor.start();
      actor.send({ type: 'fail' });
      expect(stopRecords(recording.text())).toEqual(failedStop);
      const [end] = stopRecords(recording.text()) as { cause?: number }[];
      expect(recordsIn(recording.text()).find(({ seq }) => seq === end?.cause)?.kind).toBe(cause);
      await Promise.resolve();
      actor.send({ type: 'fail' });
      expect(stopRecords(recording.text())).toEqual(failedStop);
      expect(errors).toHaveLength(1);
    },
  );

  test('contains the end before the next record, even if the file is not closed', async () => {
    const writtenTexts: string[] = [];
    const recording = record({ program: 'test', machines: [onEvent], write: (text) => void writtenTexts.push(text) });
    const actor = createActor(onEvent, { id: 'failing', inspect: recording.inspect });
    actor.subscribe({ error: () => {} });
    actor.start().send({ type: 'fail' });
    createActor(onEvent, { id: 'other', inspect: recording.inspect }).start();
    const records = recordsIn(recording.text());
    const end = records.findIndex(({ kind }) => kind === 'stop');
    const other = records.findIndex((entry) => entry.kind === 'spawn' && entry.actor === 'other');
    expect(end).toBeGreaterThan(0);
    expect(end).toBeLessThan(other);
    await vi.waitFor(() => expect(writtenTexts.join('')).toContain('broken on purpose'));
  });
});

test('a closed recording ignores events', async () => {
  const { recording } = recordValues([]);
  await recording.close();
  const textBefore = recording.text();
  createActor(keeper, { id: 'late', inspect: recording.inspect }).start();
  expect(recording.text()).toBe(textBefore);
});

test('a file that Node records to is readable only by its owner', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'chartpilot-record-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'test.trace');
  const recording = recordToFile(path, { program: 'test', machines: [keeper] });
  createActor(keeper, { id: 'keeper', inspect: recording.inspect }).start();
  await recording.close();
  expect(readFileSync(path, 'utf8')).toBe(recording.text());
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

test('a recording marks an event to an ended actor as not delivered, with no effects', () => {
  const child = createMachine({ id: 'child', initial: 'a', states: { a: { on: { go: 'b' } }, b: {} } });
  const parent = setup({ actors: { child } }).createMachine({
    id: 'parent',
    context: ({ spawn }) => ({ ref: spawn('child', { id: 'kid' }) }),
    on: {
      poke: { actions: sendTo(({ context }) => context.ref, { type: 'go' }) },
      end: { actions: stopChild('kid') },
    },
  });
  const recording = record({ program: 'test', machines: [parent, child], onProblem: () => {} });
  const actor = createActor(parent, { id: 'parent', inspect: recording.inspect }).start();
  for (const type of ['poke', 'end', 'poke']) actor.send({ type });
  const records = recordsIn(recording.text());
  const eventsToKid = records.filter((line) => line.kind === 'event' && line.to === 'parent/kid');
  expect(eventsToKid.map((line) => line.kind === 'event' && line.undelivered)).toEqual([undefined, true]);
  expect(records.filter((line) => line.kind === 'unexpected')).toEqual([]);
  // The parent references the actor by its name in the trace.
  expect(JSON.stringify(records)).toContain('"ref":"[Actor parent/kid]"');
});
