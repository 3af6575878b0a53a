/** Policies with the action CUSTOM: a service of the mesh is asked (spec/discovery.md §8.10, CUSTOM). */
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
import { reachOf } from '../traffic/reach.ts';
import { outboundClusterName } from '../traffic/resource-names.ts';
import { type Carried, envoyPolicies, type RbacRules } from './rbac-rules.ts';

/** The server to ask, and about what. */
export interface CustomCheck {
  readonly provider: ExtAuthzProvider;
  readonly host: string;
  readonly cluster: string;
  /** Rules that refuse whatever must be asked about; used as shadow rules, which only note that in metadata. */
  readonly rules: RbacRules;
  /** Prefix of what the shadow rules note in metadata. */
  readonly metadataPrefix: string;
  /** Matches the note of one of these rules. `filter` is the one that notes. */
  enabledBy(filter: string): Init<typeof MetadataMatcherSchema>;
}

/** What stands for the checks of a connection: some are asked for, others cannot be had. */
export interface CustomChecks {
  /** What is asked of each provider, in the order of their oldest policies. */
  readonly checks: readonly CustomCheck[];
  /** Everything that nobody can be asked about is refused. */
  readonly refused?: RbacRules;
}

const metadataPrefix = 'istio_ext_authz_';

export function customChecks(proxy: ProxyContext, carried: Carried): CustomChecks {
  const policies = proxy.policies.authorizationPolicies.filter(({ spec }) => spec.action === 'CUSTOM');
  const checks: CustomCheck[] = [];
  const withoutAnswer: Config<AuthorizationPolicy>[] = [];
  for (const [name, group] of Map.groupBy(policies, ({ spec }) => spec.provider!)) {
    const found = lookUp(name, proxy);
    if (found === undefined) withoutAnswer.push(...group);
    // A service that is asked over HTTP is asked about requests only.
    else if (carried === 'requests' || found.provider.protocol === 'grpc')
      checks.push(check(name, group, found, proxy, carried));
  }
  return {
    checks,
    ...(withoutAnswer.length > 0 && { refused: refusal(withoutAnswer, '', proxy, carried) }),
  };
}

type Found = Pick<CustomCheck, 'provider' | 'host' | 'cluster'>;

function check(
  name: string,
  policies: readonly Config<AuthorizationPolicy>[],
  found: Found,
  proxy: ProxyContext,
  carried: Carried,
): CustomCheck {
  const prefix = `istio-ext-authz-${name}-`;
  return {
    ...found,
    rules: refusal(policies, prefix, proxy, carried),
    metadataPrefix,
    enabledBy: (filter) => ({
      filter,
      path: [{ segment: { case: 'key', value: `${metadataPrefix}shadow_effective_policy_id` } }],
      // With what follows it: names of providers may begin alike.
      value: {
        matchPattern: { case: 'stringMatch', value: { matchPattern: { case: 'prefix', value: `${prefix}ns[` } } },
      },
    }),
  };
}

function refusal(
  policies: readonly Config<AuthorizationPolicy>[],
  prefix: string,
  proxy: ProxyContext,
  carried: Carried,
): RbacRules {
  const context = { proxy, carried, ignoresWhatIsMissing: true, prefix };
  return { action: RBAC_Action.DENY, policies: envoyPolicies(policies, context) };
}

/** Undefined when the mesh has no such provider, or the proxy cannot reach its service. */
function lookUp(name: string, { shape, push }: ProxyContext): Found | undefined {
  const reach = reachOf(shape, push);
  return find(name, shape.configNamespace, push, (host) => reach.serviceByHostname(host));
}

/** Whether a policy refuses whatever it matches, because no proxy could ask: the mesh has no such provider or service. */
export function hasNoProvider(
  { spec: { action, provider }, namespace }: Config<AuthorizationPolicy>,
  push: PushContext,
): boolean {
  if (action !== 'CUSTOM') return false;
  return find(provider!, namespace, push, (host) => push.serviceFor(host, namespace)) === undefined;
}

function find(
  name: string,
  clientNamespace: string,
  push: PushContext,
  serviceOf: (host: string) => Service | undefined,
): Found | undefined {
  const given = push.mesh.extensionProviders.find((provider) => provider.name === name);
  const decoded = given && extAuthzProvider(given);
  if (decoded === undefined || E.isLeft(decoded)) return undefined;
  const provider = decoded.right;
  const { host, isProvidedBy } = providerService(provider.service, clientNamespace, push);
  const service = serviceOf(host);
  if (service === undefined || !isProvidedBy(service)) return undefined;
  if (!service.ports.some(({ number }) => number === provider.port)) return undefined;
  return { provider, host, cluster: outboundClusterName(provider.port, '', host) };
}
