import { RBACSchema } from '../../../gen/envoy/extensions/filters/network/rbac/v3/rbac_pb.ts';
import { actionRules } from '../../authorization/rbac-rules.ts';
import { sharedByPolicies } from '../../authorization/shared-filters.ts';
import { typedExtension } from '../../messages/any.ts';
import type { NetworkFilterContributor } from './contributor.ts';

export const networkRbacFilter = 'envoy.filters.network.rbac';
export const rbacStatPrefix = 'tcp.';

export const rbac: NetworkFilterContributor = (context, use) => (use.kind === 'http' ? [] : filters(context));

const filters = sharedByPolicies((context) =>
  actionRules(context, 'bytes').map(({ enforced, dryRun, dryRunPrefix }) =>
    typedExtension(networkRbacFilter, RBACSchema, {
      statPrefix: rbacStatPrefix,
      ...(enforced && { rules: enforced }),
      ...(dryRun && { shadowRules: dryRun, shadowRulesStatPrefix: dryRunPrefix! }),
    }),
  ),
);
