import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { recordingLog } from '../../../test/harness/recording-log.ts';
import { OutageLog, outageWarningDelayMs } from './outage-log.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function createOutageLog() {
  const { log, lines } = recordingLog();
  return { outage: new OutageLog(log, { server: 'https://a' }), lines };
}

it('a short API server outage causes no warning', () => {
  const { outage, lines } = createOutageLog();
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

it('a long API server outage causes one warning, with the latest reason', () => {
  const { outage, lines } = createOutageLog();
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

it('an API server outage is not reported if the cluster is no longer watched', () => {
  const { outage, lines } = createOutageLog();
  outage.report('refused');
  outage.close();
  vi.advanceTimersByTime(2 * outageWarningDelayMs);
  expect(lines.map(({ level }) => level)).toEqual(['info']);
});
