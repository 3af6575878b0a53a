import type { ClientKind } from './plan.ts';

/** Phase of a request in which it failed. */
export type RequestPhase = 'connect' | 'response' | 'body';

export interface Failure {
  readonly kind: ClientKind;
  /** A system error code (`ECONNRESET`), `HTTP_503`, `TRUNCATED`, `REQUEST_TIMEOUT`, `DRAIN_TIMEOUT`. */
  readonly code: string;
  readonly message: string;
  readonly phase: RequestPhase;
  /** When it failed, in milliseconds since the run's start. */
  readonly atMs: number;
  /** Since the request was begun. */
  readonly elapsedMs: number;
  /** Bytes of the body that had arrived. */
  readonly bytes: number;
  /** Whether the connection had carried an earlier request. */
  readonly reusedConnection: boolean;
}

export interface Percentiles {
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly max: number;
}

export interface KindReport {
  /** Requests that were begun and have ended, well or not. */
  readonly total: number;
  readonly failed: number;
  /** The first few failures, complete. */
  readonly failures: readonly Failure[];
  /** Of the requests that succeeded, to within 2 %. */
  readonly latencyMs: Percentiles;
  /** Successful responses by the version that the service reports (header `x-version`). */
  readonly versions: Readonly<Record<string, number>>;
  /** Connections opened. */
  readonly connections: number;
  /** `h2` only: requests that a GOAWAY overtook before they were sent, and that were then sent on a new session. */
  readonly overtaken: number;
}

/** Results of the clients of one name. */
export interface NameReport {
  readonly total: number;
  readonly failed: number;
  /** How many requests failed, by code and message. */
  readonly reasons: Readonly<Record<string, number>>;
}

/** A certificate that was served to new connections. */
export interface ServedCertificate {
  /** Upper-case hexadecimal, without leading zeros beyond a whole byte. */
  readonly serialNumber: string;
  readonly connections: number;
  readonly firstSeenMs: number;
  readonly lastSeenMs: number;
}

/** Requests that ended within one slice of the run. */
export interface TimelineSlice {
  /** Start of the slice, in milliseconds since the run's start. */
  readonly atMs: number;
  readonly total: number;
  readonly failed: number;
  readonly versions: Readonly<Record<string, number>>;
}

export interface LoadReport {
  /** Wall clock of the run's start, in milliseconds since the Unix epoch: to relate the run to what else happened. */
  readonly startedAt: number;
  readonly durationMs: number;
  readonly total: number;
  readonly failed: number;
  readonly kinds: Readonly<Partial<Record<ClientKind, KindReport>>>;
  /** Results of each plan's clients, by the plan's name. */
  readonly byName: Readonly<Record<string, NameReport>>;
  readonly versions: Readonly<Record<string, number>>;
  /** In the order in which they were first seen. */
  readonly certificates: readonly ServedCertificate[];
  /** Slices with nothing in them are left out. */
  readonly timeline: readonly TimelineSlice[];
}

/** The report in readable form: one line a kind, then each recorded failure. */
export function formatReport(report: LoadReport): string {
  const lines = [row('clients', 'total', 'failed', 'p50 ms', 'p99 ms', 'max ms', 'conns', 'versions')];
  for (const [kind, counts] of Object.entries(report.kinds)) {
    const { p50, p99, max } = counts.latencyMs;
    const versions = Object.entries(counts.versions).map(([version, count]) => `${version}=${count}`);
    lines.push(
      row(kind, counts.total, counts.failed, ms(p50), ms(p99), ms(max), counts.connections, versions.join(' ')),
    );
  }
  lines.push(`${report.failed} failed of ${report.total} in ${(report.durationMs / 1000).toFixed(1)} s`);
  for (const [kind, counts] of Object.entries(report.kinds)) {
    if (counts.overtaken > 0) lines.push(`  ${kind}: ${counts.overtaken} overtaken by a GOAWAY, sent on a new session`);
    lines.push(...counts.failures.map((failure) => `  ${describeFailure(failure)}`));
  }
  return lines.join('\n');
}

/** One failure in one line. */
export function describeFailure(failure: Failure): string {
  const connection = failure.reusedConnection ? 'used connection' : 'new connection';
  return (
    `${failure.kind}: ${failure.code} in ${failure.phase} at ${ms(failure.atMs)} ms, after ${ms(failure.elapsedMs)} ms ` +
    `and ${failure.bytes} bytes on a ${connection}: ${failure.message}`
  );
}

const ms = (value: number): string => value.toFixed(value < 10 ? 1 : 0);

function row(first: string, ...cells: readonly (string | number)[]): string {
  return [first.padEnd(8), ...cells.slice(0, -1).map((cell) => String(cell).padStart(8)), ` ${cells.at(-1)}`].join('');
}
