import type { HeaderMatcherSchema } from '../../gen/envoy/config/route/v3/route_components_pb.ts';
import type { Init } from '../messages/init.ts';
import { type TextMatcher, textMatcher } from './text-matcher.ts';

export function headerMatcher(name: string, text: TextMatcher): Init<typeof HeaderMatcherSchema> {
  return { name, headerMatchSpecifier: { case: 'stringMatch', value: text } };
}

/** A single `*` matches if the header is present, even without a value. */
export function headerValueMatcher(name: string, value: string): Init<typeof HeaderMatcherSchema> {
  if (value === '*') return { name, headerMatchSpecifier: { case: 'presentMatch', value: true } };
  return headerMatcher(name, textMatcher(value));
}
