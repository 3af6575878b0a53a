/** Requests about which a service of the mesh is asked (spec/discovery.md §8.10, CUSTOM). */
import { ApiVersion } from '../../../gen/envoy/config/core/v3/config_source_pb.ts';
import { ExtAuthzSchema } from '../../../gen/envoy/extensions/filters/http/ext_authz/v3/ext_authz_pb.ts';
import { RBACSchema } from '../../../gen/envoy/extensions/filters/http/rbac/v3/rbac_pb.ts';
import { StatusCode } from '../../../gen/envoy/type/v3/http_status_pb.ts';
import type { ShownBody } from '../../../model/mesh/ext-authz-provider.ts';
import { type CustomCheck, customChecks } from '../../authorization/custom.ts';
import { services } from '../../authorization/ext-authz-service.ts';
import { type TypedExtension, typedExtension } from '../../messages/any.ts';
import type { HttpFilterContributor } from './contributor.ts';
import { rbacFilter } from './rbac.ts';

/** Two filters for each service: one notes what must be asked about, the other asks. */
export const extAuthz: HttpFilterContributor = (context) => {
  const { checks, refused } = customChecks(context, 'requests');
  return [
    ...(refused ? [typedExtension(rbacFilter, RBACSchema, { rules: refused })] : []),
    ...checks.flatMap((check) => [noting(check), asking(check)]),
  ];
};

function noting({ rules, metadataPrefix }: CustomCheck): TypedExtension {
  return typedExtension(rbacFilter, RBACSchema, { shadowRules: rules, shadowRulesStatPrefix: metadataPrefix });
}

function asking(check: CustomCheck): TypedExtension {
  const { failOpen, statusOnError, clearRouteCache, includeRequestBodyInCheck: body } = check.provider;
  return typedExtension('envoy.filters.http.ext_authz', ExtAuthzSchema, {
    ...services(check),
    transportApiVersion: ApiVersion.V3,
    failureModeAllow: failOpen ?? false,
    ...(isStatus(statusOnError) && { statusOnError: { code: statusOnError } }),
    ...(clearRouteCache && { clearRouteCache }),
    ...(body && { withRequestBody: shown(body) }),
    filterEnabledMetadata: check.enabledBy(rbacFilter),
  });
}

const statuses: ReadonlySet<unknown> = new Set(Object.values(StatusCode));

/** Envoy refuses a listener with a status that it has no name for: then it answers as it does without one. */
function isStatus(code: number | undefined): code is StatusCode {
  return statuses.has(code);
}

function shown({ maxRequestBytes, allowPartialMessage, packAsBytes }: ShownBody) {
  return {
    maxRequestBytes,
    allowPartialMessage: allowPartialMessage ?? false,
    packAsBytes: packAsBytes ?? false,
  };
}
