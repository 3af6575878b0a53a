import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { clockCheckMs, clockStepText, watchClockSteps } from './clock-steps.ts';

const hourMs = 3_600_000;

describe('watchClockSteps', () => {
  let monotonicMs: number;
  let offsetMs: number;
  let steps: number[];
  let stop: () => void;

  beforeEach(() => {
    vi.useFakeTimers();
    [monotonicMs, offsetMs, steps] = [0, 1_000_000, []];
    const clocks = { wall: () => monotonicMs + offsetMs, monotonic: () => monotonicMs };
    stop = watchClockSteps((stepMs) => steps.push(stepMs), clocks);
  });

  afterEach(() => {
    stop();
    vi.useRealTimers();
  });

  function pass(ms: number): void {
    monotonicMs += ms;
    vi.advanceTimersByTime(ms);
  }

  it('reports each forward or backward step once, within ten seconds', () => {
    expect(clockCheckMs).toBeLessThan(10_000);
    pass(20_000);
    offsetMs += 30 * hourMs;
    pass(clockCheckMs);
    expect(steps).toEqual([30 * hourMs]);
    pass(60_000);
    offsetMs -= 60 * hourMs;
    pass(clockCheckMs);
    expect(steps).toEqual([30 * hourMs, -60 * hourMs]);
  });

  it('does not report a slewed clock or a busy process', () => {
    for (let i = 0; i < 1_000; i++) {
      offsetMs += 3;
      pass(clockCheckMs);
    }
    monotonicMs += 60_000;
    pass(clockCheckMs);
    expect(steps).toEqual([]);
  });

  it('reports nothing after it stops', () => {
    stop();
    offsetMs += hourMs;
    pass(clockCheckMs);
    expect(steps).toEqual([]);
  });

  it('describes the size of a step in units', () => {
    expect([30 * hourMs, -90_000].map(clockStepText)).toEqual(['30 h forward', '90 s back']);
  });
});
