/** What a verified token says, as jwt_authn leaves it in the metadata of the request. */
import type { MetadataMatcherSchema } from '../../gen/envoy/type/matcher/v3/metadata_pb.ts';
import type { ValueMatcherSchema } from '../../gen/envoy/type/matcher/v3/value_pb.ts';
import { payloadKey, tokenMetadata } from '../authentication/token-metadata.ts';
import type { Init } from '../messages/init.ts';
import { type TextMatcher, textMatcher } from './text-matcher.ts';

export type MetadataMatch = Init<typeof MetadataMatcherSchema>;

/** A claim, nested ones by all their keys, that is the text, or is a list that has it. */
export function claimMatcher(keys: readonly string[], text: TextMatcher): MetadataMatch {
  const one = textValue(text);
  return payloadMatcher(keys, {
    matchPattern: { case: 'orMatch', value: { valueMatchers: [one, listWith(one)] } },
  });
}

/**
 * Who a token is for: its issuer and its subject with a slash between them. Both may have slashes of their own, so a text
 * is what it may be split into; all of a list must match.
 *
 * @returns alternatives, of which one must match
 */
export function requestPrincipalMatchers(principal: string): readonly (readonly MetadataMatch[])[] {
  const is = (issuer: string, subject: string): MetadataMatch[] => [
    payloadMatcher(['iss'], textValue(textMatcher(issuer))),
    payloadMatcher(['sub'], textValue(textMatcher(subject))),
  ];
  if (principal === '*') return [is('*', '*')];
  if (principal.startsWith('*')) {
    const end = principal.slice(1);
    // The subject alone may end so, or all of it is the subject and the end of the issuer comes before.
    return [is('*', principal), ...splits(end).map(([issuer, subject]) => is(`*${issuer}`, subject))];
  }
  if (principal.endsWith('*')) {
    const begin = principal.slice(0, -1);
    return [is(principal, '*'), ...splits(begin).map(([issuer, subject]) => is(issuer, `${subject}*`))];
  }
  return splits(principal).map(([issuer, subject]) => is(issuer, subject));
}

/** The ways to take a text apart at one of its slashes. */
function splits(text: string): [string, string][] {
  return [...text.matchAll(/\//g)].map(({ index }) => [text.slice(0, index), text.slice(index + 1)]);
}

/** A value below the claims. */
export function payloadMatcher(keys: readonly string[], value: Init<typeof ValueMatcherSchema>): MetadataMatch {
  return {
    filter: tokenMetadata,
    path: [payloadKey, ...keys].map((key) => ({ segment: { case: 'key' as const, value: key } })),
    value,
  };
}

export function textValue(text: TextMatcher): Init<typeof ValueMatcherSchema> {
  return { matchPattern: { case: 'stringMatch', value: text } };
}

/** A list that has such a value. */
export function listWith(value: Init<typeof ValueMatcherSchema>): Init<typeof ValueMatcherSchema> {
  return { matchPattern: { case: 'listMatch', value: { matchPattern: { case: 'oneOf', value } } } };
}
