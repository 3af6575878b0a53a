import { onTestFinished, vi } from 'vitest';

/** Until the end of a test, only `pass` advances `performance.now()`, so a busy machine has no effect. Timers keep running. */
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
