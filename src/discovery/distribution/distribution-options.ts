import type { ConfigKey } from '../../model/config/config.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { ConfigSnapshot } from '../config/snapshots/config-snapshot.ts';
import type { FollowedProxy } from './proxy-progress.ts';
import type { OtherReplicaCounts } from './replica-report.ts';
import type { StatusObjects } from './status-objects.ts';

export interface ObjectDistributionOptions {
  readonly objects: StatusObjects;
  readonly configs: () => ConfigSnapshot;
  readonly proxies: () => Iterable<FollowedProxy>;
  readonly generate: (
    context: PushContext,
    typeUrl: string,
    shape: ProxyShape,
    names: readonly string[] | '*',
  ) => readonly { readonly name: string; readonly dependsOn: readonly ConfigKey[] }[];
  /** Absent if there is only one replica. */
  readonly otherReplicas?: OtherReplicaCounts;
  /** REVISION. Absent or empty for the default revision. */
  readonly revision?: string;
  /** Monotonic clock in milliseconds. */
  readonly now: () => number;
}
