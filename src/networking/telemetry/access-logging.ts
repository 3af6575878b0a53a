/** Which logs a connection writes: the `accessLogging` of the Telemetry objects in force (spec/discovery.md §8.11). */
import type { Config } from '../../model/config/config.ts';
import type { AccessLogging, Telemetry } from '../../model/kinds/extensions/telemetry.ts';
import type { MeshConfig } from '../../model/mesh/mesh-config.ts';
import { isFor, type Side } from './mode.ts';

/** The logs that the mesh configuration asks for by itself (`accessLogFile`, `enableEnvoyAccessLogService`), as one. */
export const meshLog = Symbol('log of the mesh configuration');

/** A provider by its name. */
export type LogTarget = string | typeof meshLog;

export interface LogChoice {
  readonly target: LogTarget;
  /** An expression of the Common Expression Language: what it is false for is not logged. */
  readonly filter?: string;
}

/**
 * Rule by rule, the mesh's first: each says of its providers whether and what they log. A rule that names none is about
 * those of the rule before it; the first about the mesh's default providers, and if there are none about the log of the
 * mesh configuration.
 *
 * @returns in the order in which the targets were first named
 */
export function chosenLogs(
  telemetries: readonly Config<Telemetry>[],
  mesh: Pick<MeshConfig, 'defaultProviders'>,
  side: Side,
): readonly LogChoice[] {
  const { accessLogging: byDefault = [] } = mesh.defaultProviders;
  let targets: readonly LogTarget[] = byDefault.length > 0 ? byDefault : [meshLog];
  const rules = telemetries.flatMap(({ spec }) => spec.accessLogging ?? []);
  if (rules.length === 0) return targets.map((target) => ({ target }));
  const choices = new Map<LogTarget, LogChoice | undefined>();
  // What no rule speaks of stays as the mesh says, unless a rule names others.
  if (rules.every(({ providers = [] }) => providers.length === 0)) {
    for (const target of targets) choices.set(target, { target });
  }
  for (const rule of rules) {
    if (rule.providers !== undefined && rule.providers.length > 0) targets = rule.providers;
    if (!isFor(rule.match, side)) continue;
    for (const target of targets) choices.set(target, choiceOf(rule, target));
  }
  return [...choices.values()].filter((choice) => choice !== undefined);
}

/** Undefined: nothing is logged there. */
function choiceOf({ disabled, filter }: AccessLogging, target: LogTarget): LogChoice | undefined {
  if (disabled === true) return undefined;
  return filter === undefined ? { target } : { target, filter };
}
