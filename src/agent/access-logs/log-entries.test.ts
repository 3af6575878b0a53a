import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { anyPack, StringValueSchema } from '@bufbuild/protobuf/wkt';
import { describe, expect, test } from 'vitest';
import {
  type HTTPAccessLogEntrySchema,
  ResponseFlagsSchema,
  type TCPAccessLogEntrySchema,
} from '../../gen/envoy/data/accesslog/v3/accesslog_pb.ts';
import { StreamAccessLogsMessageSchema } from '../../gen/envoy/service/accesslog/v3/als_pb.ts';
import { flagNames, readLogMessage } from './log-entries.ts';
import { WireError } from './wire-cursor.ts';

function httpMessage(...logEntry: MessageInitShape<typeof HTTPAccessLogEntrySchema>[]): Buffer {
  const logEntries = { case: 'httpLogs', value: { logEntry } } as const;
  return Buffer.from(toBinary(StreamAccessLogsMessageSchema, create(StreamAccessLogsMessageSchema, { logEntries })));
}

function tcpMessage(...logEntry: MessageInitShape<typeof TCPAccessLogEntrySchema>[]): Buffer {
  const message = create(StreamAccessLogsMessageSchema, {
    identifier: { logName: 'istio-metrics/source', node: { id: 'sidecar~10.0.0.1~a.b~c' } },
    logEntries: { case: 'tcpLogs', value: { logEntry } },
  });
  return Buffer.from(toBinary(StreamAccessLogsMessageSchema, message));
}

const certificate = (uri: string) => ({
  subjectAltName: [{ san: { case: 'uri', value: uri } } as const],
  subject: 'CN=x',
});

const claim = create(StringValueSchema, { value: '1;shop;default;web;web;v1;web;v1;c1' });

const request: MessageInitShape<typeof HTTPAccessLogEntrySchema> = {
  commonProperties: {
    sampleRate: 1,
    downstreamRemoteAddress: { address: { case: 'pipe', value: { path: '/x' } } },
    tlsProperties: {
      tlsSniHostname: 'outbound_.80_._.a',
      localCertificateProperties: certificate('spiffe://cluster.local/ns/b/sa/server'),
      peerCertificateProperties: certificate('spiffe://cluster.local/ns/a/sa/client'),
    },
    startTime: { seconds: 1_764_000_000n, nanos: 5_000_000 },
    timeToLastRxByte: { seconds: 99n },
    upstreamCluster: 'inbound|8080||',
    responseFlags: { upstreamConnectionFailure: true, upstreamRetryLimitExceeded: true },
    routeName: 'default',
    filterStateObjects: {
      other: anyPack(StringValueSchema, claim),
      'chartpilot.peer': anyPack(StringValueSchema, claim),
    },
    customTags: { t1: 'GET', s: '[{"host":"a"}]', w: 'w;ns;s;r;c', up: 'spiffe://peer', ul: 'spiffe://own' },
    duration: { seconds: 2n, nanos: 500_000_000 },
    streamId: 'id-1',
    downstreamWireBytesSent: 2n ** 40n,
    downstreamWireBytesReceived: 300n,
    accessLogType: 6,
  },
  request: { path: '/secret', requestHeaders: { 'content-type': 'application/grpc+proto' } },
  response: { responseCode: 503, responseTrailers: { 'grpc-status': '14' } },
};

describe('readLogMessage', () => {
  test('reads the fields of an HTTP entry that metrics need', () => {
    const { logName, entries } = readLogMessage(httpMessage(request, {}));
    expect(logName).toBeUndefined();
    expect(entries).toHaveLength(2);
    expect(entries[0]).toMatchObject({
      protocol: 'http',
      type: 6,
      streamId: 'id-1',
      startMs: 1_764_000_000_005,
      durationMs: 2_500,
      received: 300,
      sent: 2 ** 40,
      cluster: 'inbound|8080||',
      route: 'default',
      flags: 'UF,URX',
      code: 503,
      contentType: 'application/grpc+proto',
      grpcStatus: '14',
      peerUri: 'spiffe://cluster.local/ns/a/sa/client',
      localUri: 'spiffe://cluster.local/ns/b/sa/server',
      claim: claim.value,
      workload: 'w;ns;s;r;c',
      services: '[{"host":"a"}]',
      upstreamPeer: 'spiffe://peer',
      upstreamLocal: 'spiffe://own',
    });
    expect(entries[0]!.values[1]).toBe('GET');
    expect(entries[1]).toMatchObject({ code: 0, flags: '-', peerUri: '', claim: '' });
  });

  test('reads the log name and byte counts of a TCP connection', () => {
    const { logName, entries } = readLogMessage(
      tcpMessage({
        commonProperties: { streamId: 'c', accessLogType: 2, downstreamWireBytesSent: 9n },
        connectionProperties: { receivedBytes: 10n, sentBytes: 20n },
      }),
    );
    expect(logName).toBe('istio-metrics/source');
    expect(entries).toMatchObject([{ protocol: 'tcp', streamId: 'c', type: 2, received: 10, sent: 20 }]);
  });

  test('has a name for each response flag of the API', () => {
    const fields = ResponseFlagsSchema.fields.map(({ number }) => number);
    expect(Object.keys(flagNames).map(Number)).toEqual(fields.sort((a, b) => a - b));
  });

  test('rejects truncated and random bytes without an endless loop', () => {
    const wholeMessage = httpMessage(request);
    for (let length = 1; length < wholeMessage.length; length++) {
      try {
        readLogMessage(wholeMessage.subarray(0, length));
      } catch (error) {
        expect(error).toBeInstanceOf(WireError);
      }
    }
    let seed = 7;
    for (let round = 0; round < 2_000; round++) {
      const bytes = Buffer.from(wholeMessage);
      for (let change = 0; change < 4; change++) {
        seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
        bytes[seed % bytes.length] = seed >>> 16;
      }
      try {
        readLogMessage(bytes);
      } catch (error) {
        expect(error).toBeInstanceOf(WireError);
      }
    }
  });
});
