/** Name and tags in traces come from labels and node metadata. */
import type { ProxySettings } from '../../model/mesh/proxy-settings.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';

export interface TracedWorkload {
  /** Service name in traces. The agent passes it to Envoy (`--service-cluster`). */
  readonly serviceName: string;
  readonly tags: Readonly<Record<string, string>>;
}

export function tracedWorkload(
  { labels, configNamespace, clusterId, metadata }: ProxyShape,
  { meshId, tracingServiceName }: Pick<ProxySettings, 'meshId' | 'tracingServiceName'>,
): TracedWorkload {
  const canonicalName = labels['service.istio.io/canonical-name'];
  const namespace = configNamespace || 'default';
  const service =
    tracingServiceName === 'APP_LABEL_AND_NAMESPACE'
      ? (labels.app ?? canonicalName ?? 'istio-proxy')
      : (canonicalName ?? 'istio-proxy');
  return {
    serviceName: tracingServiceName === 'CANONICAL_NAME_ONLY' ? service : `${service}.${namespace}`,
    tags: {
      'istio.canonical_revision': labels['service.istio.io/canonical-revision'] ?? 'latest',
      'istio.canonical_service': canonicalName ?? 'unknown',
      'istio.cluster_id': clusterId || 'unknown',
      'istio.mesh_id': (typeof metadata.MESH_ID === 'string' && metadata.MESH_ID) || meshId || 'unknown',
      'istio.namespace': namespace,
    },
  };
}
