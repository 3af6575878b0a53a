import { visibleLine } from '../../runtime/visible-text.ts';

/** `unknown` means that the check was skipped, because data could not be read. */
export type FindingLevel = 'ok' | 'warning' | 'error' | 'unknown';

export interface ClusterFinding {
  /** Stable name, such as `nodes` or `permissions`. */
  readonly check: string;
  readonly level: FindingLevel;
  readonly message: string;
  /** Recommended action. Absent if the level is `ok`. */
  readonly next?: string;
}

export type InstallationPhase = 'before installation' | 'after installation';

export interface ClusterReport {
  readonly phase: InstallationPhase;
  readonly namespace: string;
  readonly revision: string;
  readonly findings: readonly ClusterFinding[];
}

export const okFinding = (check: string, message: string): ClusterFinding => ({ check, level: 'ok', message });
export const warning = (check: string, message: string, next: string): ClusterFinding => ({
  ...{ check, level: 'warning', message, next },
});
export const error = (check: string, message: string, next: string): ClusterFinding => ({
  ...{ check, level: 'error', message, next },
});

export function unknownFinding(check: string, reason: string): ClusterFinding {
  const next = 'Run the command as a user who may read it, such as an administrator of the cluster.';
  return { check, level: 'unknown', message: `not checked: ${reason}`, next };
}

const levels = ['error', 'warning', 'unknown', 'ok'] as const;

/** Escapes control characters from the cluster. */
export function reportAsText({ phase, namespace, revision, findings }: ClusterReport): string {
  const width = Math.max(0, ...findings.map(({ check }) => check.length));
  const indent = ' '.repeat(9 + width);
  const outputLines = findings.flatMap(({ check, level, message, next }) => [
    `${level.padEnd(7)}  ${check.padEnd(width)}  ${visibleLine(message)}`,
    ...(next === undefined ? [] : [`${indent}  → ${visibleLine(next)}`]),
  ]);
  const sums = levels.map((level) => `${findings.filter((finding) => finding.level === level).length} ${level}`);
  const title = `${phase}, namespace ${namespace}, revision ${revision || 'default'}`;
  return `${[title, ...outputLines, sums.join(', ')].join('\n')}\n`;
}

export function reportAsJson(report: ClusterReport): string {
  return `${JSON.stringify(report, null, 2)}\n`;
}
