import { RBACSchema } from '../../../gen/envoy/extensions/filters/http/rbac/v3/rbac_pb.ts';
import { actionRules } from '../../authorization/rbac-rules.ts';
import { sharedByPolicies } from '../../authorization/shared-filters.ts';
import { typedExtension } from '../../messages/any.ts';
import type { HttpFilterContributor } from './contributor.ts';

export const rbacFilter = 'envoy.filters.http.rbac';

export const rbac: HttpFilterContributor = sharedByPolicies((context) =>
  actionRules(context, 'requests').map(({ enforced, dryRun, dryRunPrefix }) =>
    typedExtension(rbacFilter, RBACSchema, {
      ...(enforced && { rules: enforced }),
      ...(dryRun && { shadowRules: dryRun, shadowRulesStatPrefix: dryRunPrefix! }),
    }),
  ),
);
