import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createAdmission } from './ads-admission.ts';

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

const me = '10.0.0.1:40000';

/** What became of streams, in the order in which it did: `name at ms`. */
function given(perSecond: number) {
  const origin = performance.now();
  const told: string[] = [];
  const admission = createAdmission(perSecond, () => performance.now());
  const at = (): number => Math.round(performance.now() - origin);
  const ask = (name: string, peer = me): (() => void) =>
    admission.ask(
      peer,
      () => void told.push(`${name} at ${at()}`),
      () => void told.push(`${name} refused at ${at()}`),
    );
  return { admission, told, ask };
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
  const admission = createAdmission(1_000, () => performance.now() + late);
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
  const { admission, ask, told } = given(10);
  ask('first');
  admission.introduced(me);
  for (let i = 0; i < 2_000; i++) ask(`stranger ${i}`, `10.1.${i >> 8}.${i & 255}:40000`);
  ask('again');
  vi.advanceTimersByTime(5_000);
  expect(told[1]).toBe('again at 100');
  // Each is answered within its second.
  expect(told).toHaveLength(2_002);
  expect(told.filter((line) => !line.includes('refused')).length).toBeLessThan(15);
});

test('streams that have not said who they are have a bound by address', () => {
  const { admission, ask, told } = given(0);
  for (let i = 0; i < 1_044; i++) ask(`${i}`);
  expect(told.filter((line) => line.includes('refused'))).toHaveLength(44);
  admission.introduced(me);
  admission.left(me);
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
  const { admission, ask, told } = given(0);
  ask('node', '10.0.0.1:40001');
  admission.introduced('10.0.0.1:40001');
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

test('who waits when it ends is refused', () => {
  const { admission, ask, told } = given(1);
  ask('a');
  ask('b');
  admission.stop();
  vi.advanceTimersByTime(5_000);
  expect(told).toEqual(['a at 0', 'b refused at 0']);
});
