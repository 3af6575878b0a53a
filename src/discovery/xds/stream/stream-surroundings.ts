import type { ExchangeRules } from '../../../../machines/discovery/xds/ads-exchange.ts';
import type { RolloutRules } from '../../../../machines/discovery/xds/rollout-rules.ts';
import type { Logger } from '../../../runtime/output/log.ts';
import type { AdsObserver } from '../ads-observer.ts';
import type { OneShot } from '../one-shot.ts';
import type { NameLists } from '../requests/request-names.ts';
import type { Turns } from '../requests/request-turns.ts';
import type { ResourceReferences, ResourceSource } from '../resource-source.ts';
import type { ControlPlaneFields, SharedBodies } from '../responses/ads-response.ts';
import type { DepartedClusters } from '../rollout/departed-clusters.ts';
import type { RemovalTimes } from '../rollout/draining-listeners.ts';
import type { StreamShares } from './stream-shares.ts';

/** What all streams of a server share. */
export interface StreamSurroundings {
  readonly source: ResourceSource;
  /** Streams that are served, with a fair share for each namespace. */
  readonly shares: StreamShares;
  readonly observer: AdsObserver;
  readonly logger: Logger;
  readonly bodies: SharedBodies;
  /** Undefined: responses do not tell which server they are from. */
  readonly controlPlane?: ControlPlaneFields;
  readonly lists: NameLists;
  /** When requests are dealt with. */
  readonly turns: Turns;
  /** When a stream that is gone is cleared away: thousands may go at once, with their TCP connection. */
  readonly departures: Turns;
  /** Answers what is asked for once. */
  readonly oneShot?: OneShot;
  readonly rules: ExchangeRules;
  /** Holds back what names clusters that a client cannot use yet, and removals of what it may use. Undefined: neither. */
  readonly makeBeforeBreak?: {
    readonly references: ResourceReferences;
    readonly removal: RemovalTimes;
    readonly departed: DepartedClusters;
    /** Limit of a wait, in milliseconds. */
    readonly limitMs: number;
    /** Others than {@link rolloutRules}: a test breaks them. */
    readonly rules?: RolloutRules;
  };
  /** The charts hear of the ordinary run as well: people want to see it. */
  readonly tellsRoutine: boolean;
  /** Clients of a port without TLS may have secrets. */
  readonly secretsOnPlaintext: boolean;
  /** Unix time in milliseconds. */
  readonly now: () => number;
}
