import type { MetadataMatcherSchema } from '../../gen/envoy/type/matcher/v3/metadata_pb.ts';
import type { ValueMatcherSchema } from '../../gen/envoy/type/matcher/v3/value_pb.ts';
import { payloadKey, tokenMetadata } from '../authentication/token-metadata.ts';
import type { Init } from '../messages/init.ts';
import { type TextMatcher, textMatcher } from './text-matcher.ts';

export type MetadataMatch = Init<typeof MetadataMatcherSchema>;

/** Matches a claim (nested if there are several keys) whose value equals the text or is a list that contains it. */
export function claimMatcher(keys: readonly string[], text: TextMatcher): MetadataMatch {
  const matcher = textValue(text);
  return payloadMatcher(keys, {
    matchPattern: { case: 'orMatch', value: { valueMatchers: [matcher, listMatcher(matcher)] } },
  });
}

/**
 * Issuer and subject may contain slashes, so each possible split of `ISSUER/SUBJECT` is an alternative.
 *
 * @returns alternatives, one of which must match. An alternative matches if all its matchers match.
 */
export function requestPrincipalMatchers(principal: string): readonly (readonly MetadataMatch[])[] {
  const matchersForIssuer = (issuer: string, subject: string): MetadataMatch[] => [
    payloadMatcher(['iss'], textValue(textMatcher(issuer))),
    payloadMatcher(['sub'], textValue(textMatcher(subject))),
  ];
  if (principal === '*') return [matchersForIssuer('*', '*')];
  if (principal.startsWith('*')) {
    const suffix = principal.slice(1);
    // The suffix is part of the subject, or consists of the complete subject and the end of the issuer.
    return [
      matchersForIssuer('*', principal),
      ...issuerSubjectSplits(suffix).map(([issuer, subject]) => matchersForIssuer(`*${issuer}`, subject)),
    ];
  }
  if (principal.endsWith('*')) {
    const prefix = principal.slice(0, -1);
    return [
      matchersForIssuer(principal, '*'),
      ...issuerSubjectSplits(prefix).map(([issuer, subject]) => matchersForIssuer(issuer, `${subject}*`)),
    ];
  }
  return issuerSubjectSplits(principal).map(([issuer, subject]) => matchersForIssuer(issuer, subject));
}

function issuerSubjectSplits(text: string): [string, string][] {
  return [...text.matchAll(/\//g)].map(({ index }) => [text.slice(0, index), text.slice(index + 1)]);
}

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

export function listMatcher(value: Init<typeof ValueMatcherSchema>): Init<typeof ValueMatcherSchema> {
  return { matchPattern: { case: 'listMatch', value: { matchPattern: { case: 'oneOf', value } } } };
}
