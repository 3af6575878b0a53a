/** What the HTTP inspector of a listener does with long request lines. */
import { create } from '@bufbuild/protobuf';
import { anyPack } from '@bufbuild/protobuf/wkt';
import { expect, test } from 'vitest';
import { type Listener, ListenerSchema } from '../../gen/envoy/config/listener/v3/listener_pb.ts';
import { HttpInspectorSchema } from '../../gen/envoy/extensions/filters/listener/http_inspector/v3/http_inspector_pb.ts';
import { TlsInspectorSchema } from '../../gen/envoy/extensions/filters/listener/tls_inspector/v3/tls_inspector_pb.ts';
import { httpInspectorOutcome } from './inspected.ts';
import type { Question } from './question.ts';

const tls = anyPack(TlsInspectorSchema, create(TlsInspectorSchema));
const http = anyPack(HttpInspectorSchema, create(HttpInspectorSchema));

function listenerWith(...inspectors: readonly (typeof tls)[]): Listener {
  const filters = inspectors.map((value) => ({ configType: { case: 'typedConfig' as const, value } }));
  return create(ListenerSchema, { listenerFilters: filters });
}

/** @param bytes of the request line, with its line break */
function requestOf(bytes: number): Question {
  const path = `/${'a'.repeat(bytes - 'GET / HTTP/1.1__'.length)}`;
  const request = { version: 'HTTP/1.1', authority: 'a.test', method: 'GET', headers: {}, path } as const;
  return { direction: 'inbound', destination: { port: 80 }, http: request };
}

test.each([
  ['HTTP inspector', [http], 65_536, undefined],
  ['HTTP inspector', [http], 65_537, 'closed'],
  ['TLS inspector and the HTTP inspector', [tls, http], 16_384, undefined],
  ['TLS inspector and the HTTP inspector', [tls, http], 16_385, 'not decided'],
  ['TLS inspector and the HTTP inspector', [tls, http], 65_537, 'closed'],
  ['TLS inspector', [tls], 65_537, undefined],
] as const)('the outcome behind the %s of a request line of %i bytes is %s', (_, inspectors, bytes, kind) => {
  expect(httpInspectorOutcome(listenerWith(...inspectors), requestOf(bytes))?.kind).toBe(kind);
});

test('no HTTP inspector reads the request line of a TLS connection or of HTTP/2', () => {
  const listener = listenerWith(tls, http);
  const long = requestOf(70_000);
  expect(httpInspectorOutcome(listener, { ...long, tls: { alpn: [] } })).toBeUndefined();
  expect(httpInspectorOutcome(listener, { ...long, http: { ...long.http!, version: 'HTTP/2' } })).toBeUndefined();
});
