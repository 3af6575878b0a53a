/** Reports failover that Envoy's ejection limit prevents. */
import type { Config } from '../../../model/config/config.ts';
import { isWildcard } from '../../../model/fields/hostname.ts';
import type { DestinationRule } from '../../../model/kinds/destinations/destination-rule.ts';
import type { LocalityLoadBalancerSetting, PortPolicy } from '../../../model/kinds/destinations/traffic-policy.ts';
import type { Endpoint } from '../../../model/services/service.ts';
import { type CheckSources, type ConfigCheck, isWrittenConfig } from '../config-warning.ts';

/** With fewer endpoints, Envoy's default limit of 10 % ejects only one at a time. */
const minEndpointsForDefault = 10;

export const checkFailover: ConfigCheck = function* ({ context, configs, hosts }) {
  for (const config of configs.DestinationRule) {
    yield undefined;
    const host = context.hostNames.qualify(config.spec.host, config.namespace);
    if (!isWrittenConfig(config) || isWildcard(host)) continue;
    for (const { policy, path } of policiesOf(config)) {
      const { outlierDetection } = policy;
      if (outlierDetection === undefined || outlierDetection.maxEjectionPercent) continue;
      const [service] = hosts.servicesOf(host);
      const setting = policy.loadBalancer?.localityLbSetting ?? context.mesh.localityLbSetting;
      if (service === undefined || setting.enabled === false) continue;
      const endpoints = endpointsOfPort(service.hostname, service.namespace, context);
      if (!isFailoverPrevented(endpoints, setting)) continue;
      yield {
        ...{ code: 'EJECTION_LIMITS_FAILOVER', config, field: `${path}.outlierDetection.maxEjectionPercent` },
        message: `is not set, so Envoy ejects at most one of the ${endpoints.length} endpoints of ${host} (10 %), and requests do not fail over while the others of a locality fail: set it to 100`,
      };
    }
  }
};

function policiesOf({ spec }: Config<DestinationRule>): readonly { policy: PortPolicy; path: string }[] {
  const generalPolicies =
    spec.trafficPolicy === undefined ? [] : [{ policy: spec.trafficPolicy, path: 'spec.trafficPolicy' }];
  const ports = (spec.trafficPolicy?.portLevelSettings ?? []).map((policy, index) => ({
    policy,
    path: `spec.trafficPolicy.portLevelSettings[${index}]`,
  }));
  return [...generalPolicies, ...ports];
}

function endpointsOfPort(hostname: string, namespace: string, context: CheckSources['context']): readonly Endpoint[] {
  const serviceEndpoints = context.endpointsOf(hostname, namespace);
  // With this many endpoints, a port can have too few only if the service has very many ports.
  if (serviceEndpoints.length > 64 * minEndpointsForDefault) return serviceEndpoints;
  const ports = [...Map.groupBy(serviceEndpoints, ({ servicePortName }) => servicePortName).values()];
  return ports.toSorted((a, b) => b.length - a.length)[0] ?? [];
}

function isFailoverPrevented(endpoints: readonly Endpoint[], setting: LocalityLoadBalancerSetting): boolean {
  if (endpoints.length < 2 || endpoints.length >= minEndpointsForDefault) return false;
  const localities = Map.groupBy(endpoints, ({ locality }) => locality);
  if (setting.failoverPriority?.length) return endpoints.length > 2;
  return localities.size > 1 && [...localities.values()].some(({ length }) => length > 1);
}
