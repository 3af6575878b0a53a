/** OpenShift assigns ranges of users and groups to each namespace. */
import type { Texts } from './pod.ts';

export interface ProxyIdentity {
  readonly uid: number;
  readonly gid: number;
}

const uidRangeKey = 'openshift.io/sa.scc.uid-range';
const groupsKey = 'openshift.io/sa.scc.supplemental-groups';

/**
 * Applications get the first user and group, and redirection excludes the proxy's user, so the proxy gets the last user of the range and the last
 * group of the first range.
 *
 * @returns `undefined` without valid ranges
 */
export function openShiftIdentity(annotations: Texts): ProxyIdentity | undefined {
  const uid = lastIdOf(annotations[uidRangeKey]);
  if (uid === undefined) return undefined;
  return { uid, gid: lastIdOf(annotations[groupsKey]) ?? uid };
}

/** The first range of a list has the form `1000620000/10000` (first and count) or `1000620000-1000629999`. */
function lastIdOf(ranges = ''): number | undefined {
  const [, firstId, separator, countOrLastId] = /^\s*(\d{1,10})([/-])(\d{1,10})\s*(?:,|$)/.exec(ranges) ?? [];
  if (firstId === undefined) return undefined;
  const lastId = separator === '/' ? Number(firstId) + Number(countOrLastId) - 1 : Number(countOrLastId);
  return lastId >= Number(firstId) && lastId < 2 ** 31 ? lastId : undefined;
}
