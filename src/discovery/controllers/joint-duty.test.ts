import { expect, test } from 'vitest';
import type { Duty, DutyReport } from '../election/duty.ts';
import type { WriteGate } from '../election/write-gate.ts';
import { CombinedDuty } from './joint-duty.ts';

function createDuty(report: DutyReport) {
  const state = { isDue: false, watchers: new Set<() => void>(), runs: 0 };
  const duty: Duty = {
    lease: 'l',
    watch: (listener) => {
      state.watchers.add(listener);
      return () => void state.watchers.delete(listener);
    },
    get isDue() {
      return state.isDue;
    },
    writeDue: async () => {
      state.runs++;
      return report;
    },
  };
  return { duty, state };
}

test('CombinedDuty runs two duties of one Lease, and reports the sum of their results', async () => {
  const one = createDuty({ writtenCount: 1, failedCount: 2, reason: 'a quota' });
  const other = createDuty({ writtenCount: 3, failedCount: 0, reason: '' });
  const joint = new CombinedDuty(one.duty, other.duty);
  let dueCount = 0;
  const stop = joint.watch(() => dueCount++);
  for (const { state } of [one, other]) for (const notify of state.watchers) notify();
  expect([joint.lease, joint.isDue, dueCount]).toEqual(['l', false, 2]);
  other.state.isDue = true;
  expect(joint.isDue).toBe(true);
  const report = await joint.writeDue({ retry: false, includesAll: false }, {} as WriteGate);
  expect(report).toEqual({ writtenCount: 4, failedCount: 2, reason: 'a quota' });
  expect([one.state.runs, other.state.runs]).toEqual([1, 1]);
  stop();
  expect([one.state.watchers.size, other.state.watchers.size]).toEqual([0, 0]);
});
