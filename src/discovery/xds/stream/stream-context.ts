import type { ExchangeRules } from '../../../../machines/discovery/xds/ads-exchange.ts';
import type { RolloutRules } from '../../../../machines/discovery/xds/rollout-rules.ts';
import type { Logger } from '../../../runtime/output/log.ts';
import type { AdsObserver } from '../ads-observer.ts';
import type { OneShot } from '../one-shot.ts';
import type { RequestNameLists } from '../requests/request-names.ts';
import type { WorkTurns } from '../requests/request-turns.ts';
import type { ResourceReferences, ResourceSource } from '../resource-source.ts';
import type { ControlPlaneFields, SharedBodies } from '../responses/ads-response.ts';
import type { DepartedClusters } from '../rollout/departed-clusters.ts';
import type { RemovalTimes } from '../rollout/draining-listeners.ts';
import type { StreamShares } from './stream-shares.ts';

/** Shared by all streams of a server. */
export interface StreamContext {
  readonly source: ResourceSource;
  readonly shares: StreamShares;
  readonly observer: AdsObserver;
  readonly logger: Logger;
  readonly bodies: SharedBodies;
  readonly controlPlane?: ControlPlaneFields;
  readonly nameLists: RequestNameLists;
  readonly turns: WorkTurns;
  /** Thousands of streams can end together with their TCP connection. */
  readonly closingTurns: WorkTurns;
  readonly oneShot?: OneShot;
  readonly rules: ExchangeRules;
  /** If absent, make-before-break is disabled. */
  readonly makeBeforeBreak?: {
    readonly references: ResourceReferences;
    readonly removal: RemovalTimes;
    readonly departedClusters: DepartedClusters;
    readonly limitMs: number;
    /** Default: {@link rolloutRules}. */
    readonly rules?: RolloutRules;
  };
  /** Whether routine events are reported to the charts, for the trace. */
  readonly reportsRoutine: boolean;
  readonly secretsOnPlaintext: boolean;
  /** Unix time in milliseconds. */
  readonly now: () => number;
}
