/** Removes a string conversion around a CEL expression: Envoy does not have that function. */
import { tokensOf } from './tokens.ts';

/**
 * `string(destination.port)`, as Istio's documentation writes it → `destination.port`: redundant where the value becomes a string anyway.
 *
 * @returns the expression itself if it is not a single conversion
 */
export function withoutStringConversion(expression: string): string {
  const [, inner] = /^\s*string\s*\(([\s\S]*)\)\s*$/.exec(expression) ?? [];
  if (inner === undefined) return expression;
  const tokens = tokensOf(inner);
  if (typeof tokens === 'string') return expression;
  // `string(a) + string(b)` begins and ends like a conversion, but its first parenthesis closes before the end.
  let depth = 0;
  for (const { kind, text } of tokens) {
    if (kind !== 'sign') continue;
    if ('([{'.includes(text)) depth++;
    if (')]}'.includes(text) && --depth < 0) return expression;
  }
  return inner.trim();
}
