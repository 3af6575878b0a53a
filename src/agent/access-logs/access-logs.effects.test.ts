/** Tests the access log service with a real gRPC client, and with clients that violate the protocol. */
import { mkdtempSync, rmSync } from 'node:fs';
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create, toBinary } from '@bufbuild/protobuf';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createActor } from 'xstate';
import { eventually } from '../../../test/harness/eventually.ts';
import { StreamAccessLogsMessageSchema } from '../../gen/envoy/service/accesslog/v3/als_pb.ts';
import { frameOf } from '../../runtime/grpc/grpc-frames.ts';
import { accessLogsWithEffects } from './access-logs.effects.ts';
import { MeshMetrics } from './mesh-metrics.ts';
import { ReadingBudget } from './reading-budget.ts';

const localWorkload = {
  workload: 'w',
  namespace: 'n',
  service: 's',
  revision: 'r',
  app: 'a',
  version: 'v',
  cluster: 'c',
};
const cleanups: (() => unknown)[] = [];
let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'als-'));
});

afterEach(() => {
  for (const end of cleanups.splice(0).reverse()) end();
  rmSync(directory, { recursive: true, force: true });
});

async function startAccessLogs(budget?: ReadingBudget) {
  const metrics = new MeshMetrics({ localWorkload, version: '1' });
  const socket = join(directory, 'ALS');
  const machine = accessLogsWithEffects({ metrics, ...(budget && { budget }) });
  const actor = createActor(machine, { input: { socket } }).start();
  cleanups.push(() => actor.stop());
  const isInState = (state: object): boolean => actor.getSnapshot().matches(state as never);
  await eventually('the socket is open', () => isInState({ available: 'listening' }));
  const count = (): number =>
    Number(/^istio_requests_total\{.*\} (\d+)$/m.exec([...metrics.text()].join(''))?.[1] ?? 0);
  const lostLines = (): string[] =>
    [...metrics.text()].filter((metricLine) => metricLine.startsWith('istio_agent_access_log_lost_total{'));
  return { socket, isIn: isInState, count, lost: lostLines };
}

function openStream(socket: string): {
  session: ClientHttp2Session;
  stream: ReturnType<ClientHttp2Session['request']>;
} {
  const session = connectHttp2('http://agent', { createConnection: () => connect(socket) });
  session.on('error', () => {});
  cleanups.push(() => session.destroy());
  const stream = session.request({
    ':method': 'POST',
    ':path': '/envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs',
    'content-type': 'application/grpc',
  });
  stream.on('error', () => {});
  return { session, stream };
}

function message(entries: number, logName = 'istio-metrics/source'): Buffer {
  const logEntry = Array.from({ length: entries }, () => ({ response: { responseCode: 200 } }));
  const value = create(StreamAccessLogsMessageSchema, {
    identifier: { logName },
    logEntries: { case: 'httpLogs', value: { logEntry } },
  });
  return frameOf(toBinary(StreamAccessLogsMessageSchema, value));
}

test('counts every entry of a stream regardless of chunk boundaries', async () => {
  const { socket, isIn, count } = await startAccessLogs();
  const { stream } = openStream(socket);
  const bytes = Buffer.concat([message(3), message(4)]);
  for (let at = 0; at < bytes.length; at += 7) stream.write(bytes.subarray(at, at + 7));
  await eventually('all are counted', () => count() === 7);
  expect(isIn({ available: { listening: 'receiving' } })).toBe(true);
  stream.end();
  await eventually('the stream is closed', () => isIn({ available: { listening: 'idle' } }));
});

test.each([
  ['a log with another name', message(1, 'http_envoy_accesslog'), 'invalid'],
  ['an invalid message', frameOf(Buffer.from([18, 127, 1])), 'invalid'],
  ['a message above the size limit', Buffer.from([0, 255, 0, 0, 0]), 'too long'],
])('ends a stream that receives %s, counts it as lost and keeps other streams open', async (_, bytes, reason) => {
  const { socket, count, lost } = await startAccessLogs();
  const [goodStream, badStream] = [openStream(socket), openStream(socket)];
  goodStream.stream.write(message(1));
  await eventually('one is counted', () => count() === 1);
  badStream.stream.resume();
  badStream.stream.write(bytes);
  await eventually('the loss is counted', () => lost().length > 0);
  expect(lost()).toEqual([`istio_agent_access_log_lost_total{reason="${reason}"} 1\n`]);
  await eventually('its stream is closed', () => badStream.stream.closed);
  goodStream.stream.write(message(2));
  await eventually('others go on', () => count() === 3);
});

test('pauses reading when processing entries exceeds the time budget, then continues', async () => {
  const { socket, isIn, count } = await startAccessLogs(new ReadingBudget({ workMs: 0.000_1, periodMs: 300 }));
  const { stream } = openStream(socket);
  stream.write(message(1));
  await eventually('reading pauses', () => isIn({ available: { listening: 'congested' } }));
  // Exceeds the flow control window of the stream, so the client has to wait.
  const largeMessage = message(5_000);
  for (let copies = 0; copies < 40; copies++) stream.write(largeMessage);
  await eventually('the client waits', () => stream.writableLength > 0);
  await eventually('reading continues', () => count() > 5_000);
});
