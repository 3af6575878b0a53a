/** What is wrong with something that a person wrote, and where: enough to fix it without asking. */
import { visibleLine } from '../../runtime/visible-text.ts';
import type { ConfigKey } from './config.ts';

export interface Problem {
  /** An error keeps the object out of force; a warning does not. */
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
  /** Stable name of the warning, for who looks it up: `routes-foreign-host`. */
  readonly code?: string;
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
  return problem.code === undefined ? `${text}${other}` : `${text}${other} [${problem.code}]`;
}

/** `VirtualService shop/web spec.http[0] at mesh/web.yaml:12`. */
function otherText({ object, file, line, field }: OtherPlace): string {
  return `${[object, field].filter(Boolean).join(' ')} at ${file}:${line}`;
}
