/** User and group of the proxy in OpenShift, which assigns a range of them to each namespace (spec/injection.md §2.1). */
import type { Texts } from './pod.ts';

export interface ProxyIdentity {
  readonly uid: number;
  readonly gid: number;
}

const usersKey = 'openshift.io/sa.scc.uid-range';
const groupsKey = 'openshift.io/sa.scc.supplemental-groups';

/**
 * The last user of the range and the last group of the first range: the first ones are those of applications, and redirection leaves out the traffic
 * of the proxy by its user.
 *
 * @returns `undefined` for a namespace without valid ranges
 */
export function openShiftIdentity(annotations: Texts): ProxyIdentity | undefined {
  const uid = lastOf(annotations[usersKey]);
  if (uid === undefined) return undefined;
  return { uid, gid: lastOf(annotations[groupsKey]) ?? uid };
}

/** `1000620000/10000` (first and count) or `1000620000-1000629999`; of a list the first. */
function lastOf(ranges = ''): number | undefined {
  const [, first, separator, second] = /^\s*(\d{1,10})([/-])(\d{1,10})\s*(?:,|$)/.exec(ranges) ?? [];
  if (first === undefined) return undefined;
  const last = separator === '/' ? Number(first) + Number(second) - 1 : Number(second);
  return last >= Number(first) && last < 2 ** 31 ? last : undefined;
}
