import type { Decoder } from './decode.ts';
import { withDescription } from './description.ts';

/** A JSON number. Excludes `0x10`, `+7`, `007` and `1_000`, which Go's decoders reject as well. */
const jsonNumber = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;

export function isJsonNumber(text: string): boolean {
  return jsonNumber.test(text);
}

/** Also accepts the number in a string, such as `"77"` (and `"1e3"` for an integer). */
export function orQuoted(numberDecoder: Decoder<number>): Decoder<number> {
  return withDescription(
    (value: unknown, path: string) =>
      numberDecoder(typeof value === 'string' && isJsonNumber(value) ? Number(value) : value, path),
    { type: 'narrowed', decoder: numberDecoder, validation: {} },
  );
}
