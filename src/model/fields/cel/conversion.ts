import { tokensOf } from './tokens.ts';

/**
 * Removes a string conversion around a CEL expression, because Envoy does not support it: `string(destination.port)` of Istio's documentation becomes
 * `destination.port`.
 */
export function withoutStringConversion(expression: string): string {
  const [, innerExpression] = /^\s*string\s*\(([\s\S]*)\)\s*$/.exec(expression) ?? [];
  if (innerExpression === undefined) return expression;
  const tokens = tokensOf(innerExpression);
  if (typeof tokens === 'string') return expression;
  // In `string(a) + string(b)`, the first parenthesis closes before the end, so it is not a single conversion.
  let depth = 0;
  for (const { kind, text } of tokens) {
    if (kind !== 'sign') continue;
    if ('([{'.includes(text)) depth++;
    if (')]}'.includes(text) && --depth < 0) return expression;
  }
  return innerExpression.trim();
}
