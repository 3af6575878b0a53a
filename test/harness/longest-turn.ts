/** Measures event loop iterations during some work, in processor time of this thread, which a busy machine does not lengthen. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { threadCpuMs } from './cpu-time.ts';

export interface MeasuredTurns<Result> {
  readonly result: Result;
  readonly maxMs: number;
  readonly sumMs: number;
}

/** @param betweenTurns called in each iteration, to observe the state between iterations */
export async function measuredTurns<Result>(
  work: () => Promise<Result>,
  betweenTurns: () => void = () => {},
): Promise<MeasuredTurns<Result>> {
  const turns: number[] = [];
  const completion = { isIt: false };
  const watch = (async () => {
    for (let last = threadCpuMs(); !completion.isIt; ) {
      await nextTurn();
      const now = threadCpuMs();
      turns.push(now - last);
      betweenTurns();
      last = threadCpuMs();
    }
  })();
  const result = await work();
  completion.isIt = true;
  await watch;
  turns.sort((a, b) => b - a);
  return { result, maxMs: turns[0] ?? 0, sumMs: turns.reduce((sum, ms) => sum + ms, 0) };
}
