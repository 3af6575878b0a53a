/** Objects of the followed cluster that only the registry reads, because they are not configuration. */
import type { ConfigProblem } from '../../../machines/discovery/protocol.ts';
import type { Config } from '../../model/config/config.ts';
import type { Steps } from '../../runtime/turns.ts';

export interface ObjectsReading {
  /** By key `Kind/namespace/name`; `undefined` if the object was deleted. Keys are unique. */
  readonly changes: readonly { readonly key: string; readonly current: Config | undefined }[];
  readonly problems: readonly ConfigProblem[];
  /** Objects whose problems are resolved, as shown to users. */
  readonly recovered: readonly string[];
}

export interface FollowedObjects {
  /** Calls the listener after a change, once until the next reading. */
  onChanged(listener: () => void): void;
  /**
   * Reads a bounded part of the changes since the last reading. If some are left, listeners of {@link onChanged} are called again.
   *
   * @param held the version of an object in the registry
   */
  reading(held: (key: string) => Config | undefined): Steps<ObjectsReading>;
  all(): Steps<readonly Config[]>;
  /** A current object; `undefined` if it does not exist or never was valid. */
  get(key: string): Config | undefined;
}
