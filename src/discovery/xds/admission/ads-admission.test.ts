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
/** Delay of the first request of a stream. */
const sayMs = 5;

/** Records outcomes of streams in chronological order as `name at ms`. */
function given(perSecond: number, slots: Pick<AdmissionOptions, 'slots' | 'onQueued' | 'onEmptied'> = {}) {
  const origin = performance.now();
  const told: string[] = [];
  const known = new KnownNodes(() => performance.now());
  const admission = createAdmission({ perSecond, now: () => performance.now(), known, ...slots });
  /** A node of this address was served and has disconnected. */
  const served = (peer: string, node = 'a node'): void => {
    known.acknowledged(groupOfPeer(peer), node);
    known.disconnected(groupOfPeer(peer), node);
  };
  const at = (): number => Math.round(performance.now() - origin);
  const admitted = new Map<string, Admitted>();
  /** @param node ID in the first request; default: no request */
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

test('Admission admits streams within the rate at once', () => {
  const { ask, told } = given(10);
  for (let i = 0; i < 5; i++, vi.advanceTimersByTime(100)) ask(`${i}`);
  expect(told).toEqual(['0 at 0', '1 at 100', '2 at 200', '3 at 300', '4 at 400']);
});

test('Admission spaces streams beyond the rate, and rejects those that would wait for more than a second', () => {
  const { ask, told } = given(2);
  for (const name of ['a', 'b', 'c', 'd']) ask(name);
  expect(told).toEqual(['a at 0', 'd refused at 0']);
  vi.advanceTimersByTime(2_000);
  expect(told.slice(2)).toEqual(['b at 500', 'c at 1000']);
});

test('Admission rejects no stream because of a delayed event loop', () => {
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

test('Admission without a rate does not limit streams', () => {
  const { ask, told } = given(0);
  for (const name of ['a', 'b', 'c']) ask(name);
  expect(told).toEqual(['a at 0', 'b at 0', 'c at 0']);
});

test('Admission serves addresses in turn, regardless of the number of streams of each', () => {
  const { ask, told } = given(10);
  for (let i = 0; i < 50; i++) ask(`crowd ${i}`, `10.0.0.9:${40_000 + i}`);
  ask('one');
  vi.advanceTimersByTime(200);
  expect(told.filter((line) => !line.includes('refused'))).toEqual(['crowd 0 at 0', 'crowd 1 at 100', 'one at 200']);
});

test('Admission prefers addresses with known nodes to any number of unknown addresses', () => {
  const { served, ask, told } = given(10);
  ask('first');
  served(me);
  for (let i = 0; i < 2_000; i++) ask(`stranger ${i}`, `10.1.${i >> 8}.${i & 255}:40000`);
  ask('again');
  vi.advanceTimersByTime(5_000);
  expect(told[1]).toBe('again at 100');
  // Each stream is admitted or rejected within a second.
  expect(told).toHaveLength(2_002);
  expect(told.filter((line) => !line.includes('refused')).length).toBeLessThan(15);
});

test('Admission limits streams without an identified node by address', () => {
  const { ask, told, admitted } = given(0);
  for (let i = 0; i < 1_044; i++) ask(`${i}`);
  expect(told.filter((line) => line.includes('refused'))).toHaveLength(44);
  // Identifying a stream twice counts once.
  for (const name of ['0', '0', '1']) admitted.get(name)!.identified();
  for (const name of ['a', 'b', 'c']) ask(name);
  expect(told.slice(1_044)).toEqual(['a at 0', 'b at 0', 'c refused at 0']);
  ask('other', '[::ffff:10.0.0.2]:1');
  expect(told.at(-1)).toBe('other at 0');
});

test('Admission serves the connections of an address in turn, regardless of the number of streams of each', () => {
  const { ask, told } = given(10);
  for (let i = 0; i < 50; i++) ask(`crowd ${i}`);
  ask('one', '10.0.0.1:40001');
  vi.advanceTimersByTime(200);
  expect(told.filter((line) => !line.includes('refused'))).toEqual(['crowd 0 at 0', 'crowd 1 at 100', 'one at 200']);
  vi.advanceTimersByTime(5_000);
  // Each stream is admitted or rejected once.
  expect(told).toHaveLength(51);
});

test('Admission reserves capacity for reconnecting nodes at an address that is flooded with silent streams', () => {
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
  // No node was served at this address.
  for (let i = 0; i < 1_001; i++) ask(`crowd ${i}`, `10.0.0.7:${1_000 + i}`);
  expect(told.at(-1)).toContain('refused');
});

/** Opens 45 streams a second for eight seconds, each on its own connection. */
function neighbour(ask: (name: string, peer: string) => () => void, goneAfterMs: number): void {
  for (let i = 0; i < 360; i++) {
    setTimeout(() => setTimeout(ask(`useless ${i}`, `10.0.0.1:${50_000 + i}`), goneAfterMs), i * (1_000 / 45));
  }
}

test('Admission skips closed streams, so later streams wait less', () => {
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

test('Admission admits a rejected connection that retries before later connections of its address', () => {
  const { ask, told } = given(25);
  neighbour(ask, 60_000);
  vi.advanceTimersByTime(4_030);
  ask('known', '10.0.0.1:40000');
  expect(told.at(-1)).toBe('known refused at 4030');
  vi.advanceTimersByTime(1_000);
  ask('known', '10.0.0.1:40000');
  vi.advanceTimersByTime(100);
  expect(told.filter((line) => line.startsWith('known at'))).toHaveLength(1);
  // Only its first stream precedes others.
  for (const name of ['known 2', 'known 3']) ask(name, '10.0.0.1:40000');
  vi.advanceTimersByTime(100);
  expect(told.filter((line) => /^known \d at/.test(line))).toEqual([]);
});

/** Outcome of each stream of `name`; one is opened at each full second. */
function waitsOf(told: readonly string[], name: string): string[] {
  return told
    .filter((line) => line.startsWith(`${name} `))
    .map((line) =>
      line.includes('refused') ? 'refused' : Number(line.split(' at ')[1]) % 1_000 < 200 ? 'soon' : 'late',
    );
}

const soon = (times: number): string[] => Array.from({ length: times }, () => 'soon');

test('Admission admits a known node first beside many new node IDs of its address', () => {
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

test('Admission admits a known node first beside many silent streams of its address', () => {
  const { served, ask, told } = given(25);
  served(me, 'node');
  neighbour(ask, 60_000);
  for (let i = 1; i <= 7; i++) setTimeout(() => ask('node', `10.0.0.1:${40_000 + i}`, 'node'), i * 1_000);
  vi.advanceTimersByTime(10_000);
  expect(waitsOf(told, 'node')).toEqual(soon(7));
});

test('Admission admits a known node first beside known addresses with many new node IDs', () => {
  const { served, ask, told } = given(25);
  served(me, 'node');
  for (let i = 0; i < 100; i++) served(`10.0.1.${i}:1`, 'other');
  for (let i = 0; i < 8_000; i++) setTimeout(() => ask('other', `10.0.1.${i % 100}:${10_000 + i}`, `new ${i}`), i);
  for (let i = 1; i <= 7; i++) setTimeout(() => ask('node', `10.0.0.1:${40_000 + i}`, 'node'), i * 1_000);
  vi.advanceTimersByTime(10_000);
  expect(waitsOf(told, 'node')).toEqual(soon(7));
});

test('Admission gives a node ID priority once, however many streams claim it', () => {
  const { served, ask, told } = given(25);
  for (const node of ['node', 'spoofed']) served(me, node);
  for (let i = 0; i < 8_000; i++) setTimeout(() => ask('spoofer', `10.0.0.1:${10_000 + i}`, 'spoofed'), i);
  for (let i = 1; i <= 7; i++) setTimeout(() => ask('node', `10.0.0.1:${40_000 + i}`, 'node'), i * 1_000);
  // Streams that claim one ID do not delay a new node.
  for (let i = 1; i <= 7; i++) setTimeout(() => ask('new', `10.0.0.1:${50_000 + i}`, `new ${i}`), i * 1_000);
  // They do not block an unknown address either.
  for (let i = 1; i <= 7; i++) setTimeout(() => ask('stranger', `10.0.0.2:${i}`), i * 1_000);
  vi.advanceTimersByTime(10_000);
  expect(waitsOf(told, 'node')).toEqual(soon(7));
  expect(waitsOf(told, 'new')).not.toContain('refused');
  expect(waitsOf(told, 'stranger')).not.toContain('refused');
});

test('Admission serves the nodes of an address in turn, regardless of the number of connections of each', () => {
  const { ask, told } = given(10);
  for (let i = 0; i < 5; i++) ask('first', `10.0.0.1:${1_000 + i}`, 'first');
  ask('other', '10.0.0.1:2000', 'other');
  vi.advanceTimersByTime(2_000);
  expect(told.slice(0, 3)).toEqual(['first at 0', 'first at 100', 'other at 200']);
});

test('Admission rejects waiting streams when it stops', () => {
  const { admission, ask, told } = given(1);
  ask('a');
  ask('b');
  admission.stop();
  vi.advanceTimersByTime(5_000);
  expect(told).toEqual(['a at 0', 'b refused at 0']);
});

test('Admission reports a stream whose start throws, and admits the next ones', async () => {
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

test('Admission without a rate admits as many streams as there are slots', () => {
  const { ask, told, admitted } = given(0, { slots: 2 });
  for (const name of ['a', 'b', 'c', 'd']) ask(name, `10.0.0.${name.charCodeAt(0)}:1`);
  expect(told).toEqual(['a at 0', 'b at 0']);
  vi.advanceTimersByTime(100);
  admitted.get('b')!.release();
  admitted.get('b')!.release();
  vi.advanceTimersByTime(100);
  expect(told.slice(2)).toEqual(['c at 100']);
});

test('Admission frees the slot of a stream after a second', () => {
  const { ask, told } = given(0, { slots: 1 });
  for (const name of ['a', 'b', 'c']) ask(name, `10.0.0.${name.charCodeAt(0)}:1`);
  vi.advanceTimersByTime(5_000);
  expect(told).toEqual(['a at 0', 'b at 1000', 'c at 2000']);
});

test('Admission admits waiting streams at once when slots are added', () => {
  const { admission, ask, told } = given(0, { slots: 1 });
  for (const name of ['a', 'b', 'c', 'd']) ask(name, `10.0.0.${name.charCodeAt(0)}:1`);
  admission.setSlots(3);
  vi.advanceTimersByTime(1);
  expect([told.length, admission.isFull]).toEqual([3, true]);
});

test('Admission without a rate rejects a stream after 30 s', () => {
  const { admission, ask, told } = given(0, { slots: 1 });
  for (let i = 0; i < 40; i++) ask(`${i}`, `10.0.1.${i}:1`);
  vi.advanceTimersByTime(29_500);
  expect(told).toHaveLength(30);
  vi.advanceTimersByTime(2_000);
  expect(told).toHaveLength(40);
  expect(told.filter((line) => line.includes('refused')).length).toBeGreaterThan(7);
  expect(admission.waiting).toBe(0);
});

test('Admission reports when streams start and stop waiting', () => {
  const told: string[] = [];
  const options = { slots: 1, onQueued: () => void told.push('queued'), onEmptied: () => void told.push('emptied') };
  const { ask } = given(0, options);
  const leave = ['a', 'b', 'c'].map((name) => ask(name, `10.0.0.${name.charCodeAt(0)}:1`));
  expect(told).toEqual(['queued']);
  leave[1]!();
  vi.advanceTimersByTime(3_000);
  expect(told).toEqual(['queued', 'emptied']);
});
