/** What a responder is given: the stream that it sends on, and the client. */
import type { StreamReport } from '../../../../machines/discovery/xds/ads-protocol.ts';
import type { Watch } from '../../../../machines/discovery/xds/watch-record.ts';
import type { NodeIdentity, NodeResources } from '../resource-source.ts';
import type { RolloutEvent } from '../rollout/rollout-events.ts';
import type { AdsTransport } from '../stream/ads-transport.ts';
import type { StreamSurroundings } from '../stream/stream-surroundings.ts';

/** The client, once it has told who it is. */
export interface KnownClient {
  readonly node: NodeIdentity;
  readonly resources: NodeResources;
  /** Who it has shown to be. */
  readonly identities: readonly string[];
  readonly isSecure: boolean;
}

export interface AdsResponderOptions {
  /** Number of the stream. */
  readonly number: number;
  /** `/package.Service/Method`. */
  readonly method: string;
  readonly delta: boolean;
  /** The type of a separate service; null on an aggregated stream. */
  readonly onlyType: string | null;
  readonly peer: string;
  readonly transport: AdsTransport;
  readonly around: StreamSurroundings;
  readonly tell: (report: StreamReport) => void;
  /** Does what the client or the network brings about; a bug in it costs the stream. */
  readonly contained: (deed: () => void) => void;
  /** Whether orders wait until earlier responses have left; told when that changes. */
  readonly congested: (isCongested: boolean) => void;
  /** A response could not be written. */
  readonly broken: (error: Error) => void;
  /** Takes what follows of clusters that the client can use, or cannot. */
  readonly rollout: (event: RolloutEvent) => void;
  readonly watchOf: (typeUrl: string) => Watch | undefined;
}
