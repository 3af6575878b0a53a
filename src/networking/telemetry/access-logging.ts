import type { Config } from '../../model/config/config.ts';
import type { AccessLogging, Telemetry } from '../../model/kinds/extensions/telemetry.ts';
import type { MeshConfig } from '../../model/mesh/mesh-config.ts';
import { appliesToSide, type TelemetrySide } from './mode.ts';

/** Target for the logs of the mesh configuration (`accessLogFile`, `enableEnvoyAccessLogService`). */
export const meshLog = Symbol('log of the mesh configuration');

export type LogTarget = string | typeof meshLog;

export interface LogChoice {
  readonly target: LogTarget;
  /** CEL expression; only entries for which it is true are logged. */
  readonly filter?: string;
}

/**
 * Applies the rules in order, those of the mesh first. A rule without providers applies to the providers of the previous rule. If it is the first
 * rule, it applies to the mesh's default providers, or to the log of the mesh configuration if the mesh has no default providers.
 *
 * @returns logs in the order of first mention
 */
export function chosenLogs(
  telemetries: readonly Config<Telemetry>[],
  mesh: Pick<MeshConfig, 'defaultProviders'>,
  side: TelemetrySide,
): readonly LogChoice[] {
  const { accessLogging: defaultProviderNames = [] } = mesh.defaultProviders;
  let targets: readonly LogTarget[] = defaultProviderNames.length > 0 ? defaultProviderNames : [meshLog];
  const rules = telemetries.flatMap(({ spec }) => spec.accessLogging ?? []);
  if (rules.length === 0) return targets.map((target) => ({ target }));
  const choices = new Map<LogTarget, LogChoice | undefined>();
  if (rules.every(({ providers = [] }) => providers.length === 0)) {
    for (const target of targets) choices.set(target, { target });
  }
  for (const rule of rules) {
    if (rule.providers !== undefined && rule.providers.length > 0) targets = rule.providers;
    if (!appliesToSide(rule.match, side)) continue;
    for (const target of targets) choices.set(target, choiceOf(rule, target));
  }
  return [...choices.values()].filter((choice) => choice !== undefined);
}

function choiceOf({ disabled, filter }: AccessLogging, target: LogTarget): LogChoice | undefined {
  if (disabled === true) return undefined;
  return filter === undefined ? { target } : { target, filter };
}
