import { ApiVersion } from '../../../gen/envoy/config/core/v3/config_source_pb.ts';
import { ExtAuthzSchema } from '../../../gen/envoy/extensions/filters/http/ext_authz/v3/ext_authz_pb.ts';
import { RBACSchema } from '../../../gen/envoy/extensions/filters/http/rbac/v3/rbac_pb.ts';
import { StatusCode } from '../../../gen/envoy/type/v3/http_status_pb.ts';
import type { RequestBodySettings } from '../../../model/mesh/ext-authz-provider.ts';
import { type CustomCheck, customChecks } from '../../authorization/custom.ts';
import { authorizationServiceFields } from '../../authorization/ext-authz-service.ts';
import { type TypedExtension, typedExtension } from '../../messages/any.ts';
import type { HttpFilterContributor } from './contributor.ts';
import { rbacFilter } from './rbac.ts';

/**
 * Two filters for each provider: an RBAC filter in shadow mode selects requests, and an ext_authz filter sends them
 * to the provider.
 */
export const extAuthz: HttpFilterContributor = (context) => {
  const { checks, rejectRules } = customChecks(context, 'requests');
  return [
    ...(rejectRules ? [typedExtension(rbacFilter, RBACSchema, { rules: rejectRules })] : []),
    ...checks.flatMap((check) => [selectionFilter(check), checkFilter(check)]),
  ];
};

function selectionFilter({ rules, metadataPrefix }: CustomCheck): TypedExtension {
  return typedExtension(rbacFilter, RBACSchema, { shadowRules: rules, shadowRulesStatPrefix: metadataPrefix });
}

function checkFilter(check: CustomCheck): TypedExtension {
  const { failOpen, statusOnError, clearRouteCache, includeRequestBodyInCheck: body } = check.provider;
  return typedExtension('envoy.filters.http.ext_authz', ExtAuthzSchema, {
    ...authorizationServiceFields(check),
    transportApiVersion: ApiVersion.V3,
    failureModeAllow: failOpen ?? false,
    ...(isStatus(statusOnError) && { statusOnError: { code: statusOnError } }),
    ...(clearRouteCache && { clearRouteCache }),
    ...(body && { withRequestBody: bufferSettings(body) }),
    filterEnabledMetadata: check.enabledBy(rbacFilter),
  });
}

const statuses: ReadonlySet<unknown> = new Set(Object.values(StatusCode));

/** Envoy rejects listeners with unknown status codes, so its default replaces them. */
function isStatus(code: number | undefined): code is StatusCode {
  return statuses.has(code);
}

function bufferSettings({ maxRequestBytes, allowPartialMessage, packAsBytes }: RequestBodySettings) {
  return {
    maxRequestBytes,
    allowPartialMessage: allowPartialMessage ?? false,
    packAsBytes: packAsBytes ?? false,
  };
}
