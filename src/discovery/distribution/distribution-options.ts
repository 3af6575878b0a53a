/** What the distribution of objects is read from. */
import type { ConfigKey } from '../../model/config/config.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { ConfigSnapshot } from '../config/snapshots/config-snapshot.ts';
import type { FollowedProxy } from './proxy-progress.ts';
import type { OtherReplicaCounts } from './replica-report.ts';
import type { StatusObjects } from './status-objects.ts';

export interface ObjectDistributionOptions {
  readonly objects: StatusObjects;
  /** The current objects. */
  readonly configs: () => ConfigSnapshot;
  /** All that are connected. */
  readonly proxies: () => Iterable<FollowedProxy>;
  /** What a shape has of a type, with what it was made from. */
  readonly made: (
    context: PushContext,
    typeUrl: string,
    shape: ProxyShape,
    names: readonly string[] | '*',
  ) => readonly { readonly name: string; readonly dependsOn: readonly ConfigKey[] }[];
  /** Replicas whose proxies are not among `proxies`; absent: there is no other replica. */
  readonly others?: OtherReplicaCounts;
  /** REVISION; absent or empty: the default one. */
  readonly revision?: string;
  /** Milliseconds, of any beginning. */
  readonly now: () => number;
}
