import { expect, test } from 'vitest';
import { type DebuggerRun, formatDebuggerRun, problemsOf, pushShare } from './debugger-figures.ts';

const goodRun: DebuggerRun = {
  steadyShare: 0.001,
  stormShare: 0.02,
  stormRestarts: [9, 9],
  connections: 500,
  pushCpuMs: 400,
  pushRecords: 30,
  recordCostUs: 20,
};

test('a run that meets all goals has no problems and is formatted as one line', () => {
  expect(problemsOf(goodRun)).toEqual([]);
  expect(pushShare(goodRun)).toBeCloseTo(0.0015);
  expect(formatDebuggerRun(goodRun)).toBe(
    'tracing costs an agent 0.10 % of a core in steady state (goal 1.00 %); 2.00 % in a storm of 9 restarts (goal 5.00 %); ' +
      'a push to 500 connections: 30 records × 20.0 µs = 0.15 % of 400 ms CPU (goal 3.00 %)',
  );
});

test.each<[Partial<DebuggerRun>, string]>([
  [{ steadyShare: 0.01 }, 'tracing an agent that has nothing to do costs 1.00 % of a core, the goal is 1.00 %'],
  [{ stormShare: 0.06 }, 'tracing an agent in a restart storm costs 6.00 % of a core, the goal is 5.00 %'],
  [{ pushRecords: 9_000 }, "recording a push costs 45.00 % of the push's CPU, the goal is 3.00 %"],
  [{ stormRestarts: [9, 1] }, 'no storm: 9 and 1 restarts'],
  [{ pushCpuMs: 0, pushRecords: 0 }, 'the push took no CPU that could be measured'],
])('a run with %o has a problem', (change, problem) => {
  expect(problemsOf({ ...goodRun, ...change })).toContain(problem);
});
