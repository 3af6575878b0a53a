import { InvalidArgumentError } from 'commander';

export function nonNegativeInteger(text: string): number {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError('Must be an integer >= 0.');
  if (!Number.isSafeInteger(Number(text))) throw new InvalidArgumentError('Must be at most 9007199254740991.');
  return Number(text);
}
