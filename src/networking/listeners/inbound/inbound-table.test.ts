import { describe, expect, it } from 'vitest';
import type { PeerMode } from '../../../model/push-context/mutual-tls-mode.ts';
import { inboundRows, type PortTraffic } from './inbound-table.ts';

/** Returns `TRANSPORT ALPN,… → CONTENT, TERMINATION` for each row: the content of the connection, and where its TLS is terminated. */
function rows(mode: PeerMode, traffic: PortTraffic, http10 = false): string[] {
  return inboundRows(mode, traffic, http10).map(
    ({ transport, alpn, content, terminatedTls }) =>
      `${transport} ${alpn.join()} → ${content}${terminatedTls === 'mesh' ? ', mTLS' : ''}`,
  );
}

const allMesh = 'istio,istio-peer-exchange,istio-http/1.0,istio-http/1.1,istio-h2';
const meshHttp = 'istio-http/1.0,istio-http/1.1,istio-h2';

describe('inbound connections that a port accepts', () => {
  it.each<[PeerMode, PortTraffic, string[]]>([
    ['STRICT', 'http', ['tls  → requests, mTLS']],
    ['STRICT', 'tcp', ['tls  → bytes, mTLS']],
    ['STRICT', 'unknown', [`tls ${meshHttp} → requests, mTLS`, 'tls  → bytes, mTLS']],
    ['PERMISSIVE', 'http', [`tls ${allMesh} → requests, mTLS`, 'raw_buffer  → requests']],
    ['PERMISSIVE', 'tcp', [`tls ${allMesh} → bytes, mTLS`, 'tls  → bytes', 'raw_buffer  → bytes']],
    [
      'PERMISSIVE',
      'unknown',
      [
        `tls ${meshHttp} → requests, mTLS`,
        'raw_buffer http/1.1,h2c → requests',
        'tls istio-peer-exchange,istio → bytes, mTLS',
        'raw_buffer  → bytes',
        'tls  → bytes',
      ],
    ],
    ['DISABLE', 'http', ['raw_buffer  → requests']],
    ['DISABLE', 'tcp', ['raw_buffer  → bytes']],
    ['DISABLE', 'unknown', ['raw_buffer http/1.1,h2c → requests', 'raw_buffer  → bytes']],
  ])('a port in mode %s with traffic %s has the expected rows', (mode, traffic, expected) => {
    expect(rows(mode, traffic)).toEqual(expected);
  });

  it('a port accepts HTTP/1.0 if HTTP/1.0 is enabled', () => {
    expect(rows('DISABLE', 'unknown', true)[0]).toBe('raw_buffer http/1.0,http/1.1,h2c → requests');
  });

  it.each<PeerMode>(['STRICT', 'PERMISSIVE'])('two rows never match the same connection in mode %s', (mode) => {
    for (const traffic of ['http', 'tcp', 'unknown'] as const) {
      const matches = inboundRows(mode, traffic, false).flatMap(({ transport, alpn }) =>
        (alpn.length === 0 ? ['any'] : alpn).map((protocol) => `${transport} ${protocol}`),
      );
      expect(new Set(matches).size).toBe(matches.length);
    }
  });
});
