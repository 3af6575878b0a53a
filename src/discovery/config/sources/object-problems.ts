/** Problems of objects that come from a cluster or over xDS. */
import type { ConfigProblem } from '../../../../machines/discovery/protocol.ts';
import { type Config, configKeyText } from '../../../model/config/config.ts';
import type { Problem } from '../../../model/config/problem.ts';
import { codeIn } from './config-problem.ts';

/** Includes the effect of the placeholder. */
export function problemOf(
  { severity, object = '', field = '', message, code, standIn = '' }: Problem,
  placeholders: readonly Config[],
  source: string,
): ConfigProblem {
  const placeholderEffect = placeholders.find((config) => configKeyText(config) === standIn)?.standsFor?.effect;
  return {
    ...{ severity, place: { source }, object, field, message },
    ...codeIn(code),
    ...(placeholderEffect !== undefined && { closed: placeholderEffect }),
  };
}

/** Limits memory, logs and statuses for an object with, for example, a list of 100,000 invalid ports. */
const maxProblemsOfObject = 50;

/** Errors come first, because they reject the object. */
export function boundedProblems(problems: readonly Problem[]): readonly Problem[] {
  if (problems.length <= maxProblemsOfObject) return problems;
  const errors = problems.filter(({ severity }) => severity === 'error');
  const orderedProblems = [...errors, ...problems.filter(({ severity }) => severity !== 'error')];
  const shownProblems = orderedProblems.slice(0, maxProblemsOfObject);
  const { field: _, code: __, ...lastProblem } = shownProblems.at(-1)!;
  const omittedCount = problems.length - maxProblemsOfObject + 1;
  return [
    ...shownProblems.slice(0, -1),
    { ...lastProblem, message: `has ${omittedCount} more errors and warnings, which are not listed` },
  ];
}

/** A placeholder has no effect while the last valid version applies. */
export function withoutEffect(
  problems: readonly ConfigProblem[],
  lastGoodConfigs: readonly Config[],
): readonly ConfigProblem[] {
  return lastGoodConfigs.length === 0 ? problems : problems.map(({ closed: _, ...problem }) => problem);
}
