import { messageOf } from '../../src/runtime/errors.ts';

export interface CheckFinding {
  readonly check: string;
  readonly seen: string;
  readonly expected: string;
  readonly ok: boolean;
  /** Reason for a failure, too long for the table. */
  readonly detail?: string;
}

/** A step of a check, and the line that announces it. */
export type CheckStep = readonly [what: string, run: () => Promise<CheckFinding[]>];

/** Runs the steps sequentially. An error of a step is a finding and does not prevent the next steps. */
export async function runSteps(steps: readonly CheckStep[], progress: (line: string) => void): Promise<CheckFinding[]> {
  const findings: CheckFinding[] = [];
  for (const [title, run] of steps) {
    progress(title);
    try {
      findings.push(...(await run()));
    } catch (error) {
      findings.push({ check: title, seen: 'an error', expected: 'none', ok: false, detail: messageOf(error) });
    }
  }
  return findings;
}

/** Formats findings as a table. The last line summarizes them. */
export function formatFindings(findings: readonly CheckFinding[]): string {
  const rows = [
    ['', 'check', 'result', 'expected'] as const,
    ...findings.map(({ ok, check, seen, expected }) => [ok ? 'ok' : 'FAIL', check, seen, expected] as const),
  ];
  const widths = [0, 1, 2].map((column) => Math.max(...rows.map((row) => row[column]!.length)));
  const lines = rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  const details = findings.flatMap(({ check, detail }) => (detail === undefined ? [] : `${check}: ${detail}`));
  const failedCount = findings.filter(({ ok }) => !ok).length;
  const summary =
    failedCount === 0
      ? `all ${findings.length} results are as expected`
      : `${failedCount} of ${findings.length} results are not as expected`;
  return [...lines, '', ...details, summary].join('\n');
}

/** Formats a duration, such as `312 ms` or `1.5 s`. */
export function duration(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`;
}

/** Formats a percentage, such as `12.3 %`. */
export function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
