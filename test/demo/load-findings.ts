/** Findings of a load run during a step of the check. */
import { describeFailure, type LoadReport } from '../load/report.ts';
import type { CheckFinding } from './findings.ts';

export type Progress = (line: string) => void;

export function noFailures(check: string, report: LoadReport): CheckFinding {
  const first = Object.values(report.kinds).flatMap(({ failures }) => failures)[0];
  return {
    check,
    seen: `${report.failed} failed of ${report.total}`,
    expected: '0 failed',
    ok: report.failed === 0 && report.total > 0,
    ...(first !== undefined && { detail: describeFailure(first) }),
  };
}
