import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { recordingLog } from '../../../test/harness/recording-log.ts';
import { OutageLog, usualOutageMs } from './outage-log.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function given() {
  const { log, lines } = recordingLog();
  return { outage: new OutageLog(log, { server: 'https://a' }), lines };
}

it('an outage that is short is no warning', () => {
  const { outage, lines } = given();
  outage.report('refused');
  vi.advanceTimersByTime(usualOutageMs - 1);
  outage.report('refused');
  outage.report(undefined);
  vi.advanceTimersByTime(usualOutageMs);
  expect(lines).toEqual([
    { event: 'kubernetes.unresponsive', level: 'info', server: 'https://a', reason: 'refused' },
    { event: 'kubernetes.responsive', level: 'info', server: 'https://a' },
  ]);
});

it('an outage that lasts is one warning with the newest reason', () => {
  const { outage, lines } = given();
  outage.report('refused');
  vi.advanceTimersByTime(5 * usualOutageMs);
  expect(lines.slice(1)).toEqual([
    {
      ...{ event: 'kubernetes.stillUnresponsive', level: 'warn', server: 'https://a', reason: 'refused' },
      sinceMs: usualOutageMs,
    },
  ]);
  expect(outage.reason).toBe('refused');
  outage.report(undefined);
  expect(lines.map(({ level }) => level)).toEqual(['info', 'warn', 'info']);
});

it('an outage of a cluster that is followed no more is not reported', () => {
  const { outage, lines } = given();
  outage.report('refused');
  outage.close();
  vi.advanceTimersByTime(2 * usualOutageMs);
  expect(lines.map(({ level }) => level)).toEqual(['info']);
});
