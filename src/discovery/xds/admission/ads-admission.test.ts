import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { uncaughtErrors } from '../../../../test/harness/uncaught-errors.ts';
import { type AdmissionOptions, type AdmittedStream, createAdmission, groupOfPeer } from './ads-admission.ts';
import { KnownNodes } from './known-nodes.ts';

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

const nodePeer = '10.0.0.1:40000';
/** Delay of the first request of a stream. */
const requestDelayMs = 5;

/** Records outcomes of streams in chronological order as `name at ms`. */
function createTestAdmission(perSecond: number, slots: Pick<AdmissionOptions, 'slots' | 'onChange'> = {}) {
  const origin = performance.now();
  const outcomes: string[] = [];
  const knownNodes = new KnownNodes(() => performance.now());
  const admission = createAdmission({ perSecond, now: () => performance.now(), known: knownNodes, ...slots });
  /** Serves a node of this address, which then disconnects. */
  const serveBriefly = (peer: string, node = 'a node'): void => {
    knownNodes.recordAcknowledgement(groupOfPeer(peer), node);
    knownNodes.disconnected(groupOfPeer(peer), node);
  };
  const at = (): number => Math.round(performance.now() - origin);
  const admittedStreams = new Map<string, AdmittedStream>();
  /** @param node ID in the first request; by default, no request is sent */
  const openStream = (name: string, peer = nodePeer, node?: string): (() => void) =>
    admission.admit(
      peer,
      (stream) => {
        admittedStreams.set(name, stream);
        outcomes.push(`${name} at ${at()}`);
      },
      () => void outcomes.push(`${name} refused at ${at()}`),
      (onNodeKnown) => node !== undefined && setTimeout(() => onNodeKnown(node), requestDelayMs),
    );
  return { admission, served: serveBriefly, told: outcomes, ask: openStream, admitted: admittedStreams };
}

test('Admission immediately admits streams within the rate', () => {
  const { ask: openStream, told: outcomes } = createTestAdmission(10);
  for (let i = 0; i < 5; i++, vi.advanceTimersByTime(100)) openStream(`${i}`);
  expect(outcomes).toEqual(['0 at 0', '1 at 100', '2 at 200', '3 at 300', '4 at 400']);
});

test('Admission delays streams above the rate, and rejects those that would wait longer than 1 s', () => {
  const { ask: openStream, told: outcomes } = createTestAdmission(2);
  for (const name of ['a', 'b', 'c', 'd']) openStream(name);
  expect(outcomes).toEqual(['a at 0', 'd refused at 0']);
  vi.advanceTimersByTime(2_000);
  expect(outcomes.slice(2)).toEqual(['b at 500', 'c at 1000']);
});

test('Admission does not reject streams because of a delayed event loop', () => {
  let delayMs = 0;
  const outcomes: string[] = [];
  const admission = createAdmission({
    ...{ perSecond: 1_000, now: () => performance.now() + delayMs, known: new KnownNodes(() => 0) },
  });
  for (let i = 0; i < 200; i++) {
    admission.admit(
      nodePeer,
      () => void outcomes.push('begun'),
      () => void outcomes.push('refused'),
    );
  }
  delayMs = 1_500;
  vi.advanceTimersByTime(5);
  expect(outcomes).toEqual(Array.from({ length: 200 }, () => 'begun'));
});

test('Admission does not limit streams if no rate is configured', () => {
  const { ask: openStream, told: outcomes } = createTestAdmission(0);
  for (const name of ['a', 'b', 'c']) openStream(name);
  expect(outcomes).toEqual(['a at 0', 'b at 0', 'c at 0']);
});

test('Admission alternates between addresses, however many streams each opens', () => {
  const { ask: openStream, told: outcomes } = createTestAdmission(10);
  for (let i = 0; i < 50; i++) openStream(`crowd ${i}`, `10.0.0.9:${40_000 + i}`);
  openStream('one');
  vi.advanceTimersByTime(200);
  expect(outcomes.filter((line) => !line.includes('refused'))).toEqual([
    'crowd 0 at 0',
    'crowd 1 at 100',
    'one at 200',
  ]);
});

test('Admission prefers addresses with known nodes to unknown addresses, however many there are', () => {
  const { served, ask: openStream, told: outcomes } = createTestAdmission(10);
  openStream('first');
  served(nodePeer);
  for (let i = 0; i < 2_000; i++) openStream(`stranger ${i}`, `10.1.${i >> 8}.${i & 255}:40000`);
  openStream('again');
  vi.advanceTimersByTime(5_000);
  expect(outcomes[1]).toBe('again at 100');
  // Each stream is admitted or rejected within a second.
  expect(outcomes).toHaveLength(2_002);
  expect(outcomes.filter((line) => !line.includes('refused')).length).toBeLessThan(15);
});

test('Admission limits streams without an identified node by address', () => {
  const { ask: openStream, told: outcomes, admitted } = createTestAdmission(0);
  for (let i = 0; i < 1_044; i++) openStream(`${i}`);
  expect(outcomes.filter((line) => line.includes('refused'))).toHaveLength(44);
  // A stream that is identified twice is counted once.
  for (const name of ['0', '0', '1']) admitted.get(name)!.identified();
  for (const name of ['a', 'b', 'c']) openStream(name);
  expect(outcomes.slice(1_044)).toEqual(['a at 0', 'b at 0', 'c refused at 0']);
  openStream('other', '[::ffff:10.0.0.2]:1');
  expect(outcomes.at(-1)).toBe('other at 0');
});

test('Admission alternates between the connections of an address, however many streams each opens', () => {
  const { ask: openStream, told: outcomes } = createTestAdmission(10);
  for (let i = 0; i < 50; i++) openStream(`crowd ${i}`);
  openStream('one', '10.0.0.1:40001');
  vi.advanceTimersByTime(200);
  expect(outcomes.filter((line) => !line.includes('refused'))).toEqual([
    'crowd 0 at 0',
    'crowd 1 at 100',
    'one at 200',
  ]);
  vi.advanceTimersByTime(5_000);
  // Each stream is admitted or rejected once.
  expect(outcomes).toHaveLength(51);
});

test('Admission reserves capacity for reconnecting nodes at an address with a flood of silent streams', () => {
  const { served, ask: openStream, told: outcomes, admitted } = createTestAdmission(0);
  openStream('node', '10.0.0.1:40001');
  admitted.get('node')!.identified();
  served('10.0.0.1:40001');
  for (let i = 0; i < 2_000; i++) openStream(`crowd ${i}`);
  expect(outcomes.filter((line) => line.includes('refused'))).toHaveLength(1_000);
  openStream('again', '10.0.0.1:40002');
  openStream('twice', '10.0.0.1:40002');
  expect(outcomes.slice(-2)).toEqual(['again at 0', 'twice refused at 0']);
  for (let i = 0; i < 1_000; i++) openStream(`crowd ${i}`, `10.0.0.1:${50_000 + i}`);
  expect(outcomes.slice(-1_000).filter((line) => line.includes('refused'))).toHaveLength(801);
  // No node was served at this address.
  for (let i = 0; i < 1_001; i++) openStream(`crowd ${i}`, `10.0.0.7:${1_000 + i}`);
  expect(outcomes.at(-1)).toContain('refused');
});

/** Opens 45 streams a second for eight seconds, each on its own connection. */
function floodFromSameAddress(openStream: (name: string, peer: string) => () => void, closedAfterMs: number): void {
  for (let i = 0; i < 360; i++) {
    setTimeout(() => setTimeout(openStream(`useless ${i}`, `10.0.0.1:${50_000 + i}`), closedAfterMs), i * (1_000 / 45));
  }
}

test('Admission skips closed streams, so that later streams wait less', () => {
  const { ask: openStream, told: outcomes } = createTestAdmission(25);
  floodFromSameAddress(openStream, 300);
  for (let i = 0; i < 8; i++) {
    vi.advanceTimersByTime(1_000);
    openStream(`known ${i}`, `10.0.0.1:${40_000 + i}`);
  }
  vi.advanceTimersByTime(3_000);
  const knownTimes = outcomes.filter((line) => line.startsWith('known')).map((line) => Number(line.split(' at ')[1]));
  expect(outcomes.filter((line) => line.includes('refused'))).toEqual([]);
  expect(knownTimes).toHaveLength(8);
  expect(Math.max(...knownTimes.map((at, i) => at - (i + 1) * 1_000))).toBeLessThan(500);
});

test('Admission admits a retry of a rejected connection before later connections of the same address', () => {
  const { ask: openStream, told: outcomes } = createTestAdmission(25);
  floodFromSameAddress(openStream, 60_000);
  vi.advanceTimersByTime(4_030);
  openStream('known', '10.0.0.1:40000');
  expect(outcomes.at(-1)).toBe('known refused at 4030');
  vi.advanceTimersByTime(1_000);
  openStream('known', '10.0.0.1:40000');
  vi.advanceTimersByTime(100);
  expect(outcomes.filter((line) => line.startsWith('known at'))).toHaveLength(1);
  // Only the first stream of the node precedes others.
  for (const name of ['known 2', 'known 3']) openStream(name, '10.0.0.1:40000');
  vi.advanceTimersByTime(100);
  expect(outcomes.filter((line) => /^known \d at/.test(line))).toEqual([]);
});

/** Outcomes of the streams with this name. One is opened at each full second. */
function waitsOf(outcomes: readonly string[], name: string): string[] {
  return outcomes
    .filter((line) => line.startsWith(`${name} `))
    .map((line) =>
      line.includes('refused') ? 'refused' : Number(line.split(' at ')[1]) % 1_000 < 200 ? 'soon' : 'late',
    );
}

const repeatSoon = (times: number): string[] => Array.from({ length: times }, () => 'soon');

test('Admission admits a known node before many new node IDs at the same address', () => {
  const { served, ask: openStream, told: outcomes } = createTestAdmission(25);
  for (let i = 0; i < 2; i++) served(nodePeer, 'node');
  for (let i = 0; i < 8_000; i++) {
    setTimeout(() => {
      served(nodePeer, `new ${i}`);
      openStream(`new ${i}`, `10.0.0.1:${10_000 + (i % 20_000)}`, `newer ${i}`);
    }, i);
  }
  for (let i = 1; i <= 8; i++) setTimeout(() => openStream('node', `10.0.0.1:${40_000 + i}`, 'node'), i * 1_000);
  vi.advanceTimersByTime(10_000);
  expect(waitsOf(outcomes, 'node')).toEqual(repeatSoon(8));
});

test('Admission admits a known node before many silent streams at the same address', () => {
  const { served, ask: openStream, told: outcomes } = createTestAdmission(25);
  served(nodePeer, 'node');
  floodFromSameAddress(openStream, 60_000);
  for (let i = 1; i <= 7; i++) setTimeout(() => openStream('node', `10.0.0.1:${40_000 + i}`, 'node'), i * 1_000);
  vi.advanceTimersByTime(10_000);
  expect(waitsOf(outcomes, 'node')).toEqual(repeatSoon(7));
});

test('Admission admits a known node before known addresses with many new node IDs', () => {
  const { served, ask: openStream, told: outcomes } = createTestAdmission(25);
  served(nodePeer, 'node');
  for (let i = 0; i < 100; i++) served(`10.0.1.${i}:1`, 'other');
  for (let i = 0; i < 8_000; i++)
    setTimeout(() => openStream('other', `10.0.1.${i % 100}:${10_000 + i}`, `new ${i}`), i);
  for (let i = 1; i <= 7; i++) setTimeout(() => openStream('node', `10.0.0.1:${40_000 + i}`, 'node'), i * 1_000);
  vi.advanceTimersByTime(10_000);
  expect(waitsOf(outcomes, 'node')).toEqual(repeatSoon(7));
});

test('Admission prioritizes a node ID once, however many streams claim the ID', () => {
  const { served, ask: openStream, told: outcomes } = createTestAdmission(25);
  for (const node of ['node', 'spoofed']) served(nodePeer, node);
  for (let i = 0; i < 8_000; i++) setTimeout(() => openStream('spoofer', `10.0.0.1:${10_000 + i}`, 'spoofed'), i);
  for (let i = 1; i <= 7; i++) setTimeout(() => openStream('node', `10.0.0.1:${40_000 + i}`, 'node'), i * 1_000);
  // Streams that all claim one ID do not delay a new node.
  for (let i = 1; i <= 7; i++) setTimeout(() => openStream('new', `10.0.0.1:${50_000 + i}`, `new ${i}`), i * 1_000);
  // The streams do not delay an unknown address either.
  for (let i = 1; i <= 7; i++) setTimeout(() => openStream('stranger', `10.0.0.2:${i}`), i * 1_000);
  vi.advanceTimersByTime(10_000);
  expect(waitsOf(outcomes, 'node')).toEqual(repeatSoon(7));
  expect(waitsOf(outcomes, 'new')).not.toContain('refused');
  expect(waitsOf(outcomes, 'stranger')).not.toContain('refused');
});

test('Admission alternates between the nodes of an address, however many connections each opens', () => {
  const { ask: openStream, told: outcomes } = createTestAdmission(10);
  for (let i = 0; i < 5; i++) openStream('first', `10.0.0.1:${1_000 + i}`, 'first');
  openStream('other', '10.0.0.1:2000', 'other');
  vi.advanceTimersByTime(2_000);
  expect(outcomes.slice(0, 3)).toEqual(['first at 0', 'first at 100', 'other at 200']);
});

test('Admission rejects waiting streams when it stops', () => {
  const { admission, ask: openStream, told: outcomes } = createTestAdmission(1);
  openStream('a');
  openStream('b');
  admission.stop();
  vi.advanceTimersByTime(5_000);
  expect(outcomes).toEqual(['a at 0', 'b refused at 0']);
});

test('Admission reports a stream whose start throws, and admits further streams', async () => {
  const caughtErrors = uncaughtErrors();
  const { admission, ask: openStream, told: outcomes } = createTestAdmission(10);
  openStream('a');
  admission.admit(
    nodePeer,
    () => {
      throw new Error('a bug');
    },
    () => {},
    () => {},
  );
  openStream('b');
  vi.advanceTimersByTime(1_000);
  expect(outcomes).toEqual(['a at 0', 'b at 200']);
  await Promise.resolve();
  expect(caughtErrors.map(({ error }) => String(error))).toEqual(['Error: a bug']);
});

test('Admission admits one stream per slot if no rate is configured', () => {
  const { ask: openStream, told: outcomes, admitted } = createTestAdmission(0, { slots: 2 });
  for (const name of ['a', 'b', 'c', 'd']) openStream(name, `10.0.0.${name.charCodeAt(0)}:1`);
  expect(outcomes).toEqual(['a at 0', 'b at 0']);
  vi.advanceTimersByTime(100);
  admitted.get('b')!.release();
  admitted.get('b')!.release();
  vi.advanceTimersByTime(100);
  expect(outcomes.slice(2)).toEqual(['c at 100']);
});

test('Admission frees the slot of a stream after 1 s', () => {
  const { ask: openStream, told: outcomes } = createTestAdmission(0, { slots: 1 });
  for (const name of ['a', 'b', 'c']) openStream(name, `10.0.0.${name.charCodeAt(0)}:1`);
  vi.advanceTimersByTime(5_000);
  expect(outcomes).toEqual(['a at 0', 'b at 1000', 'c at 2000']);
});

test('Admission immediately admits waiting streams when slots are added', () => {
  const { admission, ask: openStream, told: outcomes } = createTestAdmission(0, { slots: 1 });
  for (const name of ['a', 'b', 'c', 'd']) openStream(name, `10.0.0.${name.charCodeAt(0)}:1`);
  admission.setSlots(3);
  vi.advanceTimersByTime(1);
  expect([outcomes.length, admission.isFull]).toEqual([3, true]);
});

test('Admission rejects a stream after 60 s if no rate is configured', () => {
  const { admission, ask: openStream, told: outcomes } = createTestAdmission(0, { slots: 1 });
  for (let i = 0; i < 70; i++) openStream(`${i}`, `10.0.1.${i}:1`);
  vi.advanceTimersByTime(59_500);
  expect(outcomes).toHaveLength(60);
  vi.advanceTimersByTime(2_000);
  expect(outcomes).toHaveLength(70);
  expect(outcomes.filter((line) => line.includes('refused')).length).toBeGreaterThan(7);
  expect(admission.waiting).toBe(0);
});

test('Admission with a rate does not reject a stream that waits for a slot, even after 1 s', () => {
  const { ask: openStream, told: outcomes } = createTestAdmission(100_000, { slots: 1 });
  for (const name of ['a', 'b', 'c', 'd']) openStream(name, `10.0.0.${name.charCodeAt(0)}:1`);
  vi.advanceTimersByTime(5_000);
  expect(outcomes).toEqual(['a at 0', 'b at 1000', 'c at 2000', 'd at 3000']);
});

test('Admission reports when streams start and stop waiting', () => {
  const outcomes: string[] = [];
  const options = {
    slots: 1,
    onChange: (isQueued: boolean) => void outcomes.push(isQueued ? 'queued' : 'emptied'),
  };
  const { ask: openStream } = createTestAdmission(0, options);
  const leave = ['a', 'b', 'c'].map((name) => openStream(name, `10.0.0.${name.charCodeAt(0)}:1`));
  expect(outcomes).toEqual(['queued']);
  leave[1]!();
  vi.advanceTimersByTime(3_000);
  expect(outcomes).toEqual(['queued', 'emptied']);
});
