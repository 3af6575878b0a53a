/** Only the registry reads these objects of the watched cluster, because they are not configuration. */
import type { ConfigProblem } from '../../../machines/discovery/protocol.ts';
import type { Config } from '../../model/config/config.ts';
import type { Steps } from '../../runtime/turns.ts';

export interface ObjectsReading {
  /** Changes by unique key `KIND/NAMESPACE/NAME`. `undefined` if the object was deleted. */
  readonly changes: readonly { readonly key: string; readonly current: Config | undefined }[];
  readonly problems: readonly ConfigProblem[];
  readonly recovered: readonly string[];
}

export interface FollowedObjects {
  /** The listener is called once between a change and the next read. */
  onChanged(listener: () => void): void;
  /**
   * If changes remain, listeners of {@link onChanged} are called again.
   *
   * @param heldConfigOf returns the registry's version of an object
   */
  readInSteps(heldConfigOf: (key: string) => Config | undefined): Steps<ObjectsReading>;
  readAll(): Steps<readonly Config[]>;
  /** `undefined` if the object does not exist or never was valid. */
  get(key: string): Config | undefined;
}
