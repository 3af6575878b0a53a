/** What a trace departs in from its sequence diagrams, as a verdict: whoever holds it against them knows where. Runs in a browser. */
import type { Verdict } from './verdict.ts';

export const departuresRule = 'departures';

/** Said at the first of them, with how many there are; undefined where there is none. @param departures in their order */
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
