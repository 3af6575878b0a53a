/** Records results of patches (`pilot_envoy_filter_status`) for users. A changed patch has no result yet. */
import type { EnvoyPatch } from '../../model/kinds/envoy-filter/envoy-filter.ts';
import type { ActivePatch } from './active-patch.ts';
import { PatchFailure } from './merge-messages.ts';

export interface PatchStatus {
  readonly isApplied: boolean;
  readonly problem?: string;
}

const statuses = new WeakMap<EnvoyPatch, PatchStatus>();
const attemptedPatches = new WeakSet<EnvoyPatch>();
const untriedStatus: PatchStatus = { isApplied: false };

/** A patch that has not matched anything yet is reported as not applied, without a problem. */
export function patchStatus(patch: EnvoyPatch): PatchStatus {
  return statuses.get(patch) ?? untriedStatus;
}

export function recordAttempted(patches: readonly ActivePatch[]): void {
  for (const { configuredPatch } of patches) attemptedPatches.add(configuredPatch);
}

/** Until resources were generated with the patch, it is unknown whether it matches anything. */
export function wasAttempted(patch: EnvoyPatch): boolean {
  return attemptedPatches.has(patch);
}

/** Applies the patch. If it fails, records the problem and returns the unchanged value. */
export function attemptPatch<T>(activePatch: ActivePatch, current: T, apply: () => T): T {
  const status = patchStatus(activePatch.configuredPatch);
  try {
    const result = apply();
    if (!status.isApplied) statuses.set(activePatch.configuredPatch, { ...status, isApplied: true });
    return result;
  } catch (error) {
    if (!(error instanceof PatchFailure)) throw error;
    statuses.set(activePatch.configuredPatch, { ...status, problem: error.message });
    return current;
  }
}
