import { ApiVersion } from '../../../gen/envoy/config/core/v3/config_source_pb.ts';
import { ExtAuthzSchema } from '../../../gen/envoy/extensions/filters/network/ext_authz/v3/ext_authz_pb.ts';
import { RBACSchema } from '../../../gen/envoy/extensions/filters/network/rbac/v3/rbac_pb.ts';
import { customChecks } from '../../authorization/custom.ts';
import { authorizationService } from '../../authorization/ext-authz-service.ts';
import { typedExtension } from '../../messages/any.ts';
import type { NetworkFilterContributor } from './contributor.ts';
import { networkRbacFilter, rbacStatPrefix } from './rbac.ts';

export const extAuthz: NetworkFilterContributor = (context, use) => {
  if (use.kind === 'http') return [];
  const { checks, rejectRules } = customChecks(context, 'bytes');
  return [
    ...(rejectRules
      ? [typedExtension(networkRbacFilter, RBACSchema, { statPrefix: rbacStatPrefix, rules: rejectRules })]
      : []),
    ...checks.flatMap((check) => [
      typedExtension(networkRbacFilter, RBACSchema, {
        statPrefix: rbacStatPrefix,
        shadowRules: check.rules,
        shadowRulesStatPrefix: check.metadataPrefix,
      }),
      typedExtension('envoy.filters.network.ext_authz', ExtAuthzSchema, {
        statPrefix: rbacStatPrefix,
        grpcService: authorizationService(check),
        failureModeAllow: check.provider.failOpen ?? false,
        transportApiVersion: ApiVersion.V3,
        filterEnabledMetadata: check.enabledBy(networkRbacFilter),
      }),
    ]),
  ];
};
