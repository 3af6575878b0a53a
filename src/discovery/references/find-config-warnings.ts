/** All checks across objects, for `validate` and the control plane alike. */
import type { ConfigSet } from '../../model/config/config-set.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { checkServiceAddresses } from './address-conflicts.ts';
import type { ConfigCheck, ConfigWarning } from './config-warning.ts';
import { checkCredentials } from './credentials.ts';
import { checkDelegates } from './delegates.ts';
import { checkDestinations } from './destinations.ts';
import { checkFailover } from './failover.ts';
import { checkGatewaysOfRoutes } from './gateways-of-routes.ts';
import { checkHostNameEndpoints } from './host-name-endpoints.ts';
import type { KnownObjects } from './known-objects.ts';
import { checkMergedRules } from './merged-rules.ts';
import { MeshHosts } from './mesh-hosts.ts';
import { checkMutualTls } from './mutual-tls.ts';
import { checkNetworks } from './networks-without-gateway.ts';
import { checkPeerPorts } from './peer-ports.ts';
import { checkPortNames } from './port-names.ts';
import { checkProviders } from './providers.ts';
import { checkRoutedHosts } from './routed-hosts.ts';
import { checkRuleTargets } from './rule-targets.ts';
import { checkSelectors } from './selectors.ts';
import { checkServiceAccounts } from './service-accounts.ts';
import { checkShadowedRoutes } from './shadowed-routes.ts';
import { checkSharedCertificates } from './shared-certificates.ts';
import { checkSharedHosts } from './shared-hosts.ts';

const checks: readonly ConfigCheck[] = [
  ...[checkDestinations, checkRuleTargets, checkGatewaysOfRoutes, checkDelegates, checkShadowedRoutes],
  ...[checkMergedRules, checkPortNames, checkServiceAddresses, checkFailover, checkSharedCertificates],
  ...[checkPeerPorts, checkMutualTls, checkSelectors, checkServiceAccounts, checkProviders],
  ...[checkCredentials, checkNetworks, checkSharedHosts, checkHostNameEndpoints, checkRoutedHosts],
];

/** Yields `undefined` after each object that was looked at, for callers that rest. */
export function* findConfigWarnings(
  context: PushContext,
  configs: ConfigSet,
  known: KnownObjects,
): Generator<ConfigWarning | undefined> {
  const making = MeshHosts.of(context.services, context.domain, known);
  let made = making.next();
  for (; made.done !== true; made = making.next()) yield undefined;
  const sources = { context, configs, known, hosts: made.value };
  for (const check of checks) yield* check(sources);
}
