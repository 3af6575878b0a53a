import type { Config } from '../../model/config/config.ts';
import type { ObjectProgress } from './object-findings.ts';

/** An object that some proxies have not applied or reject. */
export interface FollowedObject {
  readonly config: Config;
  generation: number;
  /** Number of the first push context with the object. */
  readonly number: number;
  followedAt: number;
  /** Report the status even if it is unchanged. */
  mustReport: boolean;
  /** Initially the time when the object was first followed. */
  reportedAt: number;
  distribution: ObjectProgress | undefined;
  reported: ObjectProgress | undefined;
}

export function isSame(one: ObjectProgress | undefined, other: ObjectProgress): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
