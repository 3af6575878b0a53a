import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { uncaughtErrors } from '../../../../test/harness/uncaught-errors.ts';
import { type AdmissionOptions, type Admitted, createAdmission, groupOfPeer } from './ads-admission.ts';
import { KnownNodes } from './known-nodes.ts';

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

const me = '10.0.0.1:40000';
/** From a stream's beginning to its first request. */
const sayMs = 5;

/** Outcomes of streams in chronological order: `name at ms`. */
function given(perSecond: number, slots: Pick<AdmissionOptions, 'slots' | 'onQueued' | 'onEmptied'> = {}) {
  const origin = performance.now();
  const told: string[] = [];
  const known = new KnownNodes(() => performance.now());
  const admission = createAdmission({ perSecond, now: () => performance.now(), known, ...slots });
  /** A node was served there, and is gone. */
  const served = (peer: string, node = 'a node'): void => {
    known.acknowledged(groupOfPeer(peer), node);
    known.disconnected(groupOfPeer(peer), node);
  };
  const at = (): number => Math.round(performance.now() - origin);
  const admitted = new Map<string, Admitted>();
  /** @param node what its first request says soon, or not at all */
  const ask = (name: string, peer = me, node?: string): (() => void) =>
    admission.ask(
      peer,
      (stream) => {
        admitted.set(name, stream);
        told.push(`${name} at ${at()}`);
      },
      () => void told.push(`${name} refused at ${at()}`),
      (named) => node !== undefined && setTimeout(() => named(node), sayMs),
    );
  return { admission, served, told, ask, admitted };
}

test('streams within the rate begin at once', () => {
  const { ask, told } = given(10);
  for (let i = 0; i < 5; i++, vi.advanceTimersByTime(100)) ask(`${i}`);
  expect(told).toEqual(['0 at 0', '1 at 100', '2 at 200', '3 at 300', '4 at 400']);
});

test('streams beyond it are spaced, and refused when they would wait for more than a second', () => {
  const { ask, told } = given(2);
  for (const name of ['a', 'b', 'c', 'd']) ask(name);
  expect(told).toEqual(['a at 0', 'd refused at 0']);
  vi.advanceTimersByTime(2_000);
  expect(told.slice(2)).toEqual(['b at 500', 'c at 1000']);
});

test('an event loop that is late costs nobody his turn', () => {
  let late = 0;
  const told: string[] = [];
  const admission = createAdmission({
    ...{ perSecond: 1_000, now: () => performance.now() + late, known: new KnownNodes(() => 0) },
  });
  for (let i = 0; i < 200; i++) {
    admission.ask(
      me,
      () => void told.push('begun'),
      () => void told.push('refused'),
    );
  }
  late = 1_500;
  vi.advanceTimersByTime(5);
  expect(told).toEqual(Array.from({ length: 200 }, () => 'begun'));
});

test('no rate is no limit', () => {
  const { ask, told } = given(0);
  for (const name of ['a', 'b', 'c']) ask(name);
  expect(told).toEqual(['a at 0', 'b at 0', 'c at 0']);
});

test('addresses have their turn one after the other, however many streams one of them opens', () => {
  const { ask, told } = given(10);
  for (let i = 0; i < 50; i++) ask(`crowd ${i}`, `10.0.0.9:${40_000 + i}`);
  ask('one');
  vi.advanceTimersByTime(200);
  expect(told.filter((line) => !line.includes('refused'))).toEqual(['crowd 0 at 0', 'crowd 1 at 100', 'one at 200']);
});

test('addresses of nodes that were served before come before strangers, of whom there may be any number', () => {
  const { served, ask, told } = given(10);
  ask('first');
  served(me);
  for (let i = 0; i < 2_000; i++) ask(`stranger ${i}`, `10.1.${i >> 8}.${i & 255}:40000`);
  ask('again');
  vi.advanceTimersByTime(5_000);
  expect(told[1]).toBe('again at 100');
  // Each is answered within its second.
  expect(told).toHaveLength(2_002);
  expect(told.filter((line) => !line.includes('refused')).length).toBeLessThan(15);
});

test('streams that have not said who they are have a bound by address', () => {
  const { ask, told, admitted } = given(0);
  for (let i = 0; i < 1_044; i++) ask(`${i}`);
  expect(told.filter((line) => line.includes('refused'))).toHaveLength(44);
  // A stream that is identified and then ends counts once.
  for (const name of ['0', '0', '1']) admitted.get(name)!.identified();
  for (const name of ['a', 'b', 'c']) ask(name);
  expect(told.slice(1_044)).toEqual(['a at 0', 'b at 0', 'c refused at 0']);
  ask('other', '[::ffff:10.0.0.2]:1');
  expect(told.at(-1)).toBe('other at 0');
});

test('within an address connections have their turn one after the other, however many streams one of them opens', () => {
  const { ask, told } = given(10);
  for (let i = 0; i < 50; i++) ask(`crowd ${i}`);
  ask('one', '10.0.0.1:40001');
  vi.advanceTimersByTime(200);
  expect(told.filter((line) => !line.includes('refused'))).toEqual(['crowd 0 at 0', 'crowd 1 at 100', 'one at 200']);
  vi.advanceTimersByTime(5_000);
  // Each is answered once.
  expect(told).toHaveLength(51);
});

test('a crowd that says nothing leaves places for nodes that come back to its address by connections of their own', () => {
  const { served, ask, told, admitted } = given(0);
  ask('node', '10.0.0.1:40001');
  admitted.get('node')!.identified();
  served('10.0.0.1:40001');
  for (let i = 0; i < 2_000; i++) ask(`crowd ${i}`);
  expect(told.filter((line) => line.includes('refused'))).toHaveLength(1_000);
  ask('again', '10.0.0.1:40002');
  ask('twice', '10.0.0.1:40002');
  expect(told.slice(-2)).toEqual(['again at 0', 'twice refused at 0']);
  for (let i = 0; i < 1_000; i++) ask(`crowd ${i}`, `10.0.0.1:${50_000 + i}`);
  expect(told.slice(-1_000).filter((line) => line.includes('refused'))).toHaveLength(801);
  // Nobody was served at that other address.
  for (let i = 0; i < 1_001; i++) ask(`crowd ${i}`, `10.0.0.7:${1_000 + i}`);
  expect(told.at(-1)).toContain('refused');
});

/** As many as 45 a second for eight seconds, each by a connection of its own. */
function neighbour(ask: (name: string, peer: string) => () => void, goneAfterMs: number): void {
  for (let i = 0; i < 360; i++) {
    setTimeout(() => setTimeout(ask(`useless ${i}`, `10.0.0.1:${50_000 + i}`), goneAfterMs), i * (1_000 / 45));
  }
}

test('a stream that is gone has no turn any more: those after it come the sooner', () => {
  const { ask, told } = given(25);
  neighbour(ask, 300);
  for (let i = 0; i < 8; i++) {
    vi.advanceTimersByTime(1_000);
    ask(`known ${i}`, `10.0.0.1:${40_000 + i}`);
  }
  vi.advanceTimersByTime(3_000);
  const known = told.filter((line) => line.startsWith('known')).map((line) => Number(line.split(' at ')[1]));
  expect(told.filter((line) => line.includes('refused'))).toEqual([]);
  expect(known).toHaveLength(8);
  expect(Math.max(...known.map((at, i) => at - (i + 1) * 1_000))).toBeLessThan(500);
});

test('a connection that was refused, and asks again, comes before those of its address that came later', () => {
  const { ask, told } = given(25);
  neighbour(ask, 60_000);
  vi.advanceTimersByTime(4_030);
  ask('known', '10.0.0.1:40000');
  expect(told.at(-1)).toBe('known refused at 4030');
  vi.advanceTimersByTime(1_000);
  ask('known', '10.0.0.1:40000');
  vi.advanceTimersByTime(100);
  expect(told.filter((line) => line.startsWith('known at'))).toHaveLength(1);
  // Once: what it opens next is one of many again.
  for (const name of ['known 2', 'known 3']) ask(name, '10.0.0.1:40000');
  vi.advanceTimersByTime(100);
  expect(told.filter((line) => /^known \d at/.test(line))).toEqual([]);
});

/** What became of `node`, which asks each second for eight, each time by a connection of its own: how long it waited. */
function waitsOf(told: readonly string[], name: string): string[] {
  return told
    .filter((line) => line.startsWith(`${name} `))
    .map((line) =>
      line.includes('refused') ? 'refused' : Number(line.split(' at ')[1]) % 1_000 < 200 ? 'soon' : 'late',
    );
}

const soon = (times: number): string[] => Array.from({ length: times }, () => 'soon');

test('a node that was served before has its turn first, however many new ids come beside it from its address', () => {
  const { served, ask, told } = given(25);
  for (let i = 0; i < 2; i++) served(me, 'node');
  for (let i = 0; i < 8_000; i++) {
    setTimeout(() => {
      served(me, `new ${i}`);
      ask(`new ${i}`, `10.0.0.1:${10_000 + (i % 20_000)}`, `newer ${i}`);
    }, i);
  }
  for (let i = 1; i <= 8; i++) setTimeout(() => ask('node', `10.0.0.1:${40_000 + i}`, 'node'), i * 1_000);
  vi.advanceTimersByTime(10_000);
  expect(waitsOf(told, 'node')).toEqual(soon(8));
});

test('or however many say nothing', () => {
  const { served, ask, told } = given(25);
  served(me, 'node');
  neighbour(ask, 60_000);
  for (let i = 1; i <= 7; i++) setTimeout(() => ask('node', `10.0.0.1:${40_000 + i}`, 'node'), i * 1_000);
  vi.advanceTimersByTime(10_000);
  expect(waitsOf(told, 'node')).toEqual(soon(7));
});

test('and a node of another address that was served, beside addresses that were as well', () => {
  const { served, ask, told } = given(25);
  served(me, 'node');
  for (let i = 0; i < 100; i++) served(`10.0.1.${i}:1`, 'other');
  for (let i = 0; i < 8_000; i++) setTimeout(() => ask('other', `10.0.1.${i % 100}:${10_000 + i}`, `new ${i}`), i);
  for (let i = 1; i <= 7; i++) setTimeout(() => ask('node', `10.0.0.1:${40_000 + i}`, 'node'), i * 1_000);
  vi.advanceTimersByTime(10_000);
  expect(waitsOf(told, 'node')).toEqual(soon(7));
});

test('an id has one place, however many say that it is theirs: other nodes of its address have theirs', () => {
  const { served, ask, told } = given(25);
  for (const node of ['node', 'spoofed']) served(me, node);
  for (let i = 0; i < 8_000; i++) setTimeout(() => ask('spoofer', `10.0.0.1:${10_000 + i}`, 'spoofed'), i);
  for (let i = 1; i <= 7; i++) setTimeout(() => ask('node', `10.0.0.1:${40_000 + i}`, 'node'), i * 1_000);
  // A new node beside them: one of many that say the same does not come before it.
  for (let i = 1; i <= 7; i++) setTimeout(() => ask('new', `10.0.0.1:${50_000 + i}`, `new ${i}`), i * 1_000);
  // Nor is a stranger elsewhere kept out.
  for (let i = 1; i <= 7; i++) setTimeout(() => ask('stranger', `10.0.0.2:${i}`), i * 1_000);
  vi.advanceTimersByTime(10_000);
  expect(waitsOf(told, 'node')).toEqual(soon(7));
  expect(waitsOf(told, 'new')).not.toContain('refused');
  expect(waitsOf(told, 'stranger')).not.toContain('refused');
});

test('within an address nodes have their turn one after the other, however many connections one of them opens', () => {
  const { ask, told } = given(10);
  for (let i = 0; i < 5; i++) ask('first', `10.0.0.1:${1_000 + i}`, 'first');
  ask('other', '10.0.0.1:2000', 'other');
  vi.advanceTimersByTime(2_000);
  expect(told.slice(0, 3)).toEqual(['first at 0', 'first at 100', 'other at 200']);
});

test('who waits when it ends is refused', () => {
  const { admission, ask, told } = given(1);
  ask('a');
  ask('b');
  admission.stop();
  vi.advanceTimersByTime(5_000);
  expect(told).toEqual(['a at 0', 'b refused at 0']);
});

test('a stream that cannot be begun is told of, and keeps nobody from having a turn', async () => {
  const caught = uncaughtErrors();
  const { admission, ask, told } = given(10);
  ask('a');
  admission.ask(
    me,
    () => {
      throw new Error('a bug');
    },
    () => {},
    () => {},
  );
  ask('b');
  vi.advanceTimersByTime(1_000);
  expect(told).toEqual(['a at 0', 'b at 200']);
  await Promise.resolve();
  expect(caught.map(({ error }) => String(error))).toEqual(['Error: a bug']);
});

test('without a rate as many streams are in progress as there are slots, and the others wait', () => {
  const { ask, told, admitted } = given(0, { slots: 2 });
  for (const name of ['a', 'b', 'c', 'd']) ask(name, `10.0.0.${name.charCodeAt(0)}:1`);
  expect(told).toEqual(['a at 0', 'b at 0']);
  vi.advanceTimersByTime(100);
  admitted.get('b')!.release();
  admitted.get('b')!.release();
  vi.advanceTimersByTime(100);
  expect(told.slice(2)).toEqual(['c at 100']);
});

test('a slot is free again after a second, whatever its stream does', () => {
  const { ask, told } = given(0, { slots: 1 });
  for (const name of ['a', 'b', 'c']) ask(name, `10.0.0.${name.charCodeAt(0)}:1`);
  vi.advanceTimersByTime(5_000);
  expect(told).toEqual(['a at 0', 'b at 1000', 'c at 2000']);
});

test('more slots let those begin at once that wait', () => {
  const { admission, ask, told } = given(0, { slots: 1 });
  for (const name of ['a', 'b', 'c', 'd']) ask(name, `10.0.0.${name.charCodeAt(0)}:1`);
  admission.setSlots(3);
  vi.advanceTimersByTime(1);
  expect([told.length, admission.isFull]).toEqual([3, true]);
});

test('without a rate a stream waits for half a minute before it is rejected', () => {
  const { admission, ask, told } = given(0, { slots: 1 });
  for (let i = 0; i < 40; i++) ask(`${i}`, `10.0.1.${i}:1`);
  vi.advanceTimersByTime(29_500);
  expect(told).toHaveLength(30);
  vi.advanceTimersByTime(2_000);
  expect(told).toHaveLength(40);
  expect(told.filter((line) => line.includes('refused')).length).toBeGreaterThan(7);
  expect(admission.waiting).toBe(0);
});

test('it is reported when the first stream waits, and when none waits any more', () => {
  const told: string[] = [];
  const options = { slots: 1, onQueued: () => void told.push('queued'), onEmptied: () => void told.push('emptied') };
  const { ask } = given(0, options);
  const leave = ['a', 'b', 'c'].map((name) => ask(name, `10.0.0.${name.charCodeAt(0)}:1`));
  expect(told).toEqual(['queued']);
  leave[1]!();
  vi.advanceTimersByTime(3_000);
  expect(told).toEqual(['queued', 'emptied']);
});
