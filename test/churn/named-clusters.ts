/** Extracts the clusters that the routes in a response name. */
import { ProtobufFields, textOf } from '../sidecars/protobuf-fields.ts';
import type { ResourceBatch } from '../sidecars/resource-batches.ts';

/** Cluster names by route configuration. */
export type RoutedClusters = ReadonlyMap<string, ReadonlySet<string>>;

/** Other bytes follow a name and may look like letters. */
const outboundCluster = /outbound\|\d+\|[^|]*\|[a-z0-9.-]+?\.svc\.cluster\.local/g;

const cachedClusters = new WeakMap<ResourceBatch, RoutedClusters>();

/**
 * @param batch batch with the same resources
 * @param resources field 2 of a DiscoveryResponse or DeltaDiscoveryResponse, repeated
 */
export function namedClusters(batch: ResourceBatch, resources: Buffer, isDelta: boolean): RoutedClusters {
  const read = cachedClusters.get(batch) ?? readNamed(resources, isDelta);
  cachedClusters.set(batch, read);
  return read;
}

function readNamed(resources: Buffer, isDelta: boolean): RoutedClusters {
  const clustersByRoute = new Map<string, ReadonlySet<string>>();
  const fields = new ProtobufFields(resources);
  while (fields.next()) {
    const value = valueOf(fields.inner(), isDelta);
    if (value !== undefined) clustersByRoute.set(textOf(new ProtobufFields(value), 1), clustersIn(value));
  }
  return clustersByRoute;
}

/** The message in an Any; in delta, in the Any of a Resource. */
function valueOf(fields: ProtobufFields, isWrapped: boolean): Buffer | undefined {
  while (fields.next()) {
    if (fields.field !== 2) continue;
    return isWrapped ? valueOf(fields.inner(), false) : fields.bytes.subarray(fields.start, fields.end);
  }
  return undefined;
}

function clustersIn(value: Buffer): ReadonlySet<string> {
  return new Set(value.toString('latin1').match(outboundCluster));
}
