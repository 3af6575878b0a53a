/** Objects of the followed cluster that only the registry reads: they are no configuration. */
import type { ConfigProblem } from '../../../machines/discovery/protocol.ts';
import type { Config } from '../../model/config/config.ts';
import type { Steps } from '../../runtime/turns.ts';

export interface ObjectsReading {
  /** By key `Kind/namespace/name`; `undefined`: the object was deleted. Each key once. */
  readonly changes: readonly { readonly key: string; readonly current: Config | undefined }[];
  /** Problems of the objects that were read. */
  readonly problems: readonly ConfigProblem[];
  /** Objects, for people, whose problems are resolved. */
  readonly recovered: readonly string[];
}

export interface FollowedObjects {
  /** Calls the listener after a change, once until the next reading. */
  onChanged(listener: () => void): void;
  /**
   * Reads a bounded part of what changed since the last reading. If more is left, listeners of {@link onChanged} are called again.
   *
   * @param held the version of an object that the registry holds
   */
  reading(held: (key: string) => Config | undefined): Steps<ObjectsReading>;
  /** All objects, as of now. */
  all(): Steps<readonly Config[]>;
  /** One object, as of now; `undefined`: it does not exist, or never was valid. */
  get(key: string): Config | undefined;
}
