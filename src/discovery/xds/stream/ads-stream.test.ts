import { EventEmitter } from 'node:events';
import { create, toBinary } from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import { clusterType } from '../../../../machines/discovery/xds/ads-types.ts';
import { ScriptedSource } from '../../../../test/simulation/scripted-source.ts';
import { DiscoveryRequestSchema } from '../../../gen/envoy/service/discovery/v3/discovery_pb.ts';
import { silentLogger } from '../../../runtime/output/log.ts';
import type { RequestIntake } from '../requests/request-intake.ts';
import { RequestNameLists } from '../requests/request-names.ts';
import { immediateTurns } from '../requests/request-turns.ts';
import { SharedBodies } from '../responses/ads-response.ts';
import { AdsStream } from './ads-stream.ts';
import type { AdsCall } from './ads-transport.ts';
import { StreamShares } from './stream-shares.ts';

/** A stream of which the test controls both ends. */
function openStream({
  departures: closingTurns = immediateTurns,
  stream: http2 = undefined as EventEmitter | undefined,
} = {}) {
  const source = new ScriptedSource();
  const openedNodes: string[] = [];
  const openSource = source.openNode.bind(source);
  source.openNode = (node) => {
    openedNodes.push(node.id);
    return openSource(node);
  };
  const closedStreams: string[] = [];
  const call = Object.assign(new EventEmitter(), {
    cancelled: false,
    writableFinished: true,
    getPeer: () => '10.0.0.1:1',
    write: () => true,
    end: () => {},
    call: { stream: http2 },
  });
  let takeBytes: (bytes: Buffer) => void = () => {};
  const intake = {
    start: (taking: typeof takeBytes) => {
      takeBytes = taking;
    },
    pause: () => {},
    resume: () => {},
  };
  const stream = new AdsStream(
    1,
    {
      call: call as unknown as AdsCall,
      intake: intake as unknown as RequestIntake,
      kind: { path: '/test', isDelta: false, onlyType: null },
    },
    {
      source,
      observer: { streamClosed: (_, code) => void closedStreams.push(code) },
      logger: silentLogger,
      shares: new StreamShares(1_000, () => {}),
      bodies: new SharedBodies(),
      nameLists: new RequestNameLists(),
      turns: immediateTurns,
      closingTurns,
      rules: { resendsEndpoints: true, acceptsLateNames: true, maxNames: 10, maxNameChars: 100 },
      reportsRoutine: false,
      secretsOnPlaintext: false,
      now: () => 0,
    },
  );
  const reportTypes: string[] = [];
  stream.start({
    report: ({ type }) => void reportTypes.push(type),
    onResponded() {},
    onPushed() {},
    onAcknowledged() {},
  });
  const request = create(DiscoveryRequestSchema, { node: { id: 'sidecar~10.0.0.1~a.b~b.svc' }, typeUrl: clusterType });
  const introduce = (): void => takeBytes(Buffer.from(toBinary(DiscoveryRequestSchema, request)));
  return { stream, call, reportTypes, openedNodes, closed: closedStreams, introduce };
}

test('AdsStream ignores a node that is sent after the stream has ended', () => {
  const { stream, reportTypes, openedNodes, introduce } = openStream();
  stream.execute({ type: 'stream.end', code: 'OK', reason: '' });
  introduce();
  expect({ reportTypes, openedNodes }).toEqual({ reportTypes: ['peer.authenticated'], openedNodes: [] });
  expect(stream.identity).toBeUndefined();
});

test('AdsStream reports its end once, with status code and node, even if it is ended several times', () => {
  const { stream, call, reportTypes, closed, introduce } = openStream();
  introduce();
  stream.execute({ type: 'stream.end', code: 'UNAVAILABLE', reason: 'draining' });
  call.emit('close');
  call.emit('cancelled');
  stream.dispose();
  stream.dispose();
  expect(reportTypes.filter((type) => type === 'stream.closed')).toHaveLength(1);
  expect(closed).toEqual(['UNAVAILABLE']);
  expect(stream.identity?.id).toBe('sidecar~10.0.0.1~a.b~b.svc');
});

test('AdsStream closes a cancelled stream from the queue even if the HTTP/2 stream closes first', () => {
  const pendingCloses: (() => void)[] = [];
  const http2 = Object.assign(new EventEmitter(), {
    ...{ session: {}, writable: true, writableFinished: false, destroyed: false },
    ...{ write: () => true, cork() {}, uncork() {}, respond() {}, close() {} },
  });
  const closingTurns = { ...immediateTurns, run: (task: () => void) => void pendingCloses.push(task) };
  const { call, reportTypes, introduce } = openStream({ departures: closingTurns, stream: http2 });
  introduce();
  call.emit('cancelled');
  http2.emit('close');
  call.emit('close');
  expect([reportTypes.includes('stream.closed'), pendingCloses.length]).toEqual([false, 1]);
  pendingCloses[0]!();
  expect(reportTypes.filter((type) => type === 'stream.closed')).toHaveLength(1);
});
