/**
 * Certificates, tokens and lists expire by the wall clock, but timers follow the monotonic clock, so all timers for dates must be computed again
 * after a step of the wall clock.
 */

/** A smaller difference in milliseconds is no step. NTP slews by 0.5 ms a second. */
const minClockStepMs = 5_000;
export const clockCheckMs = 5_000;

export interface Clocks {
  /** Milliseconds since 1970. */
  readonly wall: () => number;
  /** Milliseconds since an arbitrary start. */
  readonly monotonic: () => number;
}

const clocksOfThisProcess: Clocks = { wall: () => Date.now(), monotonic: () => performance.now() };

/** `onStep` receives the size of each step, which is negative if the wall clock was set back. */
export function watchClockSteps(
  onStep: (stepMs: number) => void,
  { wall, monotonic }: Clocks = clocksOfThisProcess,
  checkIntervalMs = clockCheckMs,
): () => void {
  const clockOffset = (): number => wall() - monotonic();
  let lastOffset = clockOffset();
  const timer = setInterval(() => {
    const currentOffset = clockOffset();
    const stepMs = Math.round(currentOffset - lastOffset);
    lastOffset = currentOffset;
    if (Math.abs(stepMs) >= minClockStepMs) onStep(stepMs);
  }, checkIntervalMs);
  timer.unref();
  return () => clearInterval(timer);
}

export function clockStepText(stepMs: number): string {
  const seconds = Math.round(Math.abs(stepMs) / 1_000);
  const [amount, unit] = seconds < 7_200 ? [seconds, 's'] : [Math.round(seconds / 3_600), 'h'];
  return `${amount} ${unit} ${stepMs < 0 ? 'back' : 'forward'}`;
}
