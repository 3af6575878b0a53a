/** Who a workload is in traces: from its labels and what its node says (spec/discovery.md §8.11). */
import type { ProxySettings } from '../../model/mesh/proxy-settings.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';

export interface WorkloadIdentity {
  /** What tracers call the service, as the agent names its Envoy (`--service-cluster`). */
  readonly serviceName: string;
  /** The tags that each span carries, by name. */
  readonly tags: Readonly<Record<string, string>>;
}

export function workloadIdentity(
  { labels, configNamespace, clusterId, metadata }: ProxyShape,
  { meshId, tracingServiceName }: Pick<ProxySettings, 'meshId' | 'tracingServiceName'>,
): WorkloadIdentity {
  const canonical = labels['service.istio.io/canonical-name'];
  const namespace = configNamespace || 'default';
  const service =
    tracingServiceName === 'APP_LABEL_AND_NAMESPACE'
      ? (labels.app ?? canonical ?? 'istio-proxy')
      : (canonical ?? 'istio-proxy');
  return {
    serviceName: tracingServiceName === 'CANONICAL_NAME_ONLY' ? service : `${service}.${namespace}`,
    tags: {
      'istio.canonical_revision': labels['service.istio.io/canonical-revision'] ?? 'latest',
      'istio.canonical_service': canonical ?? 'unknown',
      'istio.cluster_id': clusterId || 'unknown',
      'istio.mesh_id': (typeof metadata.MESH_ID === 'string' && metadata.MESH_ID) || meshId || 'unknown',
      'istio.namespace': namespace,
    },
  };
}
