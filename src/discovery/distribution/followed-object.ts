/** An object whose distribution is not complete, with what was found and reported of it. */
import type { Config } from '../../model/config/config.ts';
import type { Distribution } from './object-verdict.ts';

/** An object that not all proxies have, or one that Envoy rejects. */
export interface Followed {
  readonly config: Config;
  generation: number;
  /** Number of the first context that the object is in. */
  readonly number: number;
  /** When this generation was first seen, in milliseconds. */
  followedAt: number;
  /** The status is told whatever it is. */
  mustTell: boolean;
  /** When it was told last, or came. */
  toldAt: number;
  /** What was found at the last look, and what was told last. */
  distribution: Distribution | undefined;
  told: Distribution | undefined;
}

export function isSame(one: Distribution | undefined, other: Distribution): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
