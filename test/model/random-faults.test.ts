/**
 * Random schedules of faults and triggers against the agent's real statecharts, in virtual time (docs/benchmarks.md has the long run). A short
 * schedule must detect deliberately broken machines.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { assign, enqueueActions, sendParent, sendTo } from 'xstate';
import { epochMachine } from '../../machines/agent/envoy/epoch.machine.ts';
import { removeEpoch, servingOf } from '../../machines/agent/envoy/epoch-record.ts';
import { supervisorMachine } from '../../machines/agent/envoy/supervisor.machine.ts';
import { openTrace } from '../../src/debugger/trace/read-trace.ts';
import type { TraceSink } from '../../src/runtime/trace/trace.ts';
import { traceFile } from '../../src/runtime/trace/trace-file.ts';
import { type AgentMachines, agentMachines } from '../../src/simulation/agent/exploration-effects.ts';
import { givingUpPasses, noChartFails, triggersAreApplied } from '../../src/simulation/agent/invariants/converging.ts';
import { agentExitsForReason } from '../../src/simulation/agent/invariants/exits.ts';
import type { Invariant } from '../../src/simulation/agent/invariants/invariant.ts';
import {
  noSignalToDrainingParent,
  servingIsKept,
  startingIsKilled,
} from '../../src/simulation/agent/invariants/keeping.ts';
import { fullDiskIsReported } from '../../src/simulation/agent/invariants/reporting.ts';
import { noDrainCutByStart, noGap } from '../../src/simulation/agent/invariants/starting.ts';
import { isQuick, sized } from '../harness/size-of-run.ts';
import { randomAgent } from '../simulation/random-effects.ts';
import { run } from '../simulation/random-run.ts';
import { schedules } from '../simulation/random-schedule.ts';
import { type Finding, formatFinding, searchSchedules, writeRandomTrace } from '../simulation/random-search.ts';
import { watchIsSpared } from '../simulation/random-world.ts';
import { SearchThread } from '../soak/search-thread.ts';
import { chartWithout } from './chart.ts';

/** XState's development build warns about every event for a stopped actor, here thousands. */
beforeAll(() => {
  vi.spyOn(console, 'warn').mockImplementation(() => {});
});

const folder = mkdtempSync(join(tmpdir(), 'chartpilot-random-'));
let keepsTraces = false;
afterAll(() => {
  if (!keepsTraces) rmSync(folder, { recursive: true });
});

/** Formats a finding and writes its trace; for the message of a failed test. */
function textOf(finding: Finding | undefined): string {
  if (finding === undefined) return '';
  keepsTraces = true;
  const path = join(folder, `seed-${finding.seed}.trace`);
  writeRandomTrace(finding.schedule, traceFile(path));
  return formatFinding(finding, path);
}

const seeds = sized({ short: [1], full: [1, 2, 3, 4] });
/** Minimum number of runs that detects each broken machine below. */
const scheduleCount = 500;
const schedulesEach = sized({ short: 120, full: 2_500 });

describe('thousands of random schedules of faults and triggers', () => {
  const thread = new SearchThread();
  afterAll(() => thread.end());

  test.each(seeds)('break no invariant, and the agent recovers or ends as configured (seed %i)', async (seed) => {
    const { figures, finding } = await thread.search({ seed, runs: schedulesEach });
    expect(textOf(finding)).toBe('');
    expect(figures.schedules).toBe(schedulesEach);
    expect(figures.checkedCount).toBeGreaterThan(0.08 * schedulesEach);
    expect(figures.spawnCount).toBeGreaterThan(2 * schedulesEach);
  });
});

test("a trace that fails randomly does not change the agent's behavior", () => {
  const agent = randomAgent();
  // A sink must not throw; one that throws anyway must not affect the recorded charts.
  const failing = (fails: Iterator<boolean>): TraceSink => ({
    write: () => {
      if (fails.next().value) throw new Error('no room');
    },
    flush() {},
    close() {},
  });
  vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
  fc.assert(
    fc.property(schedules, fc.infiniteStream(fc.boolean()), (schedule, fails) => {
      expect(run(schedule, { agent, sink: failing(fails[Symbol.iterator]()) })).toEqual(run(schedule, { agent }));
    }),
    { numRuns: sized({ short: 10, full: 60 }) },
  );
});

test('a trace that fails for a while lacks the records of that time, and the failure is reported with its reason', () => {
  const agent = randomAgent();
  const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
  const lossRange = fc.record({ first: fc.integer({ min: 1, max: 60 }), length: fc.integer({ min: 1, max: 200 }) });
  fc.assert(
    fc.property(schedules, lossRange, (schedule, { first, length }) => {
      warn.mockClear();
      const allSeqs: number[] = [];
      const writtenSeqs: number[] = [];
      const fails = (seq: number): boolean => seq >= first && seq < first + length;
      const sinkTo = (seqs: number[], isLost: (seq: number) => boolean): TraceSink => ({
        write: (line) => {
          if (!('seq' in line)) return;
          if (isLost(line.seq)) throw new Error('ENOSPC: no space left on device');
          seqs.push(line.seq);
        },
        flush() {},
        close() {},
      });
      const result = run(schedule, { agent, sink: sinkTo(writtenSeqs, fails) });
      expect(result).toEqual(run(schedule, { agent, sink: sinkTo(allSeqs, () => false) }));
      expect(writtenSeqs).toEqual(allSeqs.filter((seq) => !fails(seq)));
      const expectedReports = allSeqs.some(fails) ? [['trace: ENOSPC: no space left on device']] : [];
      expect(warn.mock.calls).toEqual(expectedReports);
    }),
    { numRuns: sized({ short: 8, full: 40 }) },
  );
});

interface BrokenMachines {
  machines: Partial<AgentMachines>;
  violatedInvariant: Invariant;
  /** Maximum number of steps of the schedule that detects it. */
  steps: number;
  /** 1, unless that seed detects a livelock first, or a schedule that takes long to shrink. */
  seed?: number;
}

const supervisor = (implementations: Parameters<typeof supervisorMachine.provide>[0]) => ({
  supervisor: supervisorMachine.provide(implementations),
});
const epoch = (implementations: Parameters<typeof epochMachine.provide>[0]) => ({
  epoch: epochMachine.provide(implementations),
});

const brokenMachines: Record<string, BrokenMachines> = {
  'F1: a supervisor that counts a failed epoch': {
    violatedInvariant: noGap,
    steps: 2,
    machines: supervisor({ actions: { removeEpoch: enqueueActions(({ enqueue }) => enqueue.stopChild('epoch-1')) } }),
  },
  'a supervisor that does not wait for the exit of the parent': {
    violatedInvariant: noDrainCutByStart,
    steps: 3,
    machines: supervisor({ guards: { isParentDraining: () => false } }),
  },
  'an epoch that does not wait for a draining parent': {
    violatedInvariant: noSignalToDrainingParent,
    steps: 2,
    machines: epoch({ delays: { parentDue: 0, parentOverdue: 0 } }),
  },
  'an epoch that always uses SIGTERM instead of SIGKILL': {
    violatedInvariant: startingIsKilled,
    steps: 2,
    machines: epoch({ actions: { signal: sendTo('process', { type: 'process.signal', signal: 'SIGTERM' }) } }),
  },
  'a supervisor that terminates the serving epoch to start the next one': {
    violatedInvariant: servingIsKept,
    steps: 2,
    machines: supervisor({ actions: { reportHandoverBegan: sendTo('epoch-0', { type: 'epoch.abort' }) } }),
  },
  'an agent that gives up at the third failure': {
    violatedInvariant: agentExitsForReason,
    steps: 4,
    machines: supervisor({ guards: { isRetryBudgetExhausted: ({ context }) => context.failures > 2 } }),
  },
  'a supervisor that ignores new configurations': {
    violatedInvariant: triggersAreApplied,
    steps: 2,
    seed: 2,
    machines: supervisor({ guards: { changesDesired: () => false } }),
  },
  'an action that throws after a repair': {
    violatedInvariant: noChartFails,
    steps: 2,
    seed: 2,
    machines: supervisor({
      actions: {
        recordRepair: () => {
          throw new Error('a bug');
        },
      },
    }),
  },
  'a supervisor that aborts the serving epoch when the disk is too full for the files of the next one': {
    violatedInvariant: servingIsKept,
    steps: 3,
    machines: supervisor({
      actions: {
        removeEpoch: enqueueActions(({ context, event, enqueue }) => {
          if (event.type === 'epoch.failed' && event.during === 'writing the bootstrap') {
            enqueue.sendTo('epoch-0', { type: 'epoch.abort' });
          }
          if (!('name' in event)) return;
          enqueue.stopChild(event.name);
          enqueue.assign({ epochs: removeEpoch(context.epochs, event) });
        }),
      },
    }),
  },
  'a supervisor that never retries after a full disk': {
    violatedInvariant: givingUpPasses,
    steps: 4,
    machines: supervisor({
      guards: {
        isRetryBudgetExhausted: ({ context }) => context.attempts.at(-1)?.includes('writing the bootstrap') === true,
      },
      actions: {
        resetRetryBudget: assign(({ context, event }) => ({
          failures: 0,
          attempts: [],
          // After a minute of health, this supervisor desires the configuration that it serves.
          ...(event.type.startsWith('xstate.after') && { desired: servingOf(context.epochs) ?? context.desired }),
        })),
      },
    }),
  },
  'an epoch that does not report why it has no bootstrap': {
    violatedInvariant: fullDiskIsReported,
    steps: 2,
    machines: epoch({
      actions: {
        reportFailed: sendParent(({ context: { name, epoch: number } }, params) => ({
          type: 'epoch.failed',
          name,
          epoch: number,
          ...params,
          reason: '',
        })),
      },
    }),
  },
  'a supervisor that forgets all epochs after one failure': {
    violatedInvariant: triggersAreApplied,
    steps: 3,
    machines: supervisor({ actions: { removeEpoch: assign({ epochs: [] }) } }),
  },
};

describe.skipIf(isQuick)('random schedules with a faulty certificate watch', () => {
  const { directoryWatch } = agentMachines;
  test.each([
    ['delays that do not double', watchIsSpared, directoryWatch.provide({ delays: { pause: 500 } })],
    [
      'a wait for the kernel without a limit',
      triggersAreApplied.name,
      chartWithout(directoryWatch, 'watching.setting up', 'after', 'setUpLimit'),
    ],
  ])('detect %s in few steps', (_, finds, brokenWatch) => {
    const agent = randomAgent({ directoryWatch: brokenWatch });
    const { figures, finding } = searchSchedules({ seed: 1, runs: 3_000, agent, checkEvery: 0 });
    expect(finding?.violations[0]?.invariant).toBe(finds);
    expect(figures.schedules).toBeLessThan(scheduleCount);
  });
});

describe.skipIf(isQuick)('random schedules with a faulty agent', () => {
  test.each(Object.entries(brokenMachines))(
    'detect %s in few steps',
    (_, { violatedInvariant, steps, machines, seed = 1 }) => {
      const agent = randomAgent(machines);
      const { figures, finding } = searchSchedules({
        seed,
        runs: 3_000,
        agent,
        invariants: [violatedInvariant],
        checkEvery: 0,
      });
      expect(finding?.violations[0]?.invariant).toBe(violatedInvariant.name);
      expect(finding?.schedule.steps.length).toBeLessThanOrEqual(steps);
      expect(figures.schedules).toBeLessThan(scheduleCount);
    },
  );
});

describe.skipIf(isQuick)('a violation that a random schedule detects', () => {
  const agent = randomAgent(supervisor({ guards: { isParentDraining: () => false } }));
  const options = { seed: 7, runs: 3_000, agent, invariants: [noDrainCutByStart], checkEvery: 0 };
  let finding: Finding;
  beforeAll(() => {
    finding = searchSchedules(options).finding!;
  });

  test('is reproduced by its seed and path', () => {
    const repeatedSearch = searchSchedules({ ...options, path: finding.path });
    expect(repeatedSearch.finding).toEqual(finding);
    expect(repeatedSearch.figures.schedules).toBe(0);
  });

  test('is reported with its seed, its path, its steps and its trace', () => {
    const text = formatFinding(finding, 'run.trace');
    expect(text).toContain(`violated: ${noDrainCutByStart.name}`);
    expect(text).toContain('trace: run.trace');
    expect(text).toContain(`again: npm run test:soak -- --seed 7 --path ${finding.path}`);
    expect(text.match(/^ +\d+ {2}after /gm)).toHaveLength(finding.schedule.steps.length);
  });

  test('is written as a trace that the debugger can read', async () => {
    const path = join(folder, 'finding.trace');
    writeRandomTrace(finding.schedule, traceFile(path), agent);
    const openedTrace = await openTrace(path);
    const starts: string[] = [];
    for await (const record of openedTrace.records) {
      if (record.kind === 'spawn' && record.machine === 'epoch') starts.push(record.actor);
    }
    expect(starts.slice(0, 3)).toEqual(['epoch-0', 'epoch-1', 'epoch-2']);
  });
});
