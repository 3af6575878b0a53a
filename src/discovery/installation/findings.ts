/** Findings of `pilot-discovery check`, as text and as JSON. */
import { visibleLine } from '../../runtime/visible-text.ts';

/** `unknown`: the part could not be read, so it was not checked. */
export type FindingLevel = 'ok' | 'warning' | 'error' | 'unknown';

export interface ClusterFinding {
  /** What was checked, stable: `nodes`, `permissions`. */
  readonly check: string;
  readonly level: FindingLevel;
  readonly message: string;
  /** What to do. Each finding has it whose level is not `ok`. */
  readonly next?: string;
}

export type Phase = 'before installation' | 'after installation';

export interface ClusterReport {
  readonly phase: Phase;
  readonly namespace: string;
  readonly revision: string;
  readonly findings: readonly ClusterFinding[];
}

export const ok = (check: string, message: string): ClusterFinding => ({ check, level: 'ok', message });
export const warning = (check: string, message: string, next: string): ClusterFinding => ({
  ...{ check, level: 'warning', message, next },
});
export const error = (check: string, message: string, next: string): ClusterFinding => ({
  ...{ check, level: 'error', message, next },
});

/** A part that the API server does not show. @param reason from the API server */
export function unknown(check: string, reason: string): ClusterFinding {
  const next = 'Run the command as a user who may read it, such as an administrator of the cluster.';
  return { check, level: 'unknown', message: `not checked: ${reason}`, next };
}

const levels = ['error', 'warning', 'unknown', 'ok'] as const;

/** A table, and its sums. Text of the cluster is printed without control characters. */
export function reportAsText({ phase, namespace, revision, findings }: ClusterReport): string {
  const width = Math.max(0, ...findings.map(({ check }) => check.length));
  const indent = ' '.repeat(9 + width);
  const lines = findings.flatMap(({ check, level, message, next }) => [
    `${level.padEnd(7)}  ${check.padEnd(width)}  ${visibleLine(message)}`,
    ...(next === undefined ? [] : [`${indent}  → ${visibleLine(next)}`]),
  ]);
  const sums = levels.map((level) => `${findings.filter((finding) => finding.level === level).length} ${level}`);
  const title = `${phase}, namespace ${namespace}, revision ${revision || 'default'}`;
  return `${[title, ...lines, sums.join(', ')].join('\n')}\n`;
}

export function reportAsJson(report: ClusterReport): string {
  return `${JSON.stringify(report, null, 2)}\n`;
}
