/** Gateway credentials. Values must never be shown or logged. */

import { type Decoder, dictionary, type FieldError, refine, text, withDefault } from '../../fields/decode.ts';
import { withDescription } from '../../fields/description.ts';
import * as violation from '../../fields/violation.ts';
import { partialStruct } from './lenient.ts';

export interface Secret {
  /** Base64, as in the object. */
  readonly data: Readonly<Record<string, string>>;
  /** Plain text; has priority over `data`. */
  readonly stringData: Readonly<Record<string, string>>;
}

const base64: Decoder<string> = refine(text, (value, path): FieldError[] => {
  const compactText = value.replaceAll(/\s/g, '');
  const isBase64 = /^[A-Za-z0-9+/]*={0,2}$/.test(compactText) && compactText.length % 4 === 0;
  // The error omits the value, which is secret.
  return isBase64
    ? []
    : [violation.fieldError(path, violation.mustBeHidden('base64', { hint: 'use stringData for plain text' }))];
});

const withoutValues = (decoder: Decoder<string>): Decoder<string> =>
  withDescription(
    (value: unknown, path: string) => (typeof value === 'string' ? decoder(value, path) : text(undefined, path)),
    {
      type: 'text',
    },
  );

export const secret: Decoder<Secret> = partialStruct<Secret>(
  {
    data: withDefault(dictionary(withoutValues(base64)), {}),
    stringData: withDefault(dictionary(withoutValues(text)), {}),
  },
  ['immutable', 'type'],
);

export function secretBytes({ data, stringData }: Secret, key: string): Uint8Array | undefined {
  const plainValue = stringData[key];
  if (plainValue !== undefined) return new TextEncoder().encode(plainValue);
  const encodedValue = data[key];
  return encodedValue === undefined ? undefined : Uint8Array.from(Buffer.from(encodedValue, 'base64'));
}
