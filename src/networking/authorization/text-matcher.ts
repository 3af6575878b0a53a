/** Converts values of AuthorizationPolicies, with an optional `*` at one end, to Envoy string matchers. */
import type { StringMatcherSchema } from '../../gen/envoy/type/matcher/v3/string_pb.ts';
import type { Init } from '../messages/init.ts';

export type TextMatcher = Init<typeof StringMatcherSchema>;

/** A single `*` matches any non-empty text. */
export function textMatcher(text: string): TextMatcher {
  if (text === '*') return regexMatcher('.+');
  if (text.startsWith('*')) return { matchPattern: { case: 'suffix', value: text.slice(1) } };
  if (text.endsWith('*')) return { matchPattern: { case: 'prefix', value: text.slice(0, -1) } };
  return { matchPattern: { case: 'exact', value: text } };
}

/** Host names are case-insensitive. */
export function caselessMatcher(text: string): TextMatcher {
  // Envoy rejects `ignore_case` with a regular expression.
  return text === '*' ? textMatcher(text) : { ...textMatcher(text), ignoreCase: true };
}

export function regexMatcher(regex: string): TextMatcher {
  return { matchPattern: { case: 'safeRegex', value: { regex } } };
}

export function regexOf(text: string, wildcard: string): string {
  return text.split('*').map(regexLiteral).join(wildcard);
}

export function regexLiteral(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
}
