import { shown } from '../edge.ts';

/** A slower parser would delay all other clients. */
const longestThoughtMs = 2_000;

/**
 * Runs the task and checks its CPU time, which does not depend on the load of the machine.
 *
 * @throws Error if the task took too long
 */
export function thinking<Outcome>(what: string, deed: () => Outcome): Outcome {
  const before = process.cpuUsage();
  const judged = (outcome: Outcome): Outcome => {
    const { user, system } = process.cpuUsage(before);
    const tookMs = (user + system) / 1_000;
    if (tookMs > longestThoughtMs) throw new Error(`${Math.round(tookMs)} ms over ${shown(what, 600)}`);
    return outcome;
  };
  const outcome = deed();
  return outcome instanceof Promise ? (outcome.then(judged) as Outcome) : judged(outcome);
}
