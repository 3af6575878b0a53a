/** Findings of a load run during a step of the check. */
import { describeFailure, type LoadReport } from '../load/report.ts';
import type { Finding } from './findings.ts';

export type Progress = (line: string) => void;

export function noFailures(what: string, report: LoadReport): Finding {
  const first = Object.values(report.kinds).flatMap(({ failures }) => failures)[0];
  return {
    what,
    seen: `${report.failed} failed of ${report.total}`,
    wanted: '0 failed',
    ok: report.failed === 0 && report.total > 0,
    ...(first !== undefined && { detail: describeFailure(first) }),
  };
}
