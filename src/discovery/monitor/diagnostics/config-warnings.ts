import { type Config, configKeyText } from '../../../model/config/config.ts';
import type { Problem } from '../../../model/config/problem.ts';
import { type WarningCode, warningTable } from '../../../runtime/errors.ts';
import type { ObjectLocation } from '../../references/config-warning.ts';
import { findConfigWarnings } from '../../references/find-config-warnings.ts';
import { ObjectsOfControlPlane } from '../../references/known-objects.ts';
import type { FindDiagnostics } from './find-diagnostics.ts';
import { findProxyWarnings, type ProxyWarning } from './proxy-warnings.ts';

/** Limits memory, because one namespace can cause any number of warnings. */
const maxWarnings = 2_000;

export const findWarningsAcrossObjects: FindDiagnostics = function* (sources, reportDiagnostic) {
  const { context, configs, translationProblems } = sources;
  let omittedCount = 0;
  let warningCount = 0;
  for (const problem of translationProblems) {
    yield;
    if (warningCount < maxWarnings) {
      warningCount++;
      reportProblem(problem, reportDiagnostic);
    } else omittedCount++;
  }
  const meshObjects = new ObjectsOfControlPlane(configs, context, sources.proxies);
  for (const warnings of [findConfigWarnings(context, configs, meshObjects), findProxyWarnings(sources)]) {
    for (const warning of warnings) {
      if (warning === undefined) yield;
      else if (warningCount < maxWarnings) {
        warningCount++;
        reportWarning(warning, reportDiagnostic);
      } else omittedCount++;
    }
  }
  if (omittedCount > 0)
    reportDiagnostic('limit', `${omittedCount} more warnings are not listed, the limit is ${maxWarnings}`);
};

function reportWarning(
  { code, config, field, message, other, isOfReplica, isHidden }: ProxyWarning,
  reportDiagnostic: Parameters<FindDiagnostics>[1],
): void {
  const key = keyOf(config);
  const otherPlace = other && placeOf(other);
  reportDiagnostic(
    `${key} ${code} ${field}`,
    `${field}: ${message}${otherPlace === undefined ? '' : `; see ${placeText(otherPlace)}`}`,
    {
      ...{ objects: isHidden ? [] : [key], code, field },
      ...(otherPlace && { other: otherPlace }),
      ...(isOfReplica && { isOfReplica }),
    },
  );
}

/** Key of the diagnostic about a problem of a translation. */
export function translationProblemKey({ code, key, field = '' }: Problem): string {
  return `${key === undefined ? '' : configKeyText(key)} ${code} ${field}`;
}

/** Gateway API objects have their own status conditions. */
function reportProblem(problem: Problem, reportDiagnostic: Parameters<FindDiagnostics>[1]): void {
  const { code, key, field = '', message } = problem;
  const object = key === undefined ? '' : configKeyText(key);
  const tableCode = code !== undefined && code in warningTable ? { code: code as WarningCode } : {};
  reportDiagnostic(translationProblemKey(problem), `${field}: ${message}`, {
    ...{ objects: [object], field },
    ...tableCode,
  });
}

function placeOf({ config, field }: ObjectLocation): { readonly object: string; readonly field?: string } {
  return { object: keyOf(config), ...(field !== undefined && { field }) };
}

function placeText({ object, field }: { readonly object: string; readonly field?: string }): string {
  const name = object.startsWith('MeshConfig/') ? 'mesh configuration' : object;
  return field === undefined ? name : `${name} ${field}`;
}

function keyOf(config: Config): string {
  return configKeyText(config);
}
