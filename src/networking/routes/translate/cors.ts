import type { Any } from '@bufbuild/protobuf/wkt';
import { CorsPolicySchema } from '../../../gen/envoy/extensions/filters/http/cors/v3/cors_pb.ts';
import type { CorsPolicy } from '../../../model/kinds/virtual-service/virtual-service.ts';
import { pack } from '../../messages/any.ts';
import { runtimePercent } from '../../messages/percent.ts';
import { stringMatcher } from './string-matcher.ts';

export const corsFilter = 'envoy.filters.http.cors';

export function corsConfig(policy: CorsPolicy): Any {
  const { unmatchedPreflights } = policy;
  return pack(CorsPolicySchema, {
    allowOriginStringMatch: (policy.allowOrigins ?? []).map(stringMatcher),
    allowMethods: (policy.allowMethods ?? []).join(','),
    allowHeaders: (policy.allowHeaders ?? []).join(','),
    exposeHeaders: (policy.exposeHeaders ?? []).join(','),
    ...(policy.maxAgeMs !== undefined && { maxAge: String(Math.round(policy.maxAgeMs / 1000)) }),
    ...(policy.allowCredentials !== undefined && { allowCredentials: policy.allowCredentials }),
    ...((unmatchedPreflights === 'FORWARD' || unmatchedPreflights === 'IGNORE') && {
      forwardNotMatchingPreflights: unmatchedPreflights === 'FORWARD',
    }),
    filterEnabled: runtimePercent(undefined),
  });
}
