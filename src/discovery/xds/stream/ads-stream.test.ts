/** The life of a stream where nothing else shows it: what comes when it is at its end. */

import { EventEmitter } from 'node:events';
import { create, toBinary } from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import { clusterType } from '../../../../machines/discovery/xds/ads-types.ts';
import { ScriptedSource } from '../../../../test/simulation/scripted-source.ts';
import { DiscoveryRequestSchema } from '../../../gen/envoy/service/discovery/v3/discovery_pb.ts';
import { silentLogger } from '../../../runtime/output/log.ts';
import type { RequestIntake } from '../requests/request-intake.ts';
import { NameLists } from '../requests/request-names.ts';
import { atOnce } from '../requests/request-turns.ts';
import { SharedBodies } from '../responses/ads-response.ts';
import { AdsStream } from './ads-stream.ts';
import type { AdsCall } from './ads-transport.ts';
import { StreamShares } from './stream-shares.ts';

/** A stream of which a test is both ends. */
function opened({ departures = atOnce, stream: http2 = undefined as EventEmitter | undefined } = {}) {
  const source = new ScriptedSource();
  const asked: string[] = [];
  const open = source.open.bind(source);
  source.open = (node) => {
    asked.push(node.id);
    return open(node);
  };
  const closed: string[] = [];
  const call = Object.assign(new EventEmitter(), {
    cancelled: false,
    writableFinished: true,
    getPeer: () => '10.0.0.1:1',
    write: () => true,
    end: () => {},
    call: { stream: http2 },
  });
  let take: (bytes: Buffer) => void = () => {};
  const intake = {
    begin: (taking: typeof take) => {
      take = taking;
    },
    hold: () => {},
    release: () => {},
  };
  const stream = new AdsStream(
    1,
    {
      call: call as unknown as AdsCall,
      intake: intake as unknown as RequestIntake,
      kind: { path: '/test', delta: false, onlyType: null },
    },
    {
      source,
      observer: { streamClosed: (_, code) => void closed.push(code) },
      logger: silentLogger,
      shares: new StreamShares(1_000, () => {}),
      bodies: new SharedBodies(),
      lists: new NameLists(),
      turns: atOnce,
      departures,
      rules: { resendsEndpoints: true, hearsLateNames: true, maxNames: 10, maxNameChars: 100 },
      tellsRoutine: false,
      secretsOnPlaintext: false,
      now: () => 0,
    },
  );
  const told: string[] = [];
  stream.open({ report: ({ type }) => void told.push(type), responded() {}, pushed() {}, acknowledged() {} });
  const request = create(DiscoveryRequestSchema, { node: { id: 'sidecar~10.0.0.1~a.b~b.svc' }, typeUrl: clusterType });
  const introduce = (): void => take(Buffer.from(toBinary(DiscoveryRequestSchema, request)));
  return { stream, call, told, asked, closed, introduce };
}

test('a client that says who it is after its stream was ended is asked nothing more, and nothing is opened for it', () => {
  const { stream, told, asked, introduce } = opened();
  stream.execute({ type: 'stream.end', code: 'OK', reason: '' });
  introduce();
  expect({ told, asked }).toEqual({ told: ['peer.authenticated'], asked: [] });
  expect(stream.identity).toBeUndefined();
});

test('a stream that was ended, left and disposed of tells once that it is over, with the code of its end, and who it was for', () => {
  const { stream, call, told, closed, introduce } = opened();
  introduce();
  stream.execute({ type: 'stream.end', code: 'UNAVAILABLE', reason: 'draining' });
  call.emit('close');
  call.emit('cancelled');
  stream.dispose();
  stream.dispose();
  expect(told.filter((type) => type === 'stream.closed')).toHaveLength(1);
  expect(closed).toEqual(['UNAVAILABLE']);
  expect(stream.identity?.id).toBe('sidecar~10.0.0.1~a.b~b.svc');
});

test('a client that is gone is let go in its turn, though its HTTP/2 stream is closed before', () => {
  const leaving: (() => void)[] = [];
  const http2 = Object.assign(new EventEmitter(), {
    ...{ session: {}, writable: true, writableFinished: false, destroyed: false },
    ...{ write: () => true, cork() {}, uncork() {}, respond() {}, close() {} },
  });
  const departures = { ...atOnce, run: (deed: () => void) => void leaving.push(deed) };
  const { call, told, introduce } = opened({ departures, stream: http2 });
  introduce();
  call.emit('cancelled');
  http2.emit('close');
  call.emit('close');
  expect([told.includes('stream.closed'), leaving.length]).toEqual([false, 1]);
  leaving[0]!();
  expect(told.filter((type) => type === 'stream.closed')).toHaveLength(1);
});
