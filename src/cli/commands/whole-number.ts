import { InvalidArgumentError } from 'commander';

/** Reads a flag's value that is a whole number. */
export function wholeNumber(text: string): number {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError('It is not a whole number.');
  if (!Number.isSafeInteger(Number(text))) throw new InvalidArgumentError('It is too large.');
  return Number(text);
}
