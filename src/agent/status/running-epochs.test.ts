import { expect, test } from 'vitest';
import type { TraceRecord } from '../../runtime/trace/trace.ts';
import { RunningEpochs } from './running-epochs.ts';

const report = (type: string, name: string, to = 'supervisor') =>
  ({ kind: 'event', from: name, to, event: { type, name } }) as unknown as TraceRecord;

test('returns the most recently started epoch that has not exited', () => {
  const runningEpochs = new RunningEpochs();
  expect(runningEpochs.newestName).toBeUndefined();
  runningEpochs.observe(report('epoch.started', 'epoch-0'));
  runningEpochs.observe(report('epoch.started', 'epoch-1'));
  runningEpochs.observe(report('epoch.started', 'epoch-2', 'somebody'));
  expect(runningEpochs.newestName).toBe('epoch-1');
  runningEpochs.observe(report('epoch.failed', 'epoch-1'));
  expect(runningEpochs.newestName).toBe('epoch-0');
  runningEpochs.observe(report('epoch.exited', 'epoch-0'));
  expect(runningEpochs.newestName).toBeUndefined();
});
