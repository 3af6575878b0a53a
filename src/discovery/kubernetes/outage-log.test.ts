import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createLogger } from '../../runtime/output/log.ts';
import { OutageLog, usualOutageMs } from './outage-log.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function given() {
  const levels: string[] = [];
  const log = createLogger({ write: (line) => void levels.push(line.split('\t')[1]!) });
  return { outage: new OutageLog(log, 'API server a'), levels };
}

it('an outage that is short is no warning', () => {
  const { outage, levels } = given();
  outage.report('refused');
  vi.advanceTimersByTime(usualOutageMs - 1);
  outage.report('refused');
  outage.report(undefined);
  vi.advanceTimersByTime(usualOutageMs);
  expect(levels).toEqual(['info', 'info']);
});

it('an outage that lasts is one warning with the newest reason', () => {
  const { outage, levels } = given();
  outage.report('refused');
  vi.advanceTimersByTime(5 * usualOutageMs);
  expect(levels).toEqual(['info', 'warn']);
  expect(outage.reason).toBe('refused');
  outage.report(undefined);
  expect(levels).toEqual(['info', 'warn', 'info']);
});

it('an outage of a cluster that is followed no more is not reported', () => {
  const { outage, levels } = given();
  outage.report('refused');
  outage.close();
  vi.advanceTimersByTime(2 * usualOutageMs);
  expect(levels).toEqual(['info']);
});
