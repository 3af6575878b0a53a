import { LatencyHistogram } from './latency-histogram.ts';
import type { ClientKind } from './plan.ts';
import type {
  Failure,
  KindReport,
  LoadReport,
  NameReport,
  RequestPhase,
  ServedCertificate,
  TimelineSlice,
} from './report.ts';

export type Outcome =
  | { readonly ok: true; readonly elapsedMs: number; readonly version: string | undefined }
  | {
      readonly ok: false;
      readonly elapsedMs: number;
      readonly code: string;
      readonly message: string;
      readonly phase: RequestPhase;
      readonly bytes: number;
      readonly reusedConnection: boolean;
    };

const maxKeptFailures = 5;
const sliceMs = 50;
/** Ten minutes. Requests that end later are counted, but omitted from the timeline. */
const maxSlices = 12_000;

interface KindCounts {
  total: number;
  failed: number;
  connections: number;
  overtaken: number;
  readonly failures: Failure[];
  readonly versions: Record<string, number>;
  readonly latency: LatencyHistogram;
}

export class Tally {
  readonly #startedAt = performance.timeOrigin + performance.now();
  readonly #start = performance.now();
  readonly #kinds = new Map<ClientKind, KindCounts>();
  readonly #names = new Map<string, { total: number; failed: number; readonly reasons: Record<string, number> }>();
  readonly #certificates = new Map<string, { -readonly [Key in keyof ServedCertificate]: ServedCertificate[Key] }>();
  readonly #slices = new Map<number, { total: number; failed: number; versions: Record<string, number> }>();

  /** Milliseconds since the run's start. */
  elapsedMs(): number {
    return performance.now() - this.#start;
  }

  /** Counts an opened connection. `serialNumber` is that of its certificate, for TLS. */
  connected(kind: ClientKind, serialNumber?: string): void {
    this.#kind(kind).connections++;
    if (serialNumber === undefined) return;
    const now = this.elapsedMs();
    const knownCertificate = this.#certificates.get(serialNumber);
    if (knownCertificate === undefined) {
      this.#certificates.set(serialNumber, { serialNumber, connections: 1, firstSeenMs: now, lastSeenMs: now });
    } else {
      knownCertificate.connections++;
      knownCertificate.lastSeenMs = now;
    }
  }

  /** Counts a request that was not sent on its intended session. */
  overtaken(kind: ClientKind): void {
    this.#kind(kind).overtaken++;
  }

  /** @param name of the client plan */
  ended(kind: ClientKind, outcome: Outcome, name: string = kind): void {
    const counts = this.#kind(kind);
    const nameCounts = this.#name(name);
    const slice = this.#slice();
    counts.total++;
    nameCounts.total++;
    slice.total++;
    if (outcome.ok) {
      counts.latency.add(outcome.elapsedMs);
      const version = outcome.version ?? 'unknown';
      count(counts.versions, version);
      count(slice.versions, version);
      return;
    }
    counts.failed++;
    nameCounts.failed++;
    count(nameCounts.reasons, `${outcome.code} ${outcome.message}`);
    slice.failed++;
    if (counts.failures.length < maxKeptFailures) {
      const { ok: _, ...detail } = outcome;
      counts.failures.push({ kind, atMs: this.elapsedMs(), ...detail });
    }
  }

  report(): LoadReport {
    const kinds: Partial<Record<ClientKind, KindReport>> = {};
    const versions: Record<string, number> = {};
    let total = 0;
    let failed = 0;
    for (const [kind, { latency, ...counts }] of this.#kinds) {
      kinds[kind] = { ...counts, latencyMs: latency.percentiles() };
      total += counts.total;
      failed += counts.failed;
      for (const [version, responses] of Object.entries(counts.versions)) count(versions, version, responses);
    }
    return {
      startedAt: this.#startedAt,
      durationMs: this.elapsedMs(),
      total,
      failed,
      kinds,
      byName: Object.fromEntries<NameReport>(this.#names),
      versions,
      certificates: [...this.#certificates.values()],
      timeline: this.#timeline(),
    };
  }

  #timeline(): TimelineSlice[] {
    return [...this.#slices].map(([index, slice]) => ({ atMs: index * sliceMs, ...slice }));
  }

  #kind(kind: ClientKind): KindCounts {
    let counts = this.#kinds.get(kind);
    if (counts === undefined) {
      const latency = new LatencyHistogram();
      counts = { total: 0, failed: 0, connections: 0, overtaken: 0, failures: [], versions: {}, latency };
      this.#kinds.set(kind, counts);
    }
    return counts;
  }

  #name(name: string): { total: number; failed: number; readonly reasons: Record<string, number> } {
    const counts = this.#names.get(name) ?? { total: 0, failed: 0, reasons: {} };
    this.#names.set(name, counts);
    return counts;
  }

  #slice(): { total: number; failed: number; versions: Record<string, number> } {
    const index = Math.floor(this.elapsedMs() / sliceMs);
    let slice = this.#slices.get(index);
    if (slice === undefined) {
      slice = { total: 0, failed: 0, versions: {} };
      if (this.#slices.size < maxSlices) this.#slices.set(index, slice);
    }
    return slice;
  }
}

function count(counts: Record<string, number>, key: string, increment = 1): void {
  counts[key] = (counts[key] ?? 0) + increment;
}
