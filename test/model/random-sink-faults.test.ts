/**
 * Random schedules in which the agent's log and trace fail, too: a full disk, a reader that disconnects or stops reading, a file that is moved. These
 * must not affect the agent, which must report lost records. Deliberately broken sinks must be detected.
 */
import fc from 'fast-check';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { LineSink, type LineSinkOptions } from '../../src/runtime/output/line-sink.ts';
import type { TraceSink } from '../../src/runtime/trace/trace.ts';
import { isQuick, sized } from '../harness/size-of-run.ts';
import { randomAgent } from '../simulation/random-effects.ts';
import { type RandomRun, type RandomRunOptions, run } from '../simulation/random-run.ts';
import { formatSchedule, type Schedule, schedules } from '../simulation/random-schedule.ts';
import { type SinkParts, sinkRules } from '../simulation/random-sinks.ts';

/** XState's development build warns about every event for a stopped actor. */
beforeAll(() => {
  vi.spyOn(console, 'warn').mockImplementation(() => {});
});

const agent = randomAgent();
/** Minimum number of runs that detects each broken sink below. */
const scheduleCount = 20;

/** Runs a schedule; returns all decisions of the charts with times and reasons. */
function decisionsOf(schedule: Schedule, options: Partial<RandomRunOptions>): { result: RandomRun; decisions: string } {
  const lines: string[] = [];
  const write: TraceSink['write'] = (line) => {
    if (line.kind !== 'header') lines.push(JSON.stringify(line));
  };
  const result = run(schedule, { agent, sink: { write, flush() {}, close() {} }, ...options });
  return { result, decisions: lines.join('\n') };
}

test("failures of log and trace do not change the agent's decisions, and lost records are reported", () => {
  const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
  const sums = { lines: 0, lost: 0, records: 0, recordsLost: 0 };
  const numRuns = sized({ short: 50, full: 3_000 });
  fc.assert(
    fc.property(schedules, (schedule) => {
      const withoutSinks = decisionsOf(schedule, {});
      expect(withoutSinks.result.violations).toEqual([]);
      const { result, decisions } = decisionsOf(schedule, { sinks: {} });
      const { sinks, ...rest } = result;
      expect(rest, formatSchedule(schedule)).toEqual(withoutSinks.result);
      expect(decisions).toBe(withoutSinks.decisions);
      for (const key of Object.keys(sums) as (keyof typeof sums)[]) sums[key] += sinks![key];
    }),
    { numRuns, seed: 1 },
  );
  expect(warn).not.toHaveBeenCalled();
  // The faults must have an effect: otherwise nothing is tested.
  expect(sums.lost).toBeGreaterThan(numRuns);
  expect(sums.recordsLost).toBeGreaterThan(numRuns);
});

class ThrowingSink extends LineSink {
  override write(lines: string | Buffer): void {
    super.write(lines);
    if (this.waitingBytes > 0) throw new Error('EAGAIN: no room now');
  }
}

/** Retries until there is space. */
class WaitingSink extends LineSink {
  constructor({ open, ...options }: LineSinkOptions) {
    super({
      ...options,
      open: () => {
        const outlet = open();
        const write = (bytes: Buffer): number => {
          for (;;) {
            const takenBytes = outlet.write(bytes);
            if (takenBytes > 0) return takenBytes;
          }
        };
        return { ...outlet, write };
      },
    });
  }
}

/** Drops lines that have no space, without counting them. */
class ForgetfulSink extends LineSink {
  override write(lines: string | Buffer): void {
    if (this.waitingBytes < 1_000) super.write(lines);
  }
}

const brokenSinks: Record<string, { finds: keyof typeof sinkRules; sinks: SinkParts }> = {
  'a sink that throws while the disk is full': {
    finds: 'throws',
    sinks: { logSink: (options) => new ThrowingSink(options) },
  },
  'a sink that waits for its reader': { finds: 'waits', sinks: { logSink: (options) => new WaitingSink(options) } },
  'a sink that keeps all records while the disk is full': {
    finds: 'bounded',
    sinks: { logSink: (options) => new LineSink({ ...options, maxBytes: Number.POSITIVE_INFINITY }) },
  },
  'a sink that drops lines without counting them': {
    finds: 'reported',
    sinks: { logSink: (options) => new ForgetfulSink(options) },
  },
  'a log that does not report lost lines': { finds: 'reported', sinks: { logLosses: () => {} } },
};

describe.skipIf(isQuick)('random schedules with a faulty sink', () => {
  test.each(Object.entries(brokenSinks))('detect %s', (_, { finds, sinks }) => {
    vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
    const { failed } = fc.check(
      fc.property(
        schedules,
        (schedule) =>
          !run(schedule, { agent, sinks }).violations.some(({ invariant }) => invariant === sinkRules[finds]),
      ),
      { numRuns: scheduleCount, seed: 1, endOnFailure: true },
    );
    expect(failed).toBe(true);
  });
});
