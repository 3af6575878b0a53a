import * as E from 'fp-ts/lib/Either.js';
import { expect, it } from 'vitest';
import { integer } from './decode.ts';
import { orQuoted } from './quoted-number.ts';

const read = (input: unknown): number | undefined => {
  const decoded = orQuoted(integer(0, 2 ** 31 - 1))(input, 'n');
  return E.isRight(decoded) ? decoded.right : undefined;
};

it.each([
  ['77', 77],
  [77, 77],
  ['1e3', 1000],
  ['1000.0', 1000],
  ['10e-1', 1],
])("the quoted number %j is converted to the integer %d, as in Go's protojson", (input, expected) =>
  expect(read(input)).toBe(expected),
);

it.each([' 77', '0x10', '+7', '007', '1_000', '7.5', '1.', '', 'NaN', 'true', '2147483648'])(
  "the quoted number '%s' is rejected as a 31-bit integer, as in Go's protojson",
  (input) => expect(read(input)).toBeUndefined(),
);
