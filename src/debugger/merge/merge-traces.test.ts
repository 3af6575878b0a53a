import { describe, expect, test } from 'vitest';
import { epochMachine } from '../../../machines/agent/envoy/epoch.machine.ts';
import { adsConnectionMachine } from '../../../machines/discovery/xds/ads-connection.machine.ts';
import type { LinkRule } from '../../../machines/timeline.ts';
import { headerWith } from '../../../test/fixtures/trace-header.ts';
import { type Statechart, statechartOf } from '../../runtime/trace/statechart.ts';
import type { TraceBody, TraceRecord } from '../../runtime/trace/trace.ts';
import { causeChain } from '../trace/cause-chain.ts';
import { RecordArray } from '../trace/record-list.ts';
import { TraceLineReader } from '../trace/trace-line.ts';
import { clockOffset } from './clock-offset.ts';
import { describePlacement, mergeTraces, type ProgramTrace } from './merge-traces.ts';

type TimedBody = TraceBody & { readonly t: number };
const event = (
  t: number,
  from: string,
  to: string,
  type: string,
  extraFields: object = {},
  cause?: number,
): TimedBody => ({
  kind: 'event',
  from,
  to,
  event: { type, ...extraFields },
  t,
  ...(cause !== undefined && { cause }),
});

/** A program whose clock is `clockMs` ahead. */
function program(label: string, machine: Statechart, bodies: readonly TimedBody[], clockMs = 0): ProgramTrace {
  return {
    label,
    header: headerWith({ program: label, startedAt: new Date(1_000_000 + clockMs).toISOString(), machines: [machine] }),
    records: bodies.map((body, i) => ({ seq: i + 1, ...body }) as TraceRecord),
  };
}

/** Generic programs that exchange requests and responses with a nonce. */
const chart = (id: string, links: readonly LinkRule[]): Statechart => ({
  id,
  states: [],
  transitions: [],
  timeline: { links },
});
const serverChart = chart('server', [
  { event: 'sent', side: 'sends', key: 'to {nonce}', text: 'push' },
  { event: 'acknowledged', side: 'receives', key: 'from {nonce}', text: 'ack' },
]);
const clientChart = chart('client', [
  { event: 'received', side: 'receives', key: 'to {nonce}', text: 'push' },
  { event: 'answered', side: 'sends', key: 'from {nonce}', text: 'ack' },
]);
/** Sent at 100 and 300, with a latency of 10 ms; the clock of the client is wrong by `clockMs`. */
const bothPrograms = (clockMs: number): ProgramTrace[] => [
  program('server', serverChart, [
    event(100, 'push', 'stream', 'sent', { nonce: 'a' }),
    event(125, 'stream', 'push', 'acknowledged', { nonce: 'a' }),
    event(300, 'push', 'stream', 'sent', { nonce: 'b' }),
    event(322, 'stream', 'push', 'acknowledged', { nonce: 'b' }),
  ]),
  program(
    'client',
    clientChart,
    [
      event(110, 'net', 'client', 'received', { nonce: 'a' }),
      event(115, 'client', 'net', 'answered', { nonce: 'a' }, 1),
      event(310, 'net', 'client', 'received', { nonce: 'b' }),
      event(312, 'client', 'net', 'answered', { nonce: 'b' }, 3),
    ],
    clockMs,
  ),
];

describe('the merge of two traces', () => {
  test.each([0, 7, -9])('does not adjust clocks if a difference of %d ms is within the uncertainty', (off) => {
    const { placements, unplaced, arrows } = mergeTraces(bothPrograms(off));
    expect(placements[1]!.offset.ms).toBe(0);
    expect(placements[1]!.offset.plusMinusMs).toBeLessThanOrEqual(20);
    expect({ unplaced, arrows }).toEqual({ unplaced: 0, arrows: 4 });
  });

  test.each([5_000, -5_000, 86_400_000])(
    'aligns clocks that differ by %d ms using a request and a response with the same nonce',
    (off) => {
      const { placements, records, arrows } = mergeTraces(bothPrograms(off));
      const { ms, plusMinusMs } = placements[1]!.offset;
      expect(Math.abs(ms + off)).toBeLessThanOrEqual(10);
      expect(Math.abs(ms + off)).toBeLessThanOrEqual(plusMinusMs);
      expect(arrows).toBe(4);
      const order = records.flatMap((record) => (record.kind === 'event' ? record.event.type : []));
      expect(order).toEqual([
        ...['sent', 'push', 'received', 'answered', 'ack', 'acknowledged'],
        ...['sent', 'push', 'received', 'answered', 'ack', 'acknowledged'],
      ]);
    },
  );

  test('adds no arrow that points back in time, and counts the omitted arrows', () => {
    const [server, client] = bothPrograms(0);
    const lateServer = {
      ...server!,
      records: server!.records.map((record) => (record.seq === 3 ? { ...record, t: 321.5 } : record)),
    };
    const { records, unplaced, arrows } = mergeTraces([lateServer, client!]);
    expect({ arrows, unplaced }).toEqual({ arrows: 3, unplaced: 2 });
    for (const record of records) {
      const { cause } = record as { cause?: number };
      if (cause !== undefined) expect(cause).toBeLessThan(record.seq);
    }
  });

  test('aligns programs without common messages by their wall clocks, and reports this in the placement', () => {
    const [server] = bothPrograms(0);
    const { placements, unplaced } = mergeTraces([
      server!,
      program('other', chart('x', []), [event(1, 'a', 'b', 'x')]),
    ]);
    expect(placements.map(describePlacement)).toEqual([
      'reference clock',
      'placed by its wall clock, for lack of messages',
    ]);
    expect(unplaced).toBe(4);
  });
});

test.each([
  [[], 0, Number.POSITIVE_INFINITY],
  [[{ isOutgoing: true, sentAt: 10, receivedAt: 5 }], -5, Number.POSITIVE_INFINITY],
  [
    [
      { isOutgoing: true, sentAt: 0, receivedAt: 30 },
      { isOutgoing: false, sentAt: 20, receivedAt: 0 },
    ],
    20,
    10,
  ],
])('clockOffset estimates from the messages %j an offset of %d ± %d ms', (crossings, ms, plusMinusMs) => {
  expect(clockOffset(crossings)).toMatchObject({ ms, plusMinusMs });
});

describe('the merge of the traces of a gateway and its control plane', () => {
  const node = 'router~1.2.3.4~gateway.demo~demo.svc';
  const gateway = program(
    'gateway',
    statechartOf(epochMachine),
    [
      { kind: 'spawn', actor: 'epoch-0', machine: 'epoch', t: 10 },
      { kind: 'spawn', actor: 'epoch-0/process', parent: 'epoch-0', t: 11, cause: 1 },
      event(12, 'epoch-0/prepare', 'epoch-0', 'xstate.done.actor.prepare', { output: { configFile: 'x', node } }),
      event(20, 'epoch-0/process', 'epoch-0', 'process.spawned', { pid: 1 }),
      event(500, 'epoch-0/probe', 'epoch-0', 'probe.passed'),
    ],
    60_000,
  );
  const discovery = program('discovery', statechartOf(adsConnectionMachine), [
    { kind: 'spawn', actor: 'ads-connection-1', machine: 'ads-connection', t: 90 },
    event(100, 'ads-connection-1/stream', 'ads-connection-1', 'node.accepted', { node }),
    event(150, 'ads-connection-2/stream', 'ads-connection-2', 'node.accepted', { node: 'another' }),
  ]);
  const mergedTrace = mergeTraces([gateway, discovery]);

  test('shows when the epoch connects, is configured and becomes live, with clocks that differ by a minute', () => {
    expect(mergedTrace.arrows).toBe(2);
    // The two events of the other node's connection are unplaced.
    expect(mergedTrace.unplaced).toBe(2);
    expect(mergedTrace.placements.map(describePlacement)[1]).toMatch(
      /clock \d+ ms behind that of gateway \(± 480 ms, from 2 messages\)/,
    );
    const arrows = mergedTrace.records.filter(
      (record) => record.kind === 'event' && record.event.type.startsWith('xds.'),
    );
    expect(arrows).toMatchObject([
      { from: 'gateway:epoch-0/process', to: 'discovery:ads-connection-1/stream', event: { type: 'xds.connect' } },
      { from: 'discovery:ads-connection-1/stream', to: 'gateway:epoch-0/probe', event: { type: 'xds.configured' } },
    ]);
  });

  test('is a valid trace in which a cause leads from one program to the other', () => {
    const reader = new TraceLineReader();
    for (const line of [mergedTrace.header, ...mergedTrace.records])
      expect(reader.read(JSON.stringify(line))).toEqual(line);
    expect(mergedTrace.records.map(({ seq }) => seq)).toEqual(mergedTrace.records.map((_, i) => i + 1));
    const list = new RecordArray(mergedTrace.records);
    const at = mergedTrace.records.findIndex(
      (record) => record.kind === 'event' && record.event.type === 'node.accepted',
    );
    const { links } = causeChain(list, at);
    expect(links.map(({ record }) => (record.kind === 'event' ? record.event.type : record.kind))).toContain(
      'process.spawned',
    );
  });
});

test('the merged trace has two names for different versions of a machine, and one for equal definitions', () => {
  const other = chart('server', []);
  const { header } = mergeTraces([
    program('a', serverChart, []),
    program('b', serverChart, []),
    program('c', other, []),
  ]);
  expect(header.machines.map(({ id }) => id)).toEqual(['server', 'c:server']);
});
