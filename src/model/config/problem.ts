import { visibleLine } from '../../runtime/visible-text.ts';
import type { FieldViolation } from '../fields/violation.ts';
import type { ConfigKey } from './config.ts';

export interface Problem {
  /** An error rejects the object; a warning does not. */
  readonly severity: 'error' | 'warning';
  readonly file: string;
  readonly line: number;
  readonly column?: number;
  readonly object?: string;
  readonly key?: ConfigKey;
  /** A path such as `spec.http[0].timeout`. */
  readonly field?: string;
  readonly message: string;
  /** Stable code such as `FIELD_REQUIRED` or `routes-foreign-host`, listed in docs/errors.md, docs/config-analysis.md or SECURITY.md. */
  readonly code?: string;
  readonly expected?: string;
  readonly got?: string;
  readonly near?: string;
  /** Path of a related field in the same object, relative to the decoded part. */
  readonly beside?: string;
  /** The problem disappears if another object of this kind is created in this namespace (empty for cluster-wide kinds). */
  readonly absent?: { readonly kind: string; readonly namespace: string };
  readonly other?: RelatedLocation;
  /** Key of the placeholder that applies while the object has no valid version. */
  readonly standIn?: string;
}

export interface RelatedLocation {
  readonly object: string;
  readonly file: string;
  readonly line: number;
  readonly column?: number;
  readonly field?: string;
}

/** Formats `mesh/web.yaml:12:5: error: VirtualService shop/web: spec.http[0].timeout: must be a duration, …`. */
export function problemText(problem: Problem): string {
  const { file, line, column } = problem;
  const location = file === '' ? '' : [file, line, ...(column === undefined ? [] : [column])].join(':');
  const text = [location, problem.severity, problem.object, problem.field, problem.message]
    .filter((textPart) => textPart !== undefined && textPart !== '')
    .map((textPart) => visibleLine(String(textPart)))
    .join(': ');
  const relatedPlaceText = problem.other === undefined ? '' : `; see ${visibleLine(otherText(problem.other))}`;
  const isNamed = problem.code === undefined || text.includes(`(${problem.code})`);
  return isNamed ? `${text}${relatedPlaceText}` : `${text}${relatedPlaceText} [${problem.code}]`;
}

export function violationIn({
  code,
  message,
  expected,
  got,
  near,
  beside,
}: FieldViolation): Pick<Problem, keyof FieldViolation> {
  return {
    ...{ code, message },
    ...(expected !== undefined && { expected }),
    ...(got !== undefined && { got }),
    ...(near !== undefined && { near }),
    ...(beside !== undefined && { beside }),
  };
}

function otherText({ object, file, line, field }: RelatedLocation): string {
  return `${[object, field].filter(Boolean).join(' ')} at ${file}:${line}`;
}
