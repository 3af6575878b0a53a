import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { recordingLog } from '../../../test/harness/recording-log.ts';
import { OutageLog, outageWarningDelayMs } from './outage-log.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function given() {
  const { log, lines } = recordingLog();
  return { outage: new OutageLog(log, { server: 'https://a' }), lines };
}

it('a short outage of an API server causes no warning', () => {
  const { outage, lines } = given();
  outage.report('refused');
  vi.advanceTimersByTime(outageWarningDelayMs - 1);
  outage.report('refused');
  outage.report(undefined);
  vi.advanceTimersByTime(outageWarningDelayMs);
  expect(lines).toEqual([
    { event: 'kubernetes.unresponsive', level: 'info', server: 'https://a', reason: 'refused' },
    { event: 'kubernetes.responsive', level: 'info', server: 'https://a' },
  ]);
});

it('a long outage of an API server causes one warning with the latest reason', () => {
  const { outage, lines } = given();
  outage.report('refused');
  vi.advanceTimersByTime(5 * outageWarningDelayMs);
  expect(lines.slice(1)).toEqual([
    {
      ...{ event: 'kubernetes.stillUnresponsive', level: 'warn', server: 'https://a', reason: 'refused' },
      sinceMs: outageWarningDelayMs,
    },
  ]);
  expect(outage.reason).toBe('refused');
  outage.report(undefined);
  expect(lines.map(({ level }) => level)).toEqual(['info', 'warn', 'info']);
});

it('an outage of a cluster that is no longer watched is not reported', () => {
  const { outage, lines } = given();
  outage.report('refused');
  outage.close();
  vi.advanceTimersByTime(2 * outageWarningDelayMs);
  expect(lines.map(({ level }) => level)).toEqual(['info']);
});
