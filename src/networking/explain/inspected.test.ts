/** Tests the HTTP inspector with long request lines. */
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

/** @param bytes length of the request line, including the line break */
function requestOf(bytes: number): Question {
  const path = `/${'a'.repeat(bytes - 'GET / HTTP/1.1__'.length)}`;
  const request = { version: 'HTTP/1.1', authority: 'a.test', method: 'GET', headers: {}, path } as const;
  return { direction: 'inbound', destination: { port: 80 }, http: request };
}

test.each([
  ['an HTTP inspector', 65_536, 'accepted', [http], undefined],
  ['an HTTP inspector', 65_537, 'rejected', [http], 'closed'],
  ['TLS and HTTP inspectors', 16_384, 'accepted', [tls, http], undefined],
  ['TLS and HTTP inspectors', 16_385, 'not decided', [tls, http], 'not decided'],
  ['TLS and HTTP inspectors', 65_537, 'rejected', [tls, http], 'closed'],
  ['a TLS inspector', 65_537, 'accepted', [tls], undefined],
] as const)('with %s, a request line of %i bytes is %s', (_, bytes, _result, inspectors, kind) => {
  expect(httpInspectorOutcome(listenerWith(...inspectors), requestOf(bytes))?.kind).toBe(kind);
});

test('the HTTP inspector does not read TLS connections or HTTP/2 as request lines', () => {
  const listener = listenerWith(tls, http);
  const longRequest = requestOf(70_000);
  expect(httpInspectorOutcome(listener, { ...longRequest, tls: { alpn: [] } })).toBeUndefined();
  expect(
    httpInspectorOutcome(listener, { ...longRequest, http: { ...longRequest.http!, version: 'HTTP/2' } }),
  ).toBeUndefined();
});
