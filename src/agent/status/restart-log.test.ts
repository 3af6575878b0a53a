import { expect, test } from 'vitest';
import type { EpochsAdopted, FilesMissing, RestartDecided, RestartEnded } from '../../../machines/agent/protocol.ts';
import { logRecords } from '../../runtime/actors/log-records.ts';
import { createLogger } from '../../runtime/output/log.ts';
import { createRecorder } from '../../runtime/trace/recorder.ts';
import { restartLogLine } from './restart-log.ts';

function told(...events: (EpochsAdopted | FilesMissing | RestartDecided | RestartEnded)[]): string[] {
  const lines: string[] = [];
  const recorder = createRecorder({ program: 'test' });
  logRecords(recorder, createLogger({ write: (line) => lines.push(line.trimEnd()) }), { tell: restartLogLine });
  for (const event of events) recorder.record({ kind: 'event', from: 'supervisor', to: 'agent', event: { ...event } });
  return lines.map((line) => line.split('\t').slice(1).join(' '));
}

const restart = { name: 'epoch-1', epoch: 1, reason: 'configuration changed', how: 'hot restart' } as const;

test('a decision and its outcome are a line each, with why, how, and how long it took', () => {
  expect(
    told(
      { type: 'restart.decided', ...restart, attempt: 2 },
      { type: 'restart.ended', ...restart, outcome: 'live', timeToLiveMs: 240 },
    ),
  ).toEqual([
    'info default epoch-1 is being started  restart.reason="configuration changed"  restart.how="hot restart"  attempt=2',
    'info default epoch-1 is live  restart.reason="configuration changed"  restart.how="hot restart"  restart.outcome=live  timeToLiveMs=240',
  ]);
});

test('an outcome that nobody wanted is a warning; a start that is called off is none', () => {
  const [died, calledOff] = told(
    { type: 'restart.ended', ...restart, outcome: 'died' },
    { type: 'restart.ended', ...restart, outcome: 'called off' },
  );
  expect(died).toMatch(/^warn default epoch-1 has not become live .*restart\.outcome=died$/);
  expect(calledOff).toMatch(/^info default epoch-1 has not become live .*restart\.outcome="called off"$/);
});

test('files that the first start is held up for are told, and a start without them is a warning', () => {
  const files = ['/certs/tls.crt', '/certs/tls.key'];
  expect(
    told(
      { type: 'files.missing', files, waitedMs: 1_000, awaited: true },
      { type: 'files.missing', files: files.slice(1), waitedMs: 120_000, awaited: false },
    ),
  ).toEqual([
    'info default waiting for /certs/tls.crt, /certs/tls.key  waitedMs=1000',
    'warn default Envoy is started without /certs/tls.key  waitedMs=120000',
  ]);
});

test.each([
  ['granted', 'info'],
  ['taken back', 'warn'],
  [undefined, 'info'],
] as const)('Envoys of another agent, handed over as %s, are reported once with level %s', (handOver, level) => {
  const adopted: EpochsAdopted = { type: 'epochs.adopted', names: ['epoch-3'], ...(handOver && { handOver }) };
  const [line, ...more] = told(adopted);
  expect(more).toEqual([]);
  expect(line).toMatch(new RegExp(`^${level} .*epochs=epoch-3$`));
  expect(/was killed/.test(line!)).toBe(handOver === undefined);
});

test('what others say is told as ever', () => {
  const record = { kind: 'event', from: 'a', to: 'b', seq: 1, t: 0, event: { type: 'restart.ended' } } as const;
  expect(restartLogLine(record)).toBeUndefined();
  expect(restartLogLine({ ...record, to: 'agent', event: { type: 'signal.received' } })).toBeUndefined();
});
