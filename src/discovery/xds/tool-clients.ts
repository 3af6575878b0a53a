/**
 * Tools such as istioctl: clients with `GENERATOR: event` in their node (Istio's `istioctl/pkg/xds`). They send one debug request and are no
 * proxies: no resources are built for them, and pages, status and metrics do not count them.
 */
import type { ConnectionView } from './ads-observer.ts';
import type { NodeIdentity, NodeResources, ResourceSource } from './resource-source.ts';

/** Nothing to watch, and nothing to be released. */
const noResources: NodeResources = { get: () => undefined, typesToPush: () => [], close() {} };

export function isTool({ metadata }: Pick<NodeIdentity, 'metadata'>): boolean {
  return metadata.GENERATOR === 'event';
}

/** Accepts tools without looking at their node, whose names are made up; all other clients are of another source. */
export function toolsBeside(others: ResourceSource): ResourceSource {
  return {
    open: (node, refused) => (isTool(node) ? { resources: noResources } : others.open(node, refused)),
  };
}

/** Connections of proxies. */
export function withoutTools(connections: readonly ConnectionView[]): readonly ConnectionView[] {
  return connections.filter(({ identity }) => !isTool(identity));
}
