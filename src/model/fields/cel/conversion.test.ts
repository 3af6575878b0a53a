import { expect, test } from 'vitest';
import { withoutStringConversion } from './conversion.ts';

test.each([
  ['string(destination.port)', 'destination.port'],
  [' string ( request.headers[")"] ) ', 'request.headers[")"]'],
  ['string(has(request.host) ? 1 : 2)', 'has(request.host) ? 1 : 2'],
  ['string(a) + string(b)', 'string(a) + string(b)'],
  ['strings(a)', 'strings(a)'],
  ['string(a', 'string(a'],
  ['string("a', 'string("a'],
  ['request.method', 'request.method'],
])('the CEL expression %s is reduced to %s without its string conversion', (expression, evaluated) => {
  expect(withoutStringConversion(expression)).toBe(evaluated);
});
