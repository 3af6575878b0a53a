/** The conversion of a whole expression to a text, which Envoy's functions do not include. */
import { tokensOf } from './tokens.ts';

/**
 * `string(destination.port)`, as Istio's documentation writes it → `destination.port`: where a value becomes a text anyway, the
 * conversion changes nothing.
 *
 * @returns the expression itself if it is not one conversion
 */
export function withoutStringConversion(expression: string): string {
  const [, inner] = /^\s*string\s*\(([\s\S]*)\)\s*$/.exec(expression) ?? [];
  if (inner === undefined) return expression;
  const tokens = tokensOf(inner);
  if (typeof tokens === 'string') return expression;
  // `string(a) + string(b)` begins and ends like a conversion: there the first parenthesis is closed before the end.
  let depth = 0;
  for (const { kind, text } of tokens) {
    if (kind !== 'sign') continue;
    if ('([{'.includes(text)) depth++;
    if (')]}'.includes(text) && --depth < 0) return expression;
  }
  return inner.trim();
}
