import type { Config } from '../../model/config/config.ts';
import type { ObjectProgress } from './object-findings.ts';

/** An object that some proxies reject or have not applied. */
export interface FollowedObject {
  readonly config: Config;
  generation: number;
  /** First push context that contains the object. */
  readonly number: number;
  followedAt: number;
  /** If true, the status is reported even if it is unchanged. */
  mustReport: boolean;
  /** Initially, the time when tracking of the object began. */
  reportedAt: number;
  distribution: ObjectProgress | undefined;
  lastReport: ObjectProgress | undefined;
}

export function isSameProgress(one: ObjectProgress | undefined, other: ObjectProgress): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
