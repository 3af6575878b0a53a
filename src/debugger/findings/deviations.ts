import type { Finding } from './finding.ts';

export const deviationsRule = 'departures';

export function deviationsFinding(deviations: readonly { readonly index: number }[]): Finding | undefined {
  const [first, lastIndex] = [deviations[0]?.index, deviations.at(-1)?.index];
  if (first === undefined || lastIndex === undefined) return undefined;
  const count = new Set(deviations.map(({ index }) => index)).size;
  return {
    rule: deviationsRule,
    weight: 'bad',
    sentence:
      count === 1
        ? '1 message deviates from the sequence diagrams'
        : `${count.toLocaleString('en')} messages deviate from the sequence diagrams, first here`,
    index: first,
    range: [first, lastIndex],
    root: first,
  };
}
