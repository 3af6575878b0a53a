/** Numbers in quotation marks, as the JSON form of protobuf has them. */

import type { Decoder } from './decode.ts';
import { describedAs } from './description.ts';

/** A number of JSON: no `0x10`, `+7`, `007` or `1_000`, which Go's decoders reject as well. */
const jsonNumber = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;

/** Whether a text is a number as JSON writes it: what `Number` accepts beyond that is none in protobuf's JSON. */
export function isJsonNumber(text: string): boolean {
  return jsonNumber.test(text);
}

/** Accepts also a text that contains the number, as `"77"` (and `"1e3"` where it is a whole one). */
export function orQuoted(number: Decoder<number>): Decoder<number> {
  return describedAs(
    (value: unknown, path: string) =>
      number(typeof value === 'string' && isJsonNumber(value) ? Number(value) : value, path),
    { type: 'narrowed', of: number, by: {} },
  );
}
