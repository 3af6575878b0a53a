/** Native sidecars are init containers with `restartPolicy: Always`. */

/** The feature is stable from this version; earlier clusters may disable it. */
const [minMajor, minMinor] = [1, 33];

/** @param version such as `v1.33.4-gke.1`; an invalid version is treated as old */
export function runsNativeSidecars(version: string): boolean {
  const [, major = '0', minor = '0'] = /^v?(\d+)\.(\d+)/.exec(version) ?? [];
  return Number(major) > minMajor || (Number(major) === minMajor && Number(minor) >= minMinor);
}

/**
 * @param podValue kubelet version of the pod's node; `undefined` if the node is unknown
 * @param allValues versions of all kubelets; if empty, native sidecars are supported
 */
export function supportsNativeSidecars(podValue: string | undefined, allValues: Iterable<string>): boolean {
  if (podValue !== undefined) return runsNativeSidecars(podValue);
  for (const version of allValues) if (!runsNativeSidecars(version)) return false;
  return true;
}
