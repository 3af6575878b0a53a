import { create } from '@bufbuild/protobuf';
import { type StringMatcher, StringMatcherSchema } from '../../gen/envoy/type/matcher/v3/string_pb.ts';
import type { StringMatch } from '../../model/kinds/string-match.ts';

export function stringMatcher(match: StringMatch): StringMatcher {
  if ('exact' in match) return create(StringMatcherSchema, { matchPattern: { case: 'exact', value: match.exact } });
  if ('prefix' in match) return create(StringMatcherSchema, { matchPattern: { case: 'prefix', value: match.prefix } });
  return create(StringMatcherSchema, { matchPattern: { case: 'safeRegex', value: { regex: match.regex } } });
}
