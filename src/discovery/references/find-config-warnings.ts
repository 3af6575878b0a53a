import type { ConfigSet } from '../../model/config/config-set.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { type ConfigCheck, type ConfigWarning, unlocatedMeshConfig } from './config-warning.ts';
import { checkCredentials } from './gateways/credentials.ts';
import { checkGatewaysOfRoutes } from './gateways/gateways-of-routes.ts';
import { checkNetworks } from './gateways/networks-without-gateway.ts';
import { checkSharedCertificates } from './gateways/shared-certificates.ts';
import type { KnownObjects } from './known-objects.ts';
import { checkClientSources } from './policies/client-sources.ts';
import { checkKeySetHosts } from './policies/key-set-hosts.ts';
import { checkMutualTls } from './policies/mutual-tls.ts';
import { checkPolicyTargets } from './policies/policy-targets.ts';
import { checkProviderServices } from './policies/provider-services.ts';
import { checkProviders } from './policies/providers.ts';
import { checkRuleTargets } from './policies/rule-targets.ts';
import { checkRulesAboutRequests } from './policies/rules-about-requests.ts';
import { checkSelectors } from './policies/selectors.ts';
import { checkServiceAccounts } from './policies/service-accounts.ts';
import { checkServiceAddresses } from './routes/address-conflicts.ts';
import { checkDelegates } from './routes/delegates.ts';
import { checkDestinations } from './routes/destinations.ts';
import { checkFailover } from './routes/failover.ts';
import { checkHostNameEndpoints } from './routes/host-name-endpoints.ts';
import { checkIngressBackends } from './routes/ingress-backends.ts';
import { checkMergedRules } from './routes/merged-rules.ts';
import { MeshHosts } from './routes/mesh-hosts.ts';
import { checkRoutedHosts } from './routes/routed-hosts.ts';
import { checkShadowedRoutes } from './routes/shadowed-routes.ts';
import { checkSharedHosts } from './routes/shared-hosts.ts';
import { checkSidecarHosts } from './routes/sidecar-hosts.ts';
import { checkUnservedRoutes } from './routes/unserved-routes.ts';
import { checkConsulHosts } from './services/consul-hosts.ts';
import { checkPeerPorts } from './services/peer-ports.ts';
import { checkPortNames } from './services/port-names.ts';
import { checkTargetPorts } from './services/target-ports.ts';

const checks: readonly ConfigCheck[] = [
  ...[checkDestinations, checkRuleTargets, checkGatewaysOfRoutes, checkDelegates, checkShadowedRoutes],
  ...[checkMergedRules, checkPortNames, checkServiceAddresses, checkFailover, checkSharedCertificates],
  ...[checkPeerPorts, checkMutualTls, checkSelectors, checkServiceAccounts, checkProviders],
  ...[checkCredentials, checkNetworks, checkSharedHosts, checkHostNameEndpoints, checkRoutedHosts],
  ...[checkUnservedRoutes, checkIngressBackends, checkSidecarHosts, checkTargetPorts, checkPolicyTargets],
  ...[checkProviderServices, checkConsulHosts, checkRulesAboutRequests, checkKeySetHosts],
  ...[checkClientSources],
];

export function* findConfigWarnings(
  context: PushContext,
  configs: ConfigSet,
  knownObjects: KnownObjects,
  meshConfig = unlocatedMeshConfig,
): Generator<ConfigWarning | undefined> {
  const steps = MeshHosts.build(context.services, context.domain, knownObjects);
  let step = steps.next();
  for (; step.done !== true; step = steps.next()) yield undefined;
  const sources = { context, configs, knownObjects, hosts: step.value, meshConfig };
  for (const check of checks) yield* check(sources);
}
