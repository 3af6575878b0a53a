/** Texts of AuthorizationPolicies, in which a `*` at one end stands for anything, as Envoy's matchers. */
import type { StringMatcherSchema } from '../../gen/envoy/type/matcher/v3/string_pb.ts';
import type { Init } from '../messages/init.ts';

export type TextMatcher = Init<typeof StringMatcherSchema>;

/** A lone `*` is any text but the empty one. */
export function textMatcher(text: string): TextMatcher {
  if (text === '*') return regexMatcher('.+');
  if (text.startsWith('*')) return { matchPattern: { case: 'suffix', value: text.slice(1) } };
  if (text.endsWith('*')) return { matchPattern: { case: 'prefix', value: text.slice(0, -1) } };
  return { matchPattern: { case: 'exact', value: text } };
}

/** Upper and lower case are the same, as in host names. */
export function caselessMatcher(text: string): TextMatcher {
  // Envoy takes no such option beside a regular expression, where it would mean nothing.
  return text === '*' ? textMatcher(text) : { ...textMatcher(text), ignoreCase: true };
}

/** The whole text must match. */
export function regexMatcher(regex: string): TextMatcher {
  return { matchPattern: { case: 'safeRegex', value: { regex } } };
}

/** RE2 for a text in which a `*` stands for `wildcard`. */
export function regexOf(text: string, wildcard: string): string {
  return text.split('*').map(regexLiteral).join(wildcard);
}

/** A regular expression, of RE2 and of JavaScript, for exactly this text. */
export function regexLiteral(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
}
