/**
 * Tools such as istioctl: clients with `GENERATOR: event` in their node (Istio's `istioctl/pkg/xds`). They send one debug request and are no proxies:
 * no resources are built for them, and pages, statuses and metrics ignore them.
 */
import type { ConnectionView } from './ads-observer.ts';
import type { NodeIdentity, NodeResources, ResourceSource } from './resource-source.ts';

const noResources: NodeResources = { get: () => undefined, typesToPush: () => [], close() {} };

export function isToolClient({ metadata }: Pick<NodeIdentity, 'metadata'>): boolean {
  return metadata.GENERATOR === 'event';
}

/** The node of a tool is invented, so it is not validated. */
export function withToolClients(proxySource: ResourceSource): ResourceSource {
  return {
    openNode: (node, onRejected) =>
      isToolClient(node) ? { resources: noResources } : proxySource.openNode(node, onRejected),
  };
}

export function omitToolClients(connections: readonly ConnectionView[]): readonly ConnectionView[] {
  return connections.filter(({ identity }) => !isToolClient(identity));
}
