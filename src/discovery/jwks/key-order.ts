import { compareText } from '../../model/config/config.ts';

/** Sorts the keys, so that an issuer that only changes their order causes no push. */
export function sortedKeySet(keys: readonly unknown[]): string {
  const texts = keys.map((key) => JSON.stringify(key)).sort(compareText);
  return `{"keys":[${texts.join()}]}`;
}
