import type { AdsStreamReport } from '../../../../machines/discovery/xds/ads-protocol.ts';
import type { Watch } from '../../../../machines/discovery/xds/watch-record.ts';
import type { NodeIdentity, NodeResources } from '../resource-source.ts';
import type { RolloutEvent } from '../rollout/rollout-events.ts';
import type { AdsTransport } from '../stream/ads-transport.ts';
import type { StreamContext } from '../stream/stream-context.ts';

export interface KnownClient {
  readonly node: NodeIdentity;
  readonly resources: NodeResources;
  /** Verified identities. */
  readonly identities: readonly string[];
  readonly isSecure: boolean;
}

export interface AdsResponderOptions {
  readonly number: number;
  /** Method as `/package.Service/Method`. */
  readonly method: string;
  readonly isDelta: boolean;
  /** Null for ADS. */
  readonly onlyType: string | null;
  readonly peer: string;
  readonly transport: AdsTransport;
  readonly context: StreamContext;
  readonly onReport: (report: AdsStreamReport) => void;
  /** Runs a task. Its error closes the stream. */
  readonly runGuarded: (task: () => void) => void;
  readonly onCongestionChange: (isCongested: boolean) => void;
  readonly onBroken: (error: Error) => void;
  readonly onRolloutEvent: (event: RolloutEvent) => void;
  readonly watchOf: (typeUrl: string) => Watch | undefined;
  readonly isHalfClosed: () => boolean;
  /** Whether the client has acknowledged a response. */
  readonly isServed: () => boolean;
}
