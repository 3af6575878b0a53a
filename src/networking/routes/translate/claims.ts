/** Matches claims of verified tokens (`@request.auth.claims`). */
import { create } from '@bufbuild/protobuf';
import { type MetadataMatcher, MetadataMatcherSchema } from '../../../gen/envoy/type/matcher/v3/metadata_pb.ts';
import { compareText } from '../../../model/config/config.ts';
import { claimPath, isClaimKey } from '../../../model/fields/claim-key.ts';
import type { ValueMatch } from '../../../model/kinds/virtual-service/string-match.ts';
import type { HttpMatchRequest } from '../../../model/kinds/virtual-service/virtual-service.ts';
import { claimMatcher, payloadMatcher } from '../../authorization/claim-matchers.ts';
import { stringMatcherInit } from './string-matcher.ts';

/** For a list claim, one item must match. */
export function claimMatchers({ headers, withoutHeaders }: HttpMatchRequest): MetadataMatcher[] {
  return [...matchersForClaims(headers, false), ...matchersForClaims(withoutHeaders, true)];
}

function matchersForClaims(
  values: Readonly<Record<string, ValueMatch>> | undefined,
  invert: boolean,
): MetadataMatcher[] {
  return Object.entries(values ?? {})
    .filter(([key]) => isClaimKey(key))
    .sort(([a], [b]) => compareText(a, b))
    .map(([key, value]) => create(MetadataMatcherSchema, { ...matcherOf(claimPath(key) ?? [], value), invert }));
}

function matcherOf(path: readonly string[], value: ValueMatch) {
  if ('present' in value) return payloadMatcher(path, { matchPattern: { case: 'presentMatch', value: true } });
  return claimMatcher(path, stringMatcherInit(value));
}
