import { expect, test } from 'vitest';
import type { EpochsAdopted, FilesMissing, RestartDecided, RestartEnded } from '../../../machines/agent/protocol.ts';
import type { SecretObtained, SecretUnavailable } from '../../../machines/agent/secrets-protocol.ts';
import type { UpstreamFailed } from '../../../machines/agent/xds-protocol.ts';
import { type LoggedEvent, recordingLog } from '../../../test/harness/recording-log.ts';
import { logRecords } from '../../runtime/actors/log-records.ts';
import { createRecorder } from '../../runtime/trace/recorder.ts';
import { agentLog } from './agent-log.ts';
import { agentStates } from './agent-states.ts';

type Event =
  | EpochsAdopted
  | FilesMissing
  | RestartDecided
  | RestartEnded
  | SecretUnavailable
  | SecretObtained
  | UpstreamFailed
  | { type: 'upstream.opened'; credential: string }
  | { type: 'upstream.responded' };

function loggedEvents(to: string, ...events: Event[]): LoggedEvent[] {
  const recorder = createRecorder({ program: 'test' });
  const { log, lines } = recordingLog();
  logRecords(recorder, log, { states: agentStates, entry: agentLog() });
  for (const event of events) recorder.record({ kind: 'event', from: 'supervisor', to, event: { ...event } });
  return lines;
}

const restart = { name: 'epoch-1', epoch: 1, reason: 'configuration changed', how: 'hot restart' } as const;
const fields = { epoch: 'epoch-1', 'restart.reason': 'configuration changed', 'restart.how': 'hot restart' };

test('logs a restart decision and its outcome with reason, method and duration', () => {
  expect(
    loggedEvents(
      'agent',
      { type: 'restart.decided', ...restart, attempt: 2 },
      { type: 'restart.ended', ...restart, outcome: 'live', timeToLiveMs: 240 },
    ),
  ).toEqual([
    { event: 'restart.decided', level: 'info', ...fields, attempt: 2 },
    { event: 'restart.ended.live', level: 'info', ...fields, 'restart.outcome': 'live', timeToLiveMs: 240 },
  ]);
});

test('warns about a failed start, but not about a canceled one', () => {
  expect(
    loggedEvents(
      'agent',
      { type: 'restart.ended', ...restart, outcome: 'died' },
      { type: 'restart.ended', ...restart, outcome: 'called off' },
    ),
  ).toEqual([
    { event: 'restart.ended.failed', level: 'warn', ...fields, 'restart.outcome': 'died' },
    { event: 'restart.ended.canceled', level: 'info', ...fields, 'restart.outcome': 'called off' },
  ]);
});

test('logs one warning, with the reason of the epoch, if a start fails because the epoch fails', () => {
  const recorder = createRecorder({ program: 'test' });
  const { log, lines } = recordingLog();
  logRecords(recorder, log, { states: agentStates, entry: agentLog() });
  const record = (to: string, event: { type: string }): void =>
    void recorder.record({ kind: 'event', from: 'epoch-1', to, event: { ...restart, ...event } });
  record('agent', { type: 'restart.decided' });
  record('supervisor', { type: 'epoch.failed', ...{ reason: 'no such field' } });
  record('agent', { type: 'restart.ended', ...{ outcome: 'bootstrap refused' } });
  record('agent', { type: 'restart.ended', ...{ outcome: 'died' } });
  expect(lines.map(({ event, reason, ...rest }) => [event, rest['restart.outcome'] ?? reason])).toEqual([
    ['restart.decided', undefined],
    ['epoch.failed', 'no such field'],
    ['restart.ended.failed', 'died'],
  ]);
});

test('logs missing files at the first start as info while the agent waits, and as a warning if Envoy starts without them', () => {
  const files = ['/certs/tls.crt', '/certs/tls.key'];
  expect(
    loggedEvents(
      'agent',
      { type: 'files.missing', files, waitedMs: 1_000, awaited: true },
      { type: 'files.missing', files: files.slice(1), waitedMs: 120_000, awaited: false },
    ),
  ).toEqual([
    { event: 'files.missing.awaited', level: 'info', files: '/certs/tls.crt, /certs/tls.key', waitedMs: 1_000 },
    { event: 'files.missing', level: 'warn', files: '/certs/tls.key', waitedMs: 120_000 },
  ]);
});

test.each([
  ['granted', 'epochs.adopted.handedOver', 'info'],
  ['taken back', 'epochs.adopted.takenBack', 'warn'],
  [undefined, 'epochs.adopted.orphaned', 'info'],
] as const)('logs the adoption of Envoys (hand-over %s) once as %s', (handOver, event, level) => {
  const adoptedEvent: EpochsAdopted = { type: 'epochs.adopted', names: ['epoch-3'], ...(handOver && { handOver }) };
  expect(loggedEvents('agent', adoptedEvent)).toEqual([{ event, level, epochs: 'epoch-3' }]);
});

test('logs each version of a certificate once, with its expiry', () => {
  const certificateParts = { authorities: '', bundle: '' };
  const obtained: SecretObtained = {
    ...{ type: 'secret.obtained', name: 'default', version: 'a', authorities: '', root: '', parts: certificateParts },
    ...{ serialNumber: '0A', endsAtMs: 0 },
  };
  const line = { event: 'secret.obtained', level: 'info', name: 'default', notAfter: '1970-01-01T00:00:00.000Z' };
  expect(
    loggedEvents(
      'secrets',
      obtained,
      obtained,
      { ...obtained, version: 'b', serialNumber: '0B' },
      {
        ...{ ...obtained, name: 'ROOTCA', version: 'c', serialNumber: '', endsAtMs: null },
      },
    ),
  ).toEqual([
    { ...line, serialNumber: '0A' },
    { ...line, serialNumber: '0B' },
    { event: 'secret.obtained', level: 'info', name: 'ROOTCA' },
  ]);
});

test('warns about an unavailable certificate at attempts 1, 2, 4 and 8, but not at retries within 0.5 s', () => {
  const unavailableEvent: SecretUnavailable = {
    type: 'secret.unavailable',
    name: 'default',
    reason: 'a',
    attempts: 1,
    pauseMs: 500,
  };
  const lines = loggedEvents(
    'secrets',
    ...Array.from({ length: 9 }, (_, index) => ({ ...unavailableEvent, attempts: index + 1 })),
  );
  expect(lines.map(({ attempts }) => attempts)).toEqual([1, 2, 4, 8]);
  const brief = loggedEvents(
    'secrets',
    ...[1, 2].map((attempts) => ({ ...unavailableEvent, attempts, pauseMs: attempts * 50 })),
  );
  expect(brief.map(({ attempts }) => attempts)).toEqual([1]);
  expect(lines[0]).toEqual({
    ...{ event: 'secret.lacking', level: 'warn', name: 'default', attempts: 1, retryAfterMs: 500, reason: 'a' },
  });
});

test('logs a connection when the control plane responds, and repeated failures at attempts 1, 2, 4 and 8', () => {
  const failedEvent = (age: number): UpstreamFailed => ({
    ...{ type: 'upstream.failed', stream: age, isRefusal: true, retryAfterMs: 0 },
    reason: `UNAUTHENTICATED: authentication failed (token a, written ${age} s ago)`,
  });
  const openedEvent = { type: 'upstream.opened', credential: 'token a' } as const;
  const rejectedEvents = Array.from({ length: 9 }, (_, index) => [openedEvent, failedEvent(index + 1)]).flat();
  const lines = loggedEvents(
    'xds-stream-1',
    ...rejectedEvents,
    openedEvent,
    { type: 'upstream.responded' },
    failedEvent(10),
  );
  expect(lines.map(({ event, stream }) => [event, stream])).toEqual([
    ...[1, 2, 4, 8].map((stream) => ['upstream.failed', stream]),
    ['upstream.opened', undefined],
    ['upstream.failed', 10],
  ]);
});

test('logs nothing for events of other actors', () => {
  const entry = agentLog();
  const record = { kind: 'event', from: 'a', to: 'b', seq: 1, t: 0, event: { type: 'restart.ended' } } as const;
  expect(entry(record)).toBeUndefined();
  expect(entry({ ...record, to: 'agent', event: { type: 'signal.received' } })).toBeUndefined();
});
