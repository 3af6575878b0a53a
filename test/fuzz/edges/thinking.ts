import { abbreviate } from '../edge.ts';

/** A slower parser would delay all other clients. */
const maxCpuMs = 2_000;

/**
 * Runs the task and checks its CPU time, which does not depend on the load of the machine.
 *
 * @throws Error if the task took too long
 */
export function withinCpuLimit<Outcome>(input: string, task: () => Outcome): Outcome {
  const startUsage = process.cpuUsage();
  const checkTime = (outcome: Outcome): Outcome => {
    const { user, system } = process.cpuUsage(startUsage);
    const tookMs = (user + system) / 1_000;
    if (tookMs > maxCpuMs) throw new Error(`${Math.round(tookMs)} ms over ${abbreviate(input, 600)}`);
    return outcome;
  };
  const outcome = task();
  return outcome instanceof Promise ? (outcome.then(checkTime) as Outcome) : checkTime(outcome);
}
