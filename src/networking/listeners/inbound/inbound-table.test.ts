import { describe, expect, it } from 'vitest';
import type { PeerMode } from '../../../model/push-context/mutual-tls-mode.ts';
import { inboundRows, type PortTraffic } from './inbound-table.ts';

/** As `transport alpn,… → what it carries, where its TLS ends`. */
function rows(mode: PeerMode, traffic: PortTraffic, http10 = false): string[] {
  return inboundRows(mode, traffic, http10).map(
    ({ transport, alpn, carries, ends }) =>
      `${transport} ${alpn.join()} → ${carries}${ends === 'mesh' ? ', mTLS' : ''}`,
  );
}

const allMesh = 'istio,istio-peer-exchange,istio-http/1.0,istio-http/1.1,istio-h2';
const meshHttp = 'istio-http/1.0,istio-http/1.1,istio-h2';

describe('what a port takes', () => {
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
  ])('in mode %s, of %s', (mode, traffic, expected) => {
    expect(rows(mode, traffic)).toEqual(expected);
  });

  it('is HTTP/1.0 as well where that is served', () => {
    expect(rows('DISABLE', 'unknown', true)[0]).toBe('raw_buffer http/1.0,http/1.1,h2c → requests');
  });

  it.each<PeerMode>(['STRICT', 'PERMISSIVE'])('never lets two rows match the same (%s)', (mode) => {
    for (const traffic of ['http', 'tcp', 'unknown'] as const) {
      const matches = inboundRows(mode, traffic, false).flatMap(({ transport, alpn }) =>
        (alpn.length === 0 ? ['any'] : alpn).map((protocol) => `${transport} ${protocol}`),
      );
      expect(new Set(matches).size).toBe(matches.length);
    }
  });
});
