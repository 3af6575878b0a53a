import { messageOf } from '../../src/runtime/errors.ts';

/** One thing that the check looked at. */
export interface Finding {
  readonly what: string;
  readonly seen: string;
  readonly wanted: string;
  readonly ok: boolean;
  /** What does not fit into a table: why it is not as wanted. */
  readonly detail?: string;
}

/** A part of a check, and what is said when it begins. */
export type CheckStep = readonly [what: string, run: () => Promise<Finding[]>];

/** Runs the steps one after the other. One that throws is a finding, and the next ones run. */
export async function runSteps(steps: readonly CheckStep[], progress: (line: string) => void): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const [what, run] of steps) {
    progress(what);
    try {
      findings.push(...(await run()));
    } catch (error) {
      findings.push({ what, seen: 'an error', wanted: 'none', ok: false, detail: messageOf(error) });
    }
  }
  return findings;
}

/** What was seen, as a table; the last line says whether all is well. */
export function formatFindings(findings: readonly Finding[]): string {
  const rows = [
    ['', 'check', 'result', 'expected'] as const,
    ...findings.map(({ ok, what, seen, wanted }) => [ok ? 'ok' : 'FAIL', what, seen, wanted] as const),
  ];
  const widths = [0, 1, 2].map((column) => Math.max(...rows.map((row) => row[column]!.length)));
  const lines = rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  const details = findings.flatMap(({ what, detail }) => (detail === undefined ? [] : `${what}: ${detail}`));
  const failed = findings.filter(({ ok }) => !ok).length;
  const verdict =
    failed === 0
      ? `all ${findings.length} results are as expected`
      : `${failed} of ${findings.length} results are not as expected`;
  return [...lines, '', ...details, verdict].join('\n');
}

/** `312 ms`, `1.5 s`. */
export function duration(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`;
}

/** `12.3 %` */
export function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
