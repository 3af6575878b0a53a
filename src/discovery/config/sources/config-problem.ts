import type { ConfigPlace, ConfigProblem } from '../../../../machines/discovery/protocol.ts';
import type { Config } from '../../../model/config/config.ts';
import type { Problem } from '../../../model/config/problem.ts';
import { clusterConfig } from './config-sources.ts';

/** @param appliedPlaceholders active objects by key; if absent, no placeholder applies */
export function toConfigProblem(
  { severity, file, line, object = '', field = '', message, code, standIn = '' }: Problem,
  appliedPlaceholders?: ReadonlyMap<string, Config>,
): ConfigProblem {
  const placeholderEffect = appliedPlaceholders?.get(standIn)?.standsFor?.effect;
  // Objects in a cluster have no file.
  const location = file === '' ? { source: clusterConfig } : { file, line };
  return {
    severity,
    place: location,
    object,
    field,
    message,
    ...codeIn(code),
    ...(placeholderEffect !== undefined && { closed: placeholderEffect }),
  };
}

export function codeIn(code: string | undefined): Pick<ConfigProblem, 'code'> {
  return code === undefined ? {} : { code };
}

export function codesOf(problems: readonly ConfigProblem[]): string {
  return [...new Set(problems.flatMap(({ code }) => code ?? []))].join(', ');
}

/** Adds the code, as in `must not be empty [FIELD_EMPTY]`, for outputs without a field for codes. */
export function codedMessage({ message, code }: Pick<ConfigProblem, 'message' | 'code'>): string {
  return code === undefined || message.includes(`(${code})`) ? message : `${message} [${code}]`;
}

/** Returns a text such as `mesh/web.yaml:12`, or `k8s://east` for an object without a file. */
export function placeText(location: ConfigPlace): string {
  if ('source' in location) return location.source;
  return location.line > 0 ? `${location.file}:${location.line}` : location.file;
}

export function fileOrSourceOf(location: ConfigPlace): string {
  return 'source' in location ? location.source : location.file;
}

const maxProblemsPerLine = 5;

/**
 * Returns a text such as `mesh/web.yaml:12: VirtualService shop/web: spec.http[0].timeout: must be a duration; line 14: spec.hosts: is required`.
 *
 * @param problems of one object or one file
 */
export function describeProblems(problems: readonly ConfigProblem[]): string {
  const [first] = problems;
  if (first === undefined) return '';
  return [placeText(first.place), first.object, fieldTexts(problems)].filter((textPart) => textPart !== '').join(': ');
}

/** Omits location and object of the first problem. */
export function fieldTexts([first, ...laterProblems]: readonly ConfigProblem[]): string {
  if (first === undefined) return '';
  const shownProblems = laterProblems.slice(0, maxProblemsPerLine - 1).map(({ place, ...other }) => {
    return 'line' in place ? `line ${place.line}: ${fieldMessage(other)}` : fieldMessage(other);
  });
  const omittedCount = laterProblems.length - shownProblems.length;
  return [fieldMessage(first), ...shownProblems, ...(omittedCount > 0 ? [`and ${omittedCount} more`] : [])].join('; ');
}

/** Returns a line such as `mesh/web.yaml:12: VirtualService shop/web: spec.http[0].timeout: must be a duration`. */
export function problemLine({ place, object, ...problem }: ConfigProblem): string {
  return [placeText(place), object, fieldMessage(problem)].filter((textPart) => textPart !== '').join(': ');
}

export function fullProblemText({ severity, place, object, field, message }: ConfigProblem): string {
  return [placeText(place), severity, object, field, message].filter((textPart) => textPart !== '').join(': ');
}

function fieldMessage({ field, message }: Pick<ConfigProblem, 'field' | 'message'>): string {
  return field === '' ? message : `${field}: ${message}`;
}
