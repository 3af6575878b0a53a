import type { Config } from '../../../model/config/config.ts';
import type { EnvoyFilter } from '../../../model/kinds/envoy-filter/envoy-filter.ts';
import { patchStatus } from '../../../networking/index.ts';

export interface PatchReport {
  /** Object as `namespace/name`. */
  readonly name: string;
  readonly patch: string;
  /** `waiting` means that no proxy has requested a resource to patch. */
  readonly result: 'applied' | 'errored' | 'waiting';
  readonly field: string;
  readonly problem?: string;
}

export function patchReports(filters: readonly Config<EnvoyFilter>[]): readonly PatchReport[] {
  return filters.flatMap(({ namespace, name, spec }) =>
    spec.configPatches.map((patch, index): PatchReport => {
      const { isApplied, problem } = patchStatus(patch);
      const result = problem !== undefined ? 'errored' : isApplied ? 'applied' : 'waiting';
      const patchPlace = { name: `${namespace}/${name}`, patch: patch.applyTo, field: `configPatches[${index}]` };
      return { ...patchPlace, result, ...(problem !== undefined && { problem }) };
    }),
  );
}

/** A sample of `pilot_envoy_filter_status`. */
export type PatchCount = Pick<PatchReport, 'name' | 'patch' | 'result'> & { readonly count: number };

export function patchCounts(filter: Config<EnvoyFilter>): readonly PatchCount[] {
  const groups = Map.groupBy(patchReports([filter]), ({ patch, result }) => `${patch} ${result}`);
  return [...groups.values()].map((reports) => {
    const { name, patch, result } = reports[0]!;
    return { name, patch, result, count: reports.length };
  });
}
