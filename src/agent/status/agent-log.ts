import type {
  BinaryChanged,
  BinaryRejected,
  BinaryWithdrawn,
  EpochsAdopted,
  FilesMissing,
  RestartDecided,
  RestartEnded,
  RestartOutcome,
} from '../../../machines/agent/protocol.ts';
import type { SecretObtained, SecretUnavailable } from '../../../machines/agent/secrets-protocol.ts';
import type { LogEntry } from '../../runtime/log-events/log-events.ts';
import type { TraceRecord } from '../../runtime/trace/trace.ts';

/** The converter of one agent process is stateful: for example, it logs each version of a certificate once. */
export function agentLog(): (record: TraceRecord) => LogEntry | 'logged elsewhere' | undefined {
  const certificates = new CertificateLog();
  const connections = new ConnectionLog();
  const starting = new Set<string>();
  const failedKeys = new Set<string>();
  return (record) =>
    restartEntry(record, starting, failedKeys) ??
    missingFilesEntry(record) ??
    adoptionEntry(record) ??
    binaryEntry(record) ??
    certificates.entry(record) ??
    connections.entry(record) ??
    processEntry(record, starting);
}

/** With these outcomes, the start was successful or is no longer needed. */
const expectedOutcomes: { readonly [Outcome in RestartOutcome]?: LogEntry['event'] } = {
  live: 'restart.ended.live',
  'called off': 'restart.ended.canceled',
};

/**
 * @param starting names of the epochs that are starting, for {@link processEntry}
 * @param failedKeys names of starting epochs whose failure was already logged with its reason
 */
function restartEntry(
  record: TraceRecord,
  starting: Set<string>,
  failedKeys: Set<string>,
): LogEntry | 'logged elsewhere' | undefined {
  if (record.kind === 'event' && record.to === 'supervisor' && record.event.type === 'epoch.failed') {
    const name = String(record.event.name);
    if (starting.has(name)) failedKeys.add(name);
    return undefined;
  }
  const restart = restartEventIn(record);
  if (restart === undefined) return undefined;
  const { name, reason, how } = restart;
  const fields = { epoch: name, 'restart.reason': reason, 'restart.how': how };
  if (restart.type === 'restart.decided') {
    starting.add(name);
    return { event: 'restart.decided', ...fields, attempt: restart.attempt };
  }
  starting.delete(name);
  if (failedKeys.delete(name)) return 'logged elsewhere';
  const { outcome, timeToLiveMs } = restart;
  return {
    event: expectedOutcomes[outcome] ?? 'restart.ended.failed',
    ...fields,
    'restart.outcome': outcome,
    ...(timeToLiveMs !== undefined && { timeToLiveMs }),
  };
}

function missingFilesEntry(record: TraceRecord): LogEntry | undefined {
  if (record.kind !== 'event' || record.to !== 'agent' || record.event.type !== 'files.missing') return undefined;
  const { files, waitedMs, awaited } = record.event as unknown as FilesMissing;
  return { event: awaited ? 'files.missing.awaited' : 'files.missing', files: files.join(', '), waitedMs };
}

const adoptions = {
  granted: 'epochs.adopted.handedOver',
  'taken back': 'epochs.adopted.takenBack',
  none: 'epochs.adopted.orphaned',
} as const;

function adoptionEntry(record: TraceRecord): LogEntry | undefined {
  if (record.kind !== 'event' || record.to !== 'agent' || record.event.type !== 'epochs.adopted') return undefined;
  const { names, handOver = 'none' } = record.event as unknown as EpochsAdopted;
  return { event: adoptions[handOver], epochs: names.join(', ') };
}

function binaryEntry(record: TraceRecord): LogEntry | undefined {
  const event = binaryEventIn(record);
  if (event === undefined) return undefined;
  return event.type === 'binary.changed'
    ? { event: event.type, binary: event.description }
    : { event: event.type, reason: event.reason };
}

class CertificateLog {
  readonly #versions = new Map<string, string>();

  entry(record: TraceRecord): LogEntry | 'logged elsewhere' | undefined {
    if (record.kind !== 'event' || record.to !== 'secrets') return undefined;
    switch (record.event.type) {
      case 'secret.obtained':
        return this.#obtainedEntry(record.event as unknown as SecretObtained);
      case 'secret.unavailable':
        return unavailableEntry(record.event as unknown as SecretUnavailable);
      case 'secret.expired':
        return { event: 'secret.ended', name: record.event.name };
      default:
        return undefined;
    }
  }

  #obtainedEntry({ name, version, serialNumber, endsAtMs }: SecretObtained): LogEntry | undefined {
    if (this.#versions.get(name) === version) return undefined;
    this.#versions.set(name, version);
    return {
      event: 'secret.obtained',
      name,
      ...(serialNumber !== '' && { serialNumber }),
      ...(endsAtMs !== null && { notAfter: new Date(endsAtMs).toISOString() }),
    };
  }
}

const isPowerOfTwo = (count: number): boolean => (count & (count - 1)) === 0;

/** A shorter pause means that a file is being replaced; the retry is not logged. */
const minLoggedPauseMs = 500;

/** Retries can follow quickly, so only attempts 1, 2, 4, 8, … are logged. */
function unavailableEntry({ name, reason, code, attempts, pauseMs }: SecretUnavailable): LogEntry | undefined {
  if (!isPowerOfTwo(attempts) || (attempts > 1 && pauseMs < minLoggedPauseMs)) return undefined;
  const fields = { name, attempts, retryAfterMs: pauseMs, ...(code !== undefined && { code }), reason };
  return { event: 'secret.lacking', ...fields };
}

/** The process of an adopted Envoy reports `process.spawned` too, but only new processes are logged. */
function processEntry(record: TraceRecord, starting: ReadonlySet<string>): LogEntry | undefined {
  if (record.kind !== 'event' || record.event.type !== 'process.spawned' || !starting.has(record.to)) return undefined;
  return { event: 'process.spawned', epoch: record.to, pid: record.event.pid };
}

/** Logs a connection when the control plane first responds. Of equal failures in a row, logs number 1, 2, 4, 8, … */
class ConnectionLog {
  /** Credentials of open connections without a response; the key is the actor. */
  readonly #credentials = new Map<string, unknown>();
  #failures = 0;
  #lastFailure = '';

  entry(record: TraceRecord): LogEntry | 'logged elsewhere' | undefined {
    if (record.kind === 'stop') this.#credentials.delete(record.actor);
    if (record.kind !== 'event') return undefined;
    const { event, to } = record;
    switch (event.type) {
      case 'upstream.opened':
        this.#credentials.set(to, event.credential);
        return undefined;
      case 'upstream.responded':
        return this.#respondedEntry(to);
      case 'upstream.failed':
        return this.#isFailureDue(String(event.reason)) ? undefined : 'logged elsewhere';
      default:
        return undefined;
    }
  }

  #respondedEntry(actor: string): LogEntry | undefined {
    if (!this.#credentials.has(actor)) return undefined;
    const credentials = this.#credentials.get(actor);
    this.#credentials.delete(actor);
    this.#failures = 0;
    return { event: 'upstream.opened', actor, credentials };
  }

  #isFailureDue(reason: string): boolean {
    const pattern = reason.replaceAll(/\d+/g, '0');
    this.#failures = pattern === this.#lastFailure ? this.#failures + 1 : 1;
    this.#lastFailure = pattern;
    return isPowerOfTwo(this.#failures);
  }
}

export function binaryEventIn(record: TraceRecord): BinaryChanged | BinaryRejected | BinaryWithdrawn | undefined {
  if (record.kind !== 'event') return undefined;
  const event = record.event as unknown as BinaryChanged | BinaryRejected | BinaryWithdrawn;
  const isBinaryEvent =
    record.to === 'supervisor'
      ? event.type === 'binary.changed' || event.type === 'binary.rejected'
      : record.to === 'agent' && event.type === 'binary.withdrawn';
  return isBinaryEvent ? event : undefined;
}

export function restartEventIn(record: TraceRecord): RestartDecided | RestartEnded | undefined {
  if (record.kind !== 'event' || record.to !== 'agent') return undefined;
  const event = record.event as unknown as RestartDecided | RestartEnded;
  return event.type === 'restart.decided' || event.type === 'restart.ended' ? event : undefined;
}
