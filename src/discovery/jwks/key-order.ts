import { compareText } from '../../model/config/config.ts';

/** A key set with sorted keys, so that an issuer that changes only their order causes no change. */
export function sortedKeySet(keys: readonly unknown[]): string {
  const texts = keys.map((key) => JSON.stringify(key)).sort(compareText);
  return `{"keys":[${texts.join()}]}`;
}
