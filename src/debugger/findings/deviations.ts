/** Finding about deviations from sequence diagrams; the caller checks the trace. */
import type { Verdict } from './finding.ts';

export const departuresRule = 'departures';

/** @returns a finding at the first deviation, with their number; `undefined` without a deviation */
export function departuresVerdict(departures: readonly { readonly index: number }[]): Verdict | undefined {
  const [first, last] = [departures[0]?.index, departures.at(-1)?.index];
  if (first === undefined || last === undefined) return undefined;
  const count = new Set(departures.map(({ index }) => index)).size;
  return {
    rule: departuresRule,
    weight: 'bad',
    sentence:
      count === 1
        ? '1 message deviates from the sequence diagrams'
        : `${count.toLocaleString('en')} messages deviate from the sequence diagrams, first here`,
    index: first,
    range: [first, last],
    root: first,
  };
}
