import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { Endpoint } from '../../model/services/service.ts';
import { proxyReachOf } from '../traffic/reach.ts';
import { assignmentInputs, networkViewFor, selectionFor } from './assignment-inputs.ts';
import { lacksGateway, reachOmission } from './network-endpoints.ts';
import { addressList, type OmissionReason, omissionText } from './omission.ts';
import { selectionOmission } from './selection.ts';

/** Returns one sentence for each reason why the cluster lacks an endpoint of the service, or why the network of an endpoint has no gateway. */
export function explainEndpoints(clusterName: string, shape: ProxyShape, push: PushContext): readonly string[] {
  const inputs = assignmentInputs(clusterName, push, proxyReachOf(shape, push));
  if ('missingText' in inputs) return [inputs.missingText];
  const { endpoints, service } = inputs;
  const resolvesNames = service.resolution === 'DNSLB' || service.resolution === 'DNSRoundRobinLB';
  if (!resolvesNames && service.resolution !== 'ClientSideLB') return [];
  if (endpoints.length === 0)
    return [`${service.hostname} has no endpoints: ${sourceOfEndpoints(service.origin.kind)}`];
  const { node, ...commonSelection } = selectionFor(inputs, shape, push);
  const selection = { ...commonSelection, ...(resolvesNames ? { allowNames: true } : node !== undefined && { node }) };
  const view = networkViewFor(inputs, shape, push);
  const omittedByReason = new Map<OmissionReason, Endpoint[]>();
  const includedEndpoints: Endpoint[] = [];
  for (const endpoint of endpoints) {
    const reason =
      selectionOmission(endpoint, selection) ?? (resolvesNames ? undefined : reachOmission(endpoint, view));
    if (reason === undefined) includedEndpoints.push(endpoint);
    else if (reason !== 'different port')
      omittedByReason.set(reason, [...(omittedByReason.get(reason) ?? []), endpoint]);
  }
  const portEndpointCount = includedEndpoints.length + [...omittedByReason.values()].flat().length;
  if (portEndpointCount === 0)
    return [`no endpoint of ${service.hostname} serves port ${inputs.port.number} (${inputs.port.name})`];
  const unhealthyEndpoints = includedEndpoints.filter(({ health }) => health !== 'healthy');
  const directEndpoints = resolvesNames ? [] : includedEndpoints.filter((endpoint) => lacksGateway(endpoint, view));
  const text = (affectedEndpoints: readonly Endpoint[], condition: string): string[] =>
    affectedEndpoints.length === 0
      ? []
      : [`${affectedEndpoints.length} of ${portEndpointCount} ${condition}: ${addressList(affectedEndpoints)}`];
  return [
    ...[...omittedByReason].flatMap(([reason, affectedEndpoints]) => text(affectedEndpoints, omissionText[reason])),
    ...text(unhealthyEndpoints, 'are in the cluster and not ready, so Envoy sends them no requests'),
    ...text(directEndpoints, 'are reached directly, because no gateway of their network is known'),
  ];
}

function sourceOfEndpoints(kind: string): string {
  return kind === 'ServiceEntry'
    ? 'spec.endpoints is empty, or no WorkloadEntry or pod matches spec.workloadSelector'
    : 'no EndpointSlice lists an address for it';
}
