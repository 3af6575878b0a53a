import type { ClientKind } from './plan.ts';

export type RequestPhase = 'connect' | 'response' | 'body';

export interface Failure {
  readonly kind: ClientKind;
  /** A system error code (`ECONNRESET`), `HTTP_503`, `TRUNCATED`, `REQUEST_TIMEOUT`, `DRAIN_TIMEOUT`. */
  readonly code: string;
  readonly message: string;
  readonly phase: RequestPhase;
  /** Milliseconds since the run's start. */
  readonly atMs: number;
  /** Milliseconds since the start of the request. */
  readonly elapsedMs: number;
  /** Received bytes of the body. */
  readonly bytes: number;
  /** Whether the connection was used for an earlier request. */
  readonly reusedConnection: boolean;
}

export interface Percentiles {
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly max: number;
}

export interface KindReport {
  /** Completed and failed requests. */
  readonly total: number;
  readonly failed: number;
  /** The first failures. */
  readonly failures: readonly Failure[];
  /** Latency of successful requests, accurate to 2 %. */
  readonly latencyMs: Percentiles;
  /** Successful responses by version of the service (header `x-version`). */
  readonly versions: Readonly<Record<string, number>>;
  readonly connections: number;
  /** `h2` only: requests that were not sent before a GOAWAY arrived, and then were sent on a new session. */
  readonly overtaken: number;
}

/** Results of the clients of one name. */
export interface NameReport {
  readonly total: number;
  readonly failed: number;
  /** Number of failed requests by code and message. */
  readonly reasons: Readonly<Record<string, number>>;
}

/** A certificate that was presented to new connections. */
export interface ServedCertificate {
  /** Upper-case hexadecimal with complete bytes. */
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
  /** Wall clock of the run's start in milliseconds since the Unix epoch, to relate the run to other events. */
  readonly startedAt: number;
  readonly durationMs: number;
  readonly total: number;
  readonly failed: number;
  readonly kinds: Readonly<Partial<Record<ClientKind, KindReport>>>;
  /** Results of each plan's clients, by the plan's name. */
  readonly byName: Readonly<Record<string, NameReport>>;
  readonly versions: Readonly<Record<string, number>>;
  /** In the order of first use. */
  readonly certificates: readonly ServedCertificate[];
  /** Slices without requests are omitted. */
  readonly timeline: readonly TimelineSlice[];
}

/** Formats a report: one line per kind, then the recorded failures. */
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
