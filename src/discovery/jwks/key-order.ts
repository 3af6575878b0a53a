import { compareText } from '../../model/config/config.ts';

/** A key set with its keys in an order of their own: an issuer that shuffles them has changed nothing. */
export function inOrder(keys: readonly unknown[]): string {
  const texts = keys.map((key) => JSON.stringify(key)).sort(compareText);
  return `{"keys":[${texts.join()}]}`;
}
