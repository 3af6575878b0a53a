import type { HeaderMatcherSchema } from '../../gen/envoy/config/route/v3/route_components_pb.ts';
import type { Init } from '../messages/init.ts';
import type { TextMatcher } from './text-matcher.ts';

export function headerMatcher(name: string, text: TextMatcher): Init<typeof HeaderMatcherSchema> {
  return { name, headerMatchSpecifier: { case: 'stringMatch', value: text } };
}
