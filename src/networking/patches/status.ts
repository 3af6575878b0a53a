/**
 * What became of patches (`pilot_envoy_filter_status`): kept beside them for people, and read by no generator. A patch
 * that is written anew begins anew.
 */
import type { EnvoyPatch } from '../../model/kinds/envoy-filter/envoy-filter.ts';
import type { HeldPatch } from './held-patch.ts';
import { PatchFailure } from './merge-messages.ts';

export interface PatchStatus {
  /** Whether anything was patched. */
  readonly applied: boolean;
  /** Why it could not be applied somewhere. */
  readonly problem?: string;
}

const statuses = new WeakMap<EnvoyPatch, PatchStatus>();
const tried = new WeakSet<EnvoyPatch>();
const untried: PatchStatus = { applied: false };

/** Status of a patch; one that met nothing yet is not applied, and has no problem. */
export function patchStatus(patch: EnvoyPatch): PatchStatus {
  return statuses.get(patch) ?? untried;
}

/** Records that the resources of a proxy were generated with the patches, whether or not they matched anything. */
export function recordTried(patches: readonly HeldPatch[]): void {
  for (const { written } of patches) tried.add(written);
}

/** Whether resources that the patch may change were generated with it. Before that, it is unknown whether it matches anything. */
export function wasTried(patch: EnvoyPatch): boolean {
  return tried.has(patch);
}

/** What a patch makes; what was there before when it cannot be applied, which is noted. */
export function attempt<T>(held: HeldPatch, before: T, apply: () => T): T {
  const status = patchStatus(held.written);
  try {
    const after = apply();
    if (!status.applied) statuses.set(held.written, { ...status, applied: true });
    return after;
  } catch (error) {
    if (!(error instanceof PatchFailure)) throw error;
    statuses.set(held.written, { ...status, problem: error.message });
    return before;
  }
}
