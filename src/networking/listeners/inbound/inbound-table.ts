/** Decides which connections an inbound port accepts, and how it handles them. */

import { type ApplicationProtocol, isHttp } from '../../../model/fields/protocol.ts';
import type { PeerMode } from '../../../model/push-context/mutual-tls-mode.ts';
import { plaintextAlpn, rawBuffer } from '../inspection.ts';

export type PortTraffic = 'http' | 'tcp' | 'unknown';

export interface InboundRow {
  readonly transport: 'tls' | typeof rawBuffer;
  /** ALPN of the TLS client, or set by the HTTP inspector; empty for any. */
  readonly alpn: readonly string[];
  /** HTTP requests, or TCP connections with any content. */
  readonly content: 'requests' | 'bytes';
  /** Terminated TLS: mutual TLS of the mesh (`mesh`), TLS settings of the Sidecar object (`proxy`), or none (`application`). */
  readonly terminatedTls: 'mesh' | 'proxy' | 'application';
}

/** ALPN of proxies in the mesh, which distinguishes their mutual TLS from TLS of applications. */
const meshHttpAlpn: readonly string[] = ['istio-http/1.0', 'istio-http/1.1', 'istio-h2'];
const meshBytesAlpn: readonly string[] = ['istio-peer-exchange', 'istio'];
const meshAlpn: readonly string[] = ['istio', 'istio-peer-exchange', ...meshHttpAlpn];

export function trafficOf(protocol: ApplicationProtocol): PortTraffic {
  return protocol === 'unsupported' ? 'unknown' : isHttp(protocol) ? 'http' : 'tcp';
}

export function inboundRows(mode: PeerMode, traffic: PortTraffic, http10: boolean): readonly InboundRow[] {
  const plainHttp = plaintextAlpn(http10);
  switch (mode) {
    case 'STRICT':
      return {
        http: [mutualTlsRow([], 'requests')],
        tcp: [mutualTlsRow([], 'bytes')],
        unknown: [mutualTlsRow(meshHttpAlpn, 'requests'), mutualTlsRow([], 'bytes')],
      }[traffic];
    case 'PERMISSIVE':
      return {
        http: [mutualTlsRow(meshAlpn, 'requests'), plaintextRow([], 'requests')],
        tcp: [mutualTlsRow(meshAlpn, 'bytes'), applicationTlsRow, plaintextRow([], 'bytes')],
        unknown: [
          mutualTlsRow(meshHttpAlpn, 'requests'),
          plaintextRow(plainHttp, 'requests'),
          mutualTlsRow(meshBytesAlpn, 'bytes'),
          plaintextRow([], 'bytes'),
          applicationTlsRow,
        ],
      }[traffic];
    case 'DISABLE':
      return {
        http: [plaintextRow([], 'requests')],
        tcp: [plaintextRow([], 'bytes')],
        unknown: [plaintextRow(plainHttp, 'requests'), plaintextRow([], 'bytes')],
      }[traffic];
  }
}

const applicationTlsRow: InboundRow = { transport: 'tls', alpn: [], content: 'bytes', terminatedTls: 'application' };

function mutualTlsRow(alpn: readonly string[], content: InboundRow['content']): InboundRow {
  return { transport: 'tls', alpn, content: content, terminatedTls: 'mesh' };
}

function plaintextRow(alpn: readonly string[], content: InboundRow['content']): InboundRow {
  return { transport: rawBuffer, alpn, content: content, terminatedTls: 'application' };
}
