/** Where in an object of configuration something was written. */
import type { ConfigKey } from './config.ts';

export interface Origin {
  readonly key: ConfigKey;
  /** Fields from the document's root down: `['spec', 'http', 2]`; absent: the object as a whole. */
  readonly path?: readonly (string | number)[];
}
