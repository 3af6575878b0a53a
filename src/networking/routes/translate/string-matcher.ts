import { create } from '@bufbuild/protobuf';
import { type StringMatcher, StringMatcherSchema } from '../../../gen/envoy/type/matcher/v3/string_pb.ts';
import type { StringMatch } from '../../../model/kinds/virtual-service/string-match.ts';
import type { Init } from '../../messages/init.ts';

export function stringMatcher(match: StringMatch): StringMatcher {
  return create(StringMatcherSchema, stringMatcherInit(match));
}

export function stringMatcherInit(match: StringMatch): Init<typeof StringMatcherSchema> {
  if ('exact' in match) return { matchPattern: { case: 'exact', value: match.exact } };
  if ('prefix' in match) return { matchPattern: { case: 'prefix', value: match.prefix } };
  return { matchPattern: { case: 'safeRegex', value: { regex: match.regex } } };
}
