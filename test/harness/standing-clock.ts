import { onTestFinished, vi } from 'vitest';

/** Until the end of a test `performance.now()` moves when the test moves it alone: a busy machine does not. Timers go on. */
export function standingClock(): { pass(ms: number): void } {
  let now = performance.now();
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now);
  onTestFinished(() => clock.mockRestore());
  return {
    pass(ms) {
      now += ms;
    },
  };
}
