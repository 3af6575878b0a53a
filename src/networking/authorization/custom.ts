import * as E from 'fp-ts/lib/Either.js';
import { RBAC_Action } from '../../gen/envoy/config/rbac/v3/rbac_pb.ts';
import type { MetadataMatcherSchema } from '../../gen/envoy/type/matcher/v3/metadata_pb.ts';
import type { Config } from '../../model/config/config.ts';
import type { AuthorizationPolicy } from '../../model/kinds/policies/authorization-policy.ts';
import { type ExtAuthzProvider, extAuthzProvider } from '../../model/mesh/ext-authz-provider.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { Service } from '../../model/services/service.ts';
import type { ProxyContext } from '../inputs/connection-context.ts';
import type { Init } from '../messages/init.ts';
import { providerService } from '../traffic/provider-service.ts';
import { proxyReachOf } from '../traffic/reach.ts';
import { outboundClusterName } from '../traffic/resource-names.ts';
import { envoyPolicies, type RbacRules, type RuleTraffic } from './rbac-rules.ts';

export interface CustomCheck {
  readonly provider: ExtAuthzProvider;
  readonly host: string;
  readonly cluster: string;
  /** Shadow rules. They record in metadata whether the authorizer must check a request. */
  readonly rules: RbacRules;
  readonly metadataPrefix: string;
  enabledBy(filter: string): Init<typeof MetadataMatcherSchema>;
}

export interface CustomChecks {
  /** Checks, sorted by the age of their oldest policies. */
  readonly checks: readonly CustomCheck[];
  /** Rejects traffic whose provider is unavailable. */
  readonly rejectRules?: RbacRules;
}

const metadataPrefix = 'istio_ext_authz_';

export function customChecks(proxy: ProxyContext, traffic: RuleTraffic): CustomChecks {
  const policies = proxy.policies.authorizationPolicies.filter(({ spec }) => spec.action === 'CUSTOM');
  const checks: CustomCheck[] = [];
  const unresolvedPolicies: Config<AuthorizationPolicy>[] = [];
  for (const [name, group] of Map.groupBy(policies, ({ spec }) => spec.provider!)) {
    const foundProvider = findProvider(name, proxy);
    if (foundProvider === undefined) unresolvedPolicies.push(...group);
    // An HTTP provider cannot check TCP connections.
    else if (traffic === 'requests' || foundProvider.provider.protocol === 'grpc')
      checks.push(buildCheck(name, group, foundProvider, proxy, traffic));
  }
  return {
    checks,
    ...(unresolvedPolicies.length > 0 && { rejectRules: denyRules(unresolvedPolicies, '', proxy, traffic) }),
  };
}

type FoundProvider = Pick<CustomCheck, 'provider' | 'host' | 'cluster'>;

function buildCheck(
  name: string,
  policies: readonly Config<AuthorizationPolicy>[],
  foundProvider: FoundProvider,
  proxy: ProxyContext,
  traffic: RuleTraffic,
): CustomCheck {
  const prefix = `istio-ext-authz-${name}-`;
  return {
    ...foundProvider,
    rules: denyRules(policies, prefix, proxy, traffic),
    metadataPrefix,
    enabledBy: (filter) => ({
      filter,
      path: [{ segment: { case: 'key', value: `${metadataPrefix}shadow_effective_policy_id` } }],
      // The prefix ends with the delimiter, because one provider's name may be a prefix of another's.
      value: {
        matchPattern: { case: 'stringMatch', value: { matchPattern: { case: 'prefix', value: `${prefix}ns[` } } },
      },
    }),
  };
}

function denyRules(
  policies: readonly Config<AuthorizationPolicy>[],
  prefix: string,
  proxy: ProxyContext,
  traffic: RuleTraffic,
): RbacRules {
  const context = { proxy, traffic, ignoresHttpFields: true, prefix };
  return { action: RBAC_Action.DENY, policies: envoyPolicies(policies, context) };
}

function findProvider(name: string, { shape, push }: ProxyContext): FoundProvider | undefined {
  const reach = proxyReachOf(shape, push);
  return findConfiguredProvider(name, shape.configNamespace, push, (host) => reach.serviceByHostname(host));
}

/** Whether a policy rejects all matching traffic because its provider or the provider's service does not exist. */
export function hasNoProvider(
  { spec: { action, provider }, namespace }: Config<AuthorizationPolicy>,
  push: PushContext,
): boolean {
  if (action !== 'CUSTOM') return false;
  return findConfiguredProvider(provider!, namespace, push, (host) => push.serviceFor(host, namespace)) === undefined;
}

function findConfiguredProvider(
  name: string,
  clientNamespace: string,
  push: PushContext,
  serviceOf: (host: string) => Service | undefined,
): FoundProvider | undefined {
  const configuredProvider = push.mesh.extensionProviders.find((provider) => provider.name === name);
  const decodedProvider = configuredProvider && extAuthzProvider(configuredProvider);
  if (decodedProvider === undefined || E.isLeft(decodedProvider)) return undefined;
  const provider = decodedProvider.right;
  const { host, isProvidedBy } = providerService(provider.service, clientNamespace, push);
  const service = serviceOf(host);
  if (service === undefined || !isProvidedBy(service)) return undefined;
  if (!service.ports.some(({ number }) => number === provider.port)) return undefined;
  return { provider, host, cluster: outboundClusterName(provider.port, '', host) };
}
