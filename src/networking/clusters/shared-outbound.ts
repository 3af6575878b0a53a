import type { ConfigKey } from '../../model/config/config.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { MergedDestinationRule } from '../../model/push-context/resolved-rules.ts';
import { type Service, serviceKey } from '../../model/services/service.ts';
import type { Memory } from '../inputs/generator-memory.ts';
import { identitiesText, ruleText, serviceText } from '../inputs/input-text.ts';
import type { EnvoyResource } from '../messages/resource.ts';
import { type ClusterShape, carriesEndpoints, clusterShapeKey } from '../traffic/shape-keys.ts';
import { automaticMutualTlsText, endpointsAsSecured } from '../traffic/upstream-mutual-tls.ts';
import { backendTlsFor, outboundClusters } from './outbound.ts';

interface ClustersOfService {
  readonly clusters: readonly EnvoyResource[];
  readonly dependsOn: readonly ConfigKey[];
}

export function sharedOutboundClusters(
  service: Service,
  rule: MergedDestinationRule | undefined,
  shape: ClusterShape,
  push: PushContext,
  cache: Memory,
  alias?: Service,
): readonly EnvoyResource[] {
  const mutualTlsText = automaticMutualTlsText(service, push);
  const key = `${serviceText(service)} ${ruleText(rule)} ${clusterShapeKey(shape, service, push)} ${mutualTlsText} ${alias?.hostname ?? ''}`;
  const endpoints = endpointsAsSecured(push.endpointsOf(service.hostname, service.namespace), push);
  // An EDS cluster contains no endpoints, but their identities, which mutual TLS verifies.
  const endpointInputs = carriesEndpoints(service) ? endpoints : identitiesText(endpoints);
  const backendTls = service.ports.map((port) => backendTlsFor(service, port, shape, push, alias));
  const inputs = [service, alias, rule, push.mesh, endpointInputs, ...backendTls];
  return cache.getOrBuild('CDS', key, inputs, (): ClustersOfService => {
    return {
      clusters: outboundClusters(service, rule, shape, push, alias),
      dependsOn: [
        serviceKey(service),
        ...(alias ? [serviceKey(alias)] : []),
        ...(rule?.origins ?? []),
        ...backendTls.flatMap((portBackendTls) => portBackendTls?.origins ?? []),
      ],
    };
  }).clusters;
}
