/** Findings about an agent's life, in the words of the rules: each case runs the real machines in virtual time. */
import fc from 'fast-check';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import type { Finding, FindingRule } from '../../src/debugger/findings/finding.ts';
import { rules, TraceFindings } from '../../src/debugger/findings/trace-findings.ts';
import { RecordedRun } from '../../src/debugger/trace/record-list.ts';
import type { TraceRecord } from '../../src/runtime/trace/trace.ts';
import { headerWith } from '../fixtures/trace-header.ts';
import type { ScheduledEvent, Step } from '../simulation/random-schedule.ts';
import { type RecordedLife, recordedLife } from '../simulation/recorded-life.ts';

beforeEach(() => {
  vi.spyOn(console, 'warn').mockImplementation(() => {});
});

const firstFinding = 'fine: epoch 0 is live 666 ms after the start';
const exitFinding = 'fine: exited 5.1 s after SIGTERM';

const stepAfter = (ms: number, happening: ScheduledEvent): Step => ({ gap: { ms }, scheduledEvent: happening });
/** Long enough for all later events. */
const laterStep = stepAfter(500_000, { kind: 'ready?' });

describe('trace findings', () => {
  test.each<{ readonly of: string; readonly steps: Step[]; readonly findings: string[] }>([
    {
      of: 'a certificate that changes',
      steps: [stepAfter(20_000, { kind: 'certificate' }), laterStep],
      findings: [firstFinding, 'note: epoch 1 replaced epoch 0 with no downtime: tls.crt changed', exitFinding],
    },
    {
      of: 'a SIGHUP',
      steps: [stepAfter(20_000, { kind: 'SIGHUP' }), laterStep],
      findings: [firstFinding, 'note: epoch 1 replaced epoch 0 with no downtime: SIGHUP received', exitFinding],
    },
    {
      of: 'an Envoy that is killed while it serves',
      steps: [stepAfter(20_000, { kind: 'crash', target: 'serving' }), laterStep],
      findings: [
        firstFinding,
        'bad: epoch 0 failed while serving: signal SIGSEGV',
        'bad: epoch 0 serves after 854 ms of downtime: epoch 0 failed (signal SIGSEGV)',
        exitFinding,
      ],
    },
    {
      of: 'a parent that dies while it drains',
      steps: [
        stepAfter(20_000, { kind: 'certificate' }),
        stepAfter(1_500, { kind: 'crash', target: 'oldest' }),
        laterStep,
      ],
      findings: [
        firstFinding,
        'note: epoch 1 replaced epoch 0 with no downtime: tls.crt changed',
        'bad: epoch 0 failed while draining: signal SIGSEGV; epoch 1 still serves and will be replaced',
        'note: epoch 0b replaced epoch 1 with no downtime: epoch 0 failed (signal SIGSEGV)',
        exitFinding,
      ],
    },
    {
      of: 'a child that dies while it starts: the certificate is still the reason',
      steps: [
        stepAfter(20_000, { kind: 'certificate' }),
        stepAfter(900, { kind: 'crash', target: 'starting' }),
        laterStep,
      ],
      findings: [
        firstFinding,
        'note: epoch 1 is live after 2 failed attempts; first failure while initializing: signal SIGSEGV; last failure while initializing: exit code 1: previous envoy process is still initializing',
        'note: epoch 1 replaced epoch 0 with no downtime: tls.crt changed',
        exitFinding,
      ],
    },
    {
      of: 'retries that are exhausted while another Envoy serves',
      steps: [
        stepAfter(20_000, { kind: 'no processes', forMs: 600_000 }),
        stepAfter(20_000, { kind: 'SIGHUP' }),
        laterStep,
      ],
      findings: [
        firstFinding,
        'bad: retries exhausted after 18 attempts; last failure while starting: spawn EAGAIN; epoch 0 still serves',
        exitFinding,
      ],
    },
    {
      of: 'retries that are exhausted while no Envoy serves',
      steps: [
        stepAfter(20_000, { kind: 'no processes', forMs: 6e6 }),
        stepAfter(2_000, { kind: 'crash', target: 'serving' }),
        laterStep,
      ],
      findings: [
        firstFinding,
        'bad: epoch 0 failed while serving: signal SIGSEGV',
        'bad: retries exhausted after 10 attempts; last failure while starting: spawn EAGAIN',
      ],
    },
    {
      of: 'a certificate that is half written',
      steps: [stepAfter(20_000, { kind: 'certificate half written' }), laterStep],
      findings: [
        firstFinding,
        'bad: new configuration rejected, old one kept: tls.crt: not a certificate',
        exitFinding,
      ],
    },
  ])('describe $of', ({ steps, findings: expected }) => {
    expect(findingsOf(recordedLife(steps))).toEqual(expected);
  });

  test('describe a trace that is cut off', () => {
    const { header, records } = recordedLife([laterStep]);
    const live = records.findIndex((record) => record.kind === 'event' && record.event.type === 'serving.began');
    expect(live).toBeGreaterThan(0);
    expect(findingsOf({ header, records: records.slice(0, live + 1) })).toEqual([
      firstFinding,
      'note: the trace ends while the program is running: it still runs, or it was killed',
    ]);
  });
});

test("a finding's durations are complete and sorted by length", () => {
  const { header, records } = recordedLife([stepAfter(20_000, { kind: 'certificate' }), laterStep]);
  const { verdicts: check } = checkedFindings({ header, records });
  const { spent, range } = check.find(({ sentence }) => sentence.includes('replaced'))!;
  expect(spent!.map(({ what }) => what).slice(0, 3)).toEqual([
    'epoch-1/probe',
    'timer watchDelay of cert-watcher',
    'epoch-1/prepare',
  ]);
  const all = spent!.reduce((sum, { ms }) => sum + ms, 0);
  expect(all).toBeCloseTo(records[range[1]]!.t - records[range[0]]!.t, 0);
});

test("a finding's root cause is the change of the file", () => {
  const { header, records } = recordedLife([stepAfter(20_000, { kind: 'certificate' }), laterStep]);
  const { root } = checkedFindings({ header, records }).verdicts.find(({ sentence }) => sentence.includes('replaced'))!;
  expect(records[root!]).toMatchObject({ event: { type: 'files.changed' } });
});

test('a growing trace has the same findings as a complete one', () => {
  const { header, records } = recordedLife([stepAfter(20_000, { kind: 'certificate' }), laterStep]);
  const growing: TraceRecord[] = [];
  const check = new TraceFindings(runOf({ header, records: growing }));
  for (const record of records) {
    growing.push(record);
    check.addNewRecords();
  }
  expect(check.findings).toEqual(checkedFindings({ header, records }).verdicts);
});

test('a rule that throws is reported once, without affecting other rules', () => {
  const { header, records } = recordedLife([stepAfter(20_000, { kind: 'certificate' }), laterStep]);
  let calls = 0;
  const brokenRule: FindingRule = {
    name: 'broken',
    reads: { events: ['files.changed', 'serving.began'], kinds: ['spawn'] },
    begin: () => ({
      onRecord: () => {
        calls++;
        throw new Error('no such field');
      },
    }),
  };
  const check = new TraceFindings(runOf({ header, records }), [brokenRule, ...rules]);
  check.addNewRecords();
  expect(check.brokenRules).toEqual([{ rule: 'broken', reason: 'no such field' }]);
  expect(calls).toBe(1);
  expect(check.findings).toEqual(checkedFindings({ header, records }).verdicts);
});

test('rules do not throw, whatever events a trace contains', () => {
  const types = [
    'serving.began',
    'serving.ended',
    'epoch.failed',
    'epoch.live',
    'config.rejected',
    'request.classified',
  ];
  const frequentEvents = ['restart.decided', 'clients.push', 'clients.served', 'signal.received', 'supervisor.stop'];
  const rare = ['settings.rejected', 'configs.rejected', 'supervisor.stop-now', 'quit.requested', 'files.changed'];
  const actor = fc.constantFrom('supervisor', 'agent', 'agent', 'epoch-0', 'epoch-0/process', '', '/');
  const event = fc
    .record({
      type: fc.constantFrom(...types, ...frequentEvents, ...rare),
      fields: fc.oneof(
        fc.dictionary(
          fc.constantFrom('name', 'reason', 'during', 'problems', 'path', 'typeUrl', 'verdict', 'signal', 'configs'),
          fc.jsonValue(),
        ),
        // Fields of the programs' events; other fields match few rules.
        fc.record({
          name: fc.constantFrom('epoch-0', 'epoch-1'),
          during: fc.constantFrom('serving', 'draining', 'starting'),
          reason: fc.constantFrom('Envoy crashed', 'files changed'),
          verdict: fc.constant('rejection'),
          signal: fc.constantFrom('SIGTERM', 'SIGHUP'),
        }),
      ),
    })
    .map(({ type, fields }) => ({ ...fields, type }));
  const body = fc.oneof(
    fc.record({ kind: fc.constant('event'), from: actor, to: actor, event, cause: fc.integer({ min: 0, max: 40 }) }),
    fc.record({ kind: fc.constant('transition'), actor, from: fc.string(), to: fc.string(), on: fc.string() }),
    fc.record({
      kind: fc.constant('stop'),
      actor,
      status: fc.constantFrom('done', 'stopped', 'error'),
      output: fc.jsonValue(),
    }),
    fc.record({ kind: fc.constant('unexpected'), actor, on: fc.string(), state: fc.string() }),
    fc.record({ kind: fc.constant('spawn'), actor }),
  );
  fc.assert(
    fc.property(fc.array(body, { minLength: 12, maxLength: 40 }), (bodies) => {
      const records = bodies.map((one, i) => ({ ...one, seq: i + 1, t: 700 * i }) as TraceRecord);
      const { broken, verdicts: check, atEnd } = checkedFindings({ header: headerWith(), records });
      expect(broken).toEqual([]);
      expect([...check, ...atEnd]).toEqual(findingsOfAll({ header: headerWith(), records }));
      for (const { sentence } of check) expect(sentence).toMatch(/^[^\n\r]{1,2000}$/);
    }),
    { numRuns: 2_000 },
  );
});

function runOf({ header, records }: RecordedLife) {
  return new RecordedRun(header, records);
}

function checkedFindings(trace: RecordedLife) {
  const check = new TraceFindings(runOf(trace));
  check.addNewRecords();
  return { verdicts: check.findings, broken: check.brokenRules, atEnd: check.finish() };
}

/** Findings when each rule receives every record, whatever it declares. */
function findingsOfAll(trace: RecordedLife): Finding[] {
  const run = runOf(trace);
  const runs = rules.map((rule) => rule.begin());
  return [
    ...trace.records.flatMap((record, index) => runs.flatMap((rule) => rule.onRecord(record, index, run) ?? [])),
    ...runs.flatMap((rule) => rule.end?.(run) ?? []),
  ];
}

function findingsOf(trace: RecordedLife): string[] {
  const { verdicts: check, atEnd } = checkedFindings(trace);
  return [...check, ...atEnd].map(({ weight, sentence }) => `${weight}: ${sentence}`);
}
