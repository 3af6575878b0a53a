import type { CatalogueRow } from '../../catalogue-row.ts';

/** State of the world: each response has all resources of a type. Delta: a response has the changes. */
export type XdsProtocol = 'sotw' | 'delta';

/** xds-source-N/stream → xds-source-N. The stream is open, and the first requests are sent. */
export type SourceStreamOpened = { type: 'source-stream.opened' };
/** xds-source-N/stream → xds-source-N. A response was decoded; it applies when the chart has decided about its deletions. */
export type SourceResponseReceived = {
  type: 'source-response.received';
  /** A kind such as `VirtualService`. */
  kind: string;
  nonce: string;
  known: number;
  removed: number;
  /** Number of rejected objects, whose previous versions are kept. */
  rejected: number;
};
/** xds-source-N/stream → xds-source-N. The stream, or the attempt to open one, ended. */
export type SourceStreamEnded = {
  type: 'source-stream.ended';
  /** gRPC status, such as `UNAVAILABLE`. */
  code: string;
  reason: string;
  /** Minimum delay that the server requests; 0 without one. */
  retryAfterMs: number;
  /** Random, from 0 to 1: spreads the retries of several clients. */
  chance: number;
};

/**
 * xds-source-N → xds-source-N/stream. Apply the response and acknowledge it, or reject it if objects in it are invalid. `pause`: keep
 * objects that it deletes.
 */
export type SourceResponseApply = {
  type: 'source-response.apply';
  kind: string;
  nonce: string;
  deletions: 'apply' | 'pause';
};
/** xds-source-N → xds-source-N/stream. Apply the paused deletions of these kinds. */
export type SourceDeletionsApply = { type: 'source-deletions.apply'; kinds: string[] };
/** xds-source-N → xds-source-N/stream. The server has not sent these kinds: also request their other versions. */
export type SourceVersionsRequest = { type: 'source-versions.request'; kinds: string[] };

export type XdsSourceOrder = SourceResponseApply | SourceDeletionsApply | SourceVersionsRequest;

/** outside → xds-source-N. An operator confirms all paused deletions (`POST /debug/configsourcez?apply=…`). */
export type SourceDeletionsConfirmed = { type: 'source-deletions.confirmed' };

const diagram = 'xds-source';
type Row = CatalogueRow<typeof diagram>;
const self = 'xds-source-N';
const row = (type: string, from: string, to: string): Row => ({ type, from, to, diagram, seeds: [] });

export const xdsSourceCatalogue: readonly Row[] = [
  row('spawn', self, `${self}/restoring`),
  row('spawn', self, `${self}/stream`),
  ...['source-stream.opened', 'source-response.received', 'source-stream.ended'].map((type) =>
    row(type, `${self}/stream`, self),
  ),
  ...['source-response.apply', 'source-deletions.apply', 'source-versions.request'].map((type) =>
    row(type, self, `${self}/stream`),
  ),
  row('source-deletions.confirmed', 'outside', self),
  ...['firstResponseLimit', 'versionLimit', 'youngStream', 'retryDelay', 'startLimit', 'pauseLimit'].map((timer) =>
    row(`timer ${timer}`, self, self),
  ),
];
