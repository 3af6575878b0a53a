/**
 * Which connections to a port are taken, and how (spec/discovery.md §8.4, table of inbound chain matches). Everything that
 * no row takes is refused.
 */

import { type ApplicationProtocol, isHttp } from '../../../model/fields/protocol.ts';
import type { PeerMode } from '../../../model/push-context/mutual-tls-mode.ts';
import { plaintextAlpn, rawBuffer } from '../inspection.ts';

/** What is known of the bytes on a port. */
export type PortTraffic = 'http' | 'tcp' | 'unknown';

export interface InboundRow {
  readonly transport: 'tls' | typeof rawBuffer;
  /** What the client offers, or what its first bytes were found to be; empty: anything. */
  readonly alpn: readonly string[];
  /** Whether the connection is read as requests, or carried on as it is. */
  readonly carries: 'requests' | 'bytes';
  /** Where its TLS ends: here, with the workload's certificates or with those that a Sidecar object names; or not here. */
  readonly ends: 'mesh' | 'proxy' | 'application';
}

/** What proxies of the mesh offer, to tell mutual TLS of the mesh from TLS of applications. */
const meshHttpAlpn: readonly string[] = ['istio-http/1.0', 'istio-http/1.1', 'istio-h2'];
const meshBytesAlpn: readonly string[] = ['istio-peer-exchange', 'istio'];
const meshAlpn: readonly string[] = ['istio', 'istio-peer-exchange', ...meshHttpAlpn];

export function trafficOf(protocol: ApplicationProtocol): PortTraffic {
  return protocol === 'unsupported' ? 'unknown' : isHttp(protocol) ? 'http' : 'tcp';
}

/** @param http10 clients of HTTP/1.0 are served (metadata `HTTP10`). */
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

/** TLS of the application's own. */
const foreignTls: InboundRow = { transport: 'tls', alpn: [], carries: 'bytes', ends: 'application' };

function mutual(alpn: readonly string[], carries: InboundRow['carries']): InboundRow {
  return { transport: 'tls', alpn, carries, ends: 'mesh' };
}

function plain(alpn: readonly string[], carries: InboundRow['carries']): InboundRow {
  return { transport: rawBuffer, alpn, carries, ends: 'application' };
}
