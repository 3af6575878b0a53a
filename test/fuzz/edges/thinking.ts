import { shown } from '../edge.ts';

/** A reader that thinks longer stands in everybody's way. */
const longestThoughtMs = 2_000;

/**
 * Does it, and judges its processor time: this machine may be busy with others.
 *
 * @throws Error when it took too long
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
