/** What is wrong with written configuration, and where: enough to fix it. */
import { visibleLine } from '../../runtime/visible-text.ts';
import type { Violation } from '../fields/violation.ts';
import type { ConfigKey } from './config.ts';

export interface Problem {
  /** An error rejects the object; a warning does not. */
  readonly severity: 'error' | 'warning';
  readonly file: string;
  /** 1-based. */
  readonly line: number;
  /** 1-based. */
  readonly column?: number;
  /** `VirtualService shop/web`. */
  readonly object?: string;
  /** The same, for who keeps the last good one in force. */
  readonly key?: ConfigKey;
  /** `spec.http[0].timeout`. */
  readonly field?: string;
  readonly message: string;
  /** Stable name, listed in docs/errors.md, docs/config-analysis.md or SECURITY.md: `FIELD_REQUIRED`, `routes-foreign-host`. */
  readonly code?: string;
  /** What is accepted: `from 1 to 65535`. */
  readonly expected?: string;
  /** The rejected value, bounded and visible. */
  readonly got?: string;
  /** The known name that is nearest to an unknown one. */
  readonly near?: string;
  /** Path of another field of the object, relative to what its kind decodes. */
  readonly beside?: string;
  /** The problem exists only if there are no more objects of this kind and namespace (empty: of none) than those that were looked at. */
  readonly absent?: { readonly kind: string; readonly namespace: string };
  /** The other object that it is about, where there is one. */
  readonly other?: OtherPlace;
  /** Key of what stands in for the object as long as there is no valid version of it (refused.ts). */
  readonly standIn?: string;
}

/** A place in an object besides that of the problem. */
export interface OtherPlace {
  /** `VirtualService shop/web`. */
  readonly object: string;
  readonly file: string;
  /** 1-based. */
  readonly line: number;
  /** 1-based. */
  readonly column?: number;
  /** `spec.http[0]`. */
  readonly field?: string;
}

/** `mesh/web.yaml:12:5: error: VirtualService shop/web: spec.http[0].timeout: must be a duration, …`. */
export function problemText(problem: Problem): string {
  const { file, line, column } = problem;
  // Objects of a cluster have no file, and then no line.
  const place = file === '' ? '' : [file, line, ...(column === undefined ? [] : [column])].join(':');
  const text = [place, problem.severity, problem.object, problem.field, problem.message]
    .filter((part) => part !== undefined && part !== '')
    .map((part) => visibleLine(String(part)))
    .join(': ');
  const other = problem.other === undefined ? '' : `; see ${visibleLine(otherText(problem.other))}`;
  const isNamed = problem.code === undefined || text.includes(`(${problem.code})`);
  return isNamed ? `${text}${other}` : `${text}${other} [${problem.code}]`;
}

/** The fields of a problem that a violation has. */
export function violationIn({ code, message, expected, got, near, beside }: Violation): Pick<Problem, keyof Violation> {
  return {
    ...{ code, message },
    ...(expected !== undefined && { expected }),
    ...(got !== undefined && { got }),
    ...(near !== undefined && { near }),
    ...(beside !== undefined && { beside }),
  };
}

/** `VirtualService shop/web spec.http[0] at mesh/web.yaml:12`. */
function otherText({ object, file, line, field }: OtherPlace): string {
  return `${[object, field].filter(Boolean).join(' ')} at ${file}:${line}`;
}
