/** Whether kubelets run native sidecars: init containers with `restartPolicy: Always` (spec/injection.md §2.1). */

/** Stable since then; before it a cluster may have switched them off. */
const [minMajor, minMinor] = [1, 33];

/** @param version of a kubelet, such as `v1.33.4-gke.1`; one that cannot be read counts as old */
export function runsNativeSidecars(version: string): boolean {
  const [, major = '0', minor = '0'] = /^v?(\d+)\.(\d+)/.exec(version) ?? [];
  return Number(major) > minMajor || (Number(major) === minMajor && Number(minor) >= minMinor);
}

/**
 * @param ofPod version of the kubelet that will run the pod, if its node is known already
 * @param ofAll versions of all kubelets that are known; none: they are taken to be new
 */
export function supportsNativeSidecars(ofPod: string | undefined, ofAll: Iterable<string>): boolean {
  if (ofPod !== undefined) return runsNativeSidecars(ofPod);
  for (const version of ofAll) if (!runsNativeSidecars(version)) return false;
  return true;
}
