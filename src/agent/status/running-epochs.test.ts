import { expect, test } from 'vitest';
import type { TraceRecord } from '../../runtime/trace/trace.ts';
import { RunningEpochs } from './running-epochs.ts';

const report = (type: string, name: string, to = 'supervisor') =>
  ({ kind: 'event', from: name, to, event: { type, name } }) as unknown as TraceRecord;

test('returns the most recently started epoch that has not exited', () => {
  const living = new RunningEpochs();
  expect(living.newest).toBeUndefined();
  living.observe(report('epoch.started', 'epoch-0'));
  living.observe(report('epoch.started', 'epoch-1'));
  living.observe(report('epoch.started', 'epoch-2', 'somebody'));
  expect(living.newest).toBe('epoch-1');
  living.observe(report('epoch.failed', 'epoch-1'));
  expect(living.newest).toBe('epoch-0');
  living.observe(report('epoch.exited', 'epoch-0'));
  expect(living.newest).toBeUndefined();
});
