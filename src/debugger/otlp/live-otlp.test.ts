import type { ServerResponse } from 'node:http';
import { PassThrough } from 'node:stream';
import { expect, onTestFinished, test } from 'vitest';
import { headerWith } from '../../../test/fixtures/trace-header.ts';
import { eventually } from '../../../test/harness/eventually.ts';
import { type OtlpReceiver, startOtlpReceiver } from '../../../test/harness/otlp-receiver.ts';
import { formatTraceLine, type TraceHeader, type TraceRecord } from '../../runtime/trace/trace.ts';
import type { PageSource } from '../visualize/page-source.ts';
import { FinishedSpans } from './finished-spans.ts';
import { followOtlp, type LiveOtlpOptions } from './live-otlp.ts';
import { SendQueue } from './send-queue.ts';

const header = headerWith({ program: 'pilot-agent', pid: 7 });
const quickOptions: LiveOtlpOptions = { settleMs: 40, searchMs: 5, pauseMs: 1, endMs: 500 };

/** Records of a hot restart until its Envoy is live, and of the end of the previous epoch. */
function restartOf(number: number): { begins: TraceRecord[]; ends: TraceRecord[] } {
  let seq = number * 100;
  const [name, previousName] = [`epoch-${number}`, `epoch-${number - 1}`];
  const eventRecord = (
    from: string,
    to: string,
    type: string,
    extraFields: object = {},
    cause?: number,
  ): TraceRecord => ({
    ...{ kind: 'event', seq: ++seq, t: seq * 10, from, to, event: { type, ...extraFields } },
    ...(cause !== undefined && { cause }),
  });
  const born = (actor: string): TraceRecord => ({ kind: 'spawn', seq: ++seq, t: seq * 10, actor });
  const begins = [
    eventRecord('supervisor', 'agent', 'restart.decided', { name, how: 'hot restart', reason: 'SIGHUP', attempt: 1 }),
    born(`${name}/process`),
    eventRecord(`${name}/process`, name, 'process.spawned', { name, pid: 99 }),
    eventRecord(name, 'supervisor', 'epoch.live', { name }),
  ];
  return {
    begins: [...begins, eventRecord('supervisor', previousName, 'epoch.supersede', { name: previousName }, seq)],
    ends: [eventRecord(previousName, 'supervisor', 'epoch.exited', { name: previousName })],
  };
}

async function receiver(respond?: (response: ServerResponse) => void): Promise<OtlpReceiver> {
  const otlpReceiver = await startOtlpReceiver(respond);
  onTestFinished(() => otlpReceiver.close());
  return otlpReceiver;
}

/** Follows a running program whose records the test writes. */
function startFollowing(to: string, options: LiveOtlpOptions = {}) {
  const trace = new PassThrough({ highWaterMark: 1_000_000 });
  const next: PassThrough[] = [];
  const source: PageSource = {
    ...{ name: 'agent', kind: 'live', place: '127.0.0.1:15020' },
    header: () => Promise.resolve(header),
    read: () => {
      const connection = connectionCount++ === 0 ? trace : next.shift();
      return connection === undefined ? Promise.reject(new Error('ECONNREFUSED')) : Promise.resolve(connection);
    },
  };
  let connectionCount = 0;
  const printedOutput = { out: '', error: '' };
  const appendTo = (name: keyof typeof printedOutput) => (text: string) => {
    printedOutput[name] += text;
    return Promise.resolve();
  };
  const output = { out: appendTo('out'), error: appendTo('error') };
  const following = followOtlp(source, to, output, { ...quickOptions, ...options });
  trace.write(formatTraceLine(header));
  return {
    said: printedOutput,
    done: following,
    trace,
    /** Prepares the connection that replaces the current one when it breaks. */
    again: (first: TraceHeader, records: readonly TraceRecord[]): PassThrough => {
      const connection = new PassThrough({ highWaterMark: 1_000_000 });
      connection.write([first, ...records].map(formatTraceLine).join(''));
      next.push(connection);
      return connection;
    },
    record: (records: TraceRecord[]) => void trace.write(records.map(formatTraceLine).join('')),
  };
}

test('the live export sends a completed restart once while the program runs', async () => {
  const { address, requests } = await receiver();
  const { record, trace, done, said } = startFollowing(address);
  const first = restartOf(1);
  record(first.begins);
  await new Promise((resolve) => setTimeout(resolve, 200));
  // The previous epoch is still draining.
  expect(requests).toEqual([]);
  record(first.ends);
  await eventually('the restart is exported', () => requests.length === 1);
  expect(requests[0]).toEqual(['hot restart', 'start', 'initialise', 'drain']);
  const secondRestart = restartOf(2);
  record([...secondRestart.begins, ...secondRestart.ends]);
  await eventually('the next restart is exported', () => requests.length === 2);
  record(restartOf(3).begins);
  trace.end();
  await done;
  // Unfinished traces are exported when the program ends, and none is exported twice.
  expect(requests.map((names) => names.length)).toEqual([4, 4, 4]);
  expect(said).toEqual({ out: `otlp: 3 traces, 12 spans → ${address}/v1/traces\n`, error: '' });
});

test('the live export reconnects after a broken connection, and sends each record once, including those recorded in between', async () => {
  const { address, requests } = await receiver();
  const { record, trace, again, done, said } = startFollowing(address);
  const [first, second, third] = [1, 2, 3].map(restartOf).map(({ begins, ends }) => [...begins, ...ends]);
  record(first!);
  await eventually('the first restart is exported', () => requests.length === 1);
  const back = again(header, [...first!, ...second!]);
  trace.destroy(new Error('aborted'));
  await eventually('the second restart is exported', () => requests.length === 2);
  back.write(third!.map(formatTraceLine).join(''));
  back.end();
  await done;
  expect(said).toEqual({ out: `otlp: 3 traces, 12 spans → ${address}/v1/traces\n`, error: '' });
  expect(requests).toHaveLength(3);
});

test.each([
  ['no program responds', undefined],
  ['another run responds', { ...header, pid: 8 }],
])('the live export sends unfinished traces if the program was killed and %s', async (_, other) => {
  const { address, requests } = await receiver();
  const { record, trace, again, done, said } = startFollowing(address, { reconnectMs: 100 });
  const { begins, ends } = restartOf(1);
  record(begins);
  await eventually('what it had begun is read', () => trace.readableLength === 0);
  if (other !== undefined) again(other, ends);
  trace.destroy(new Error('aborted'));
  if (other === undefined) await expect(done).rejects.toMatchObject({ code: 'REQUEST_FAILED' });
  else await done;
  expect(said.out).toBe(`otlp: 1 trace, 4 spans → ${address}/v1/traces\n`);
  expect(requests).toEqual([['hot restart', 'start', 'initialise', 'drain']]);
});

test('the live export continues to read from the program while a receiver hangs, and limits and counts pending requests', async () => {
  const { address } = await receiver(() => {});
  const { record, trace, done, said } = startFollowing(address, { timeoutMs: 60_000, settleMs: 0 });
  for (let number = 1; number <= 300; number++) {
    const { begins, ends } = restartOf(number);
    record([...begins, ...ends]);
    await new Promise((resolve) => setTimeout(resolve, 12));
  }
  await eventually('all is read', () => trace.readableLength === 0);
  trace.end();
  await done;
  const [, lostRequests = 0] = (/, (\d+) requests not delivered/.exec(said.out) ?? []).map(Number);
  expect(lostRequests).toBeGreaterThan(100);
});

test('the live export reports an unavailable receiver once and continues', async () => {
  const { record, trace, done, said } = startFollowing('http://127.0.0.1:1');
  const [first, secondRestart] = [restartOf(1), restartOf(2)];
  record([...first.begins, ...first.ends]);
  await eventually('the first failure is reported', () => said.error !== '');
  record([...secondRestart.begins, ...secondRestart.ends]);
  trace.end();
  await done;
  expect(said.error.split('\n').filter(Boolean)).toHaveLength(1);
  expect(said.out).toContain('2 requests not delivered');
});

test('the span finder stores only records of unfinished traces, up to a limit', () => {
  const spans = new FinishedSpans(header, { settleMs: 10, staleMs: 1_000, maxRecords: 1_000 });
  const names: string[] = [];
  let maxQueued = 0;
  for (let number = 1; number <= 2_000; number++) {
    const { begins, ends } = restartOf(number);
    for (const spanRecord of [...begins, ...(number % 10 === 0 ? [] : ends)]) spans.add(spanRecord);
    if (number % 5 === 0) names.push(...spans.takeFinished(number * 20).map(({ trace }) => trace));
    maxQueued = Math.max(maxQueued, spans.keptRecords);
  }
  names.push(...spans.takeAll().map(({ trace }) => trace));
  expect(maxQueued).toBeLessThan(1_100);
  expect(new Set(names).size).toBe(2_000);
  // Each trace has four spans and is exported once.
  expect(names).toHaveLength(8_000);
});

test('the OTLP send queue keeps the newest hundred requests', async () => {
  const { address } = await receiver(() => {});
  const queue = new SendQueue(new URL(address), { timeoutMs: 60_000 }, () => {});
  for (let number = 0; number < 300; number++) queue.enqueue({ resourceSpans: [] });
  // One request is being sent.
  expect({ waiting: queue.waitingCount, lost: queue.lostCount }).toEqual({ waiting: 100, lost: 199 });
  await queue.drain(10);
  expect({ waiting: queue.waitingCount, lost: queue.lostCount }).toEqual({ waiting: 0, lost: 299 });
});
