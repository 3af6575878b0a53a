/**
 * What the log says of a start of Envoy: which files it is held up for, one line when it is decided, one when it is over.
 * Pure.
 */
import type {
  BinaryChanged,
  BinaryRejected,
  BinaryWithdrawn,
  EpochsAdopted,
  FilesMissing,
  RestartDecided,
  RestartEnded,
} from '../../../machines/agent/protocol.ts';
import type { LogLine } from '../../runtime/actors/log-records.ts';
import type { TraceRecord } from '../../runtime/trace/trace.ts';

/** @returns undefined for a record that is about something else */
export function restartLogLine(record: TraceRecord): LogLine | undefined {
  const restart = restartIn(record);
  if (restart === undefined) return missingFilesLine(record) ?? adoptionLine(record) ?? binaryLine(record);
  const { name, reason, how } = restart;
  const fields = { 'restart.reason': reason, 'restart.how': how };
  if (restart.type === 'restart.decided') {
    return { level: 'info', line: `${name} is being started`, fields: { ...fields, attempt: restart.attempt } };
  }
  const { outcome, timeToLiveMs } = restart;
  return {
    level: outcome === 'live' || outcome === 'called off' ? 'info' : 'warn',
    line: outcome === 'live' ? `${name} is live` : `${name} has not become live`,
    fields: { ...fields, 'restart.outcome': outcome, ...(timeToLiveMs !== undefined && { timeToLiveMs }) },
  };
}

function missingFilesLine(record: TraceRecord): LogLine | undefined {
  if (record.kind !== 'event' || record.to !== 'agent' || record.event.type !== 'files.missing') return undefined;
  const { files, waitedMs, awaited } = record.event as unknown as FilesMissing;
  const which = files.join(', ');
  if (awaited) return { level: 'info', line: `waiting for ${which}`, fields: { waitedMs } };
  return { level: 'warn', line: `Envoy is started without ${which}`, fields: { waitedMs } };
}

function adoptionLine(record: TraceRecord): LogLine | undefined {
  if (record.kind !== 'event' || record.to !== 'agent' || record.event.type !== 'epochs.adopted') return undefined;
  const { names, handOver } = record.event as unknown as EpochsAdopted;
  const fields = { epochs: names.join(', ') };
  switch (handOver) {
    case 'granted':
      return { level: 'info', line: 'took over the Envoys of the previous agent', fields };
    case 'taken back':
      return { level: 'warn', line: 'the newer agent did not take over; this one goes on with its Envoys', fields };
    default:
      // Its Envoys went on serving, and the launcher reports agents that are killed again and again.
      return { level: 'info', line: 'the previous agent was killed; took over the Envoys that it left', fields };
  }
}

function binaryLine(record: TraceRecord): LogLine | undefined {
  const event = binaryIn(record);
  switch (event?.type) {
    case 'binary.changed':
      return { level: 'info', line: 'another Envoy is to be taken up', fields: { binary: event.description } };
    case 'binary.rejected':
      return { level: 'warn', line: 'another Envoy is not taken up', fields: { reason: event.reason } };
    case 'binary.withdrawn':
      return { level: 'warn', line: 'the new Envoy was taken back', fields: { reason: event.reason } };
    default:
      return undefined;
  }
}

/** What becomes of another Envoy at the path of its binary; undefined for any other record. */
export function binaryIn(record: TraceRecord): BinaryChanged | BinaryRejected | BinaryWithdrawn | undefined {
  if (record.kind !== 'event') return undefined;
  const event = record.event as unknown as BinaryChanged | BinaryRejected | BinaryWithdrawn;
  const isOurs =
    record.to === 'supervisor'
      ? event.type === 'binary.changed' || event.type === 'binary.rejected'
      : record.to === 'agent' && event.type === 'binary.withdrawn';
  return isOurs ? event : undefined;
}

/** What the supervisor tells the agent of a start; undefined for any other record. */
export function restartIn(record: TraceRecord): RestartDecided | RestartEnded | undefined {
  if (record.kind !== 'event' || record.to !== 'agent') return undefined;
  const event = record.event as unknown as RestartDecided | RestartEnded;
  return event.type === 'restart.decided' || event.type === 'restart.ended' ? event : undefined;
}
