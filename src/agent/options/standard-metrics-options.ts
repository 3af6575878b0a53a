import { readSwitch } from '../../model/fields/switches.ts';
import { outOfRange } from '../../model/fields/violation.ts';
import type { OptionErrors } from '../../runtime/option-errors.ts';
import { defaultTableLimits } from '../access-logs/metric-table.ts';

export interface StandardMetricsOptions {
  /** Per metric; observations beyond the limit are counted together. */
  readonly maxLabelSets: number;
}

const limits = { min: 1, max: 100_000 } as const;

/** @returns `undefined` if disabled, or with a custom bootstrap, which may lack the cluster for access logs */
export function standardMetricsOptions(
  { env, ownBootstrap }: { env: NodeJS.ProcessEnv; ownBootstrap: boolean },
  errors: OptionErrors,
): StandardMetricsOptions | undefined {
  const isEnabled = readSwitch('STANDARD_METRICS', env, errors, true);
  const maxLabelSets = maxLabelSetsOf(env, errors);
  return isEnabled && !ownBootstrap ? { maxLabelSets } : undefined;
}

function maxLabelSetsOf(env: NodeJS.ProcessEnv, errors: OptionErrors): number {
  const text = env.STANDARD_METRICS_MAX_LABEL_SETS;
  if (!text) return defaultTableLimits.maxLabelSets;
  const { min, max } = limits;
  if (/^\d{1,9}$/.test(text) && Number(text) >= min && Number(text) <= max) return Number(text);
  errors.addFlagError('STANDARD_METRICS_MAX_LABEL_SETS', outOfRange(`an integer from ${min} to ${max}`, text));
  return defaultTableLimits.maxLabelSets;
}
