/** OpenShift assigns ranges of users and groups to each namespace. */
import type { Texts } from './pod.ts';

export interface ProxyIdentity {
  readonly uid: number;
  readonly gid: number;
}

const usersKey = 'openshift.io/sa.scc.uid-range';
const groupsKey = 'openshift.io/sa.scc.supplemental-groups';

/**
 * Applications get the first user and group, and redirection excludes the proxy's user, so the proxy gets the last user of the range and the last
 * group of the first range.
 *
 * @returns `undefined` without valid ranges
 */
export function openShiftIdentity(annotations: Texts): ProxyIdentity | undefined {
  const uid = lastIdOf(annotations[usersKey]);
  if (uid === undefined) return undefined;
  return { uid, gid: lastIdOf(annotations[groupsKey]) ?? uid };
}

/** The first range of a list has the form `1000620000/10000` (first and count) or `1000620000-1000629999`. */
function lastIdOf(ranges = ''): number | undefined {
  const [, first, separator, end] = /^\s*(\d{1,10})([/-])(\d{1,10})\s*(?:,|$)/.exec(ranges) ?? [];
  if (first === undefined) return undefined;
  const lastId = separator === '/' ? Number(first) + Number(end) - 1 : Number(end);
  return lastId >= Number(first) && lastId < 2 ** 31 ? lastId : undefined;
}
