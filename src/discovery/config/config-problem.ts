import type { ConfigProblem } from '../../../machines/discovery/protocol.ts';
import type { Config } from '../../model/config/config.ts';
import type { Problem } from '../../model/config/problem.ts';

/**
 * A problem as events carry it.
 *
 * @param inForce by key; absent: nothing stands in for an object that is refused
 */
export function toConfigProblem(
  { severity, file, line, object = '', field = '', message, standIn = '' }: Problem,
  inForce?: ReadonlyMap<string, Config>,
): ConfigProblem {
  const closed = inForce?.get(standIn)?.standsFor?.effect;
  return { severity, file, line, object, field, message, ...(closed !== undefined && { closed }) };
}

const mostInOneLine = 5;

/**
 * `mesh/web.yaml:12: VirtualService shop/web: spec.http[0].timeout: must be a duration; line 14: spec.hosts: is required`.
 *
 * @param problems of one object, or of one file
 */
export function describeProblems(problems: readonly ConfigProblem[]): string {
  const [first, ...others] = problems;
  if (first === undefined) return '';
  const place = first.line > 0 ? `${first.file}:${first.line}` : first.file;
  const shown = others.slice(0, mostInOneLine - 1).map((other) => `line ${other.line}: ${mistake(other)}`);
  const rest = others.length - shown.length;
  const start = [place, first.object, mistake(first)].filter((part) => part !== '').join(': ');
  return [start, ...shown, ...(rest > 0 ? [`and ${rest} more`] : [])].join('; ');
}

function mistake({ field, message }: ConfigProblem): string {
  return field === '' ? message : `${field}: ${message}`;
}
