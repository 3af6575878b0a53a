/** Records results of patches (`pilot_envoy_filter_status`) for users. A changed patch has no result yet. */
import type { EnvoyPatch } from '../../model/kinds/envoy-filter/envoy-filter.ts';
import type { ActivePatch } from './active-patch.ts';
import { PatchFailure } from './merge-messages.ts';

export interface PatchStatus {
  readonly applied: boolean;
  readonly problem?: string;
}

const statuses = new WeakMap<EnvoyPatch, PatchStatus>();
const tried = new WeakSet<EnvoyPatch>();
const untried: PatchStatus = { applied: false };

/** Reports a patch that has not matched anything yet as not applied, without a problem. */
export function patchStatus(patch: EnvoyPatch): PatchStatus {
  return statuses.get(patch) ?? untried;
}

/** Records that a proxy's resources were generated with the patches, even if nothing matched. */
export function recordTried(patches: readonly ActivePatch[]): void {
  for (const { written } of patches) tried.add(written);
}

/** Whether resources were generated with the patch. Before that, it is unknown whether it matches anything. */
export function wasTried(patch: EnvoyPatch): boolean {
  return tried.has(patch);
}

/** Applies the patch. If it fails, records the problem and returns the unchanged value. */
export function attemptPatch<T>(active: ActivePatch, current: T, apply: () => T): T {
  const status = patchStatus(active.written);
  try {
    const result = apply();
    if (!status.applied) statuses.set(active.written, { ...status, applied: true });
    return result;
  } catch (error) {
    if (!(error instanceof PatchFailure)) throw error;
    statuses.set(active.written, { ...status, problem: error.message });
    return current;
  }
}
