/**
 * Decides which connections an inbound port accepts, and how it handles them. Other
 * connections are rejected.
 */

import { type ApplicationProtocol, isHttp } from '../../../model/fields/protocol.ts';
import type { PeerMode } from '../../../model/push-context/mutual-tls-mode.ts';
import { plaintextAlpn, rawBuffer } from '../inspection.ts';

export type PortTraffic = 'http' | 'tcp' | 'unknown';

export interface InboundRow {
  readonly transport: 'tls' | typeof rawBuffer;
  /** ALPN of the TLS client, or set by the HTTP inspector; empty for any. */
  readonly alpn: readonly string[];
  /** HTTP requests, or TCP connections with any content. */
  readonly carries: 'requests' | 'bytes';
  /** Terminated TLS: mutual TLS of the mesh (`mesh`), TLS settings of the Sidecar object (`proxy`), or none (`application`). */
  readonly terminates: 'mesh' | 'proxy' | 'application';
}

/** ALPN of proxies in the mesh, which distinguishes their mutual TLS from TLS of applications. */
const meshHttpAlpn: readonly string[] = ['istio-http/1.0', 'istio-http/1.1', 'istio-h2'];
const meshBytesAlpn: readonly string[] = ['istio-peer-exchange', 'istio'];
const meshAlpn: readonly string[] = ['istio', 'istio-peer-exchange', ...meshHttpAlpn];

export function trafficOf(protocol: ApplicationProtocol): PortTraffic {
  return protocol === 'unsupported' ? 'unknown' : isHttp(protocol) ? 'http' : 'tcp';
}

/** @param http10 whether HTTP/1.0 is accepted (metadata `HTTP10`) */
export function inboundRows(mode: PeerMode, traffic: PortTraffic, http10: boolean): readonly InboundRow[] {
  const plainHttp = plaintextAlpn(http10);
  switch (mode) {
    case 'STRICT':
      return {
        http: [mutual([], 'requests')],
        tcp: [mutual([], 'bytes')],
        unknown: [mutual(meshHttpAlpn, 'requests'), mutual([], 'bytes')],
      }[traffic];
    case 'PERMISSIVE':
      return {
        http: [mutual(meshAlpn, 'requests'), plain([], 'requests')],
        tcp: [mutual(meshAlpn, 'bytes'), foreignTls, plain([], 'bytes')],
        unknown: [
          mutual(meshHttpAlpn, 'requests'),
          plain(plainHttp, 'requests'),
          mutual(meshBytesAlpn, 'bytes'),
          plain([], 'bytes'),
          foreignTls,
        ],
      }[traffic];
    case 'DISABLE':
      return {
        http: [plain([], 'requests')],
        tcp: [plain([], 'bytes')],
        unknown: [plain(plainHttp, 'requests'), plain([], 'bytes')],
      }[traffic];
  }
}

const foreignTls: InboundRow = { transport: 'tls', alpn: [], carries: 'bytes', terminates: 'application' };

function mutual(alpn: readonly string[], carries: InboundRow['carries']): InboundRow {
  return { transport: 'tls', alpn, carries, terminates: 'mesh' };
}

function plain(alpn: readonly string[], carries: InboundRow['carries']): InboundRow {
  return { transport: rawBuffer, alpn, carries, terminates: 'application' };
}
