/**
 * Timeouts in clusters that the server has given up at a proxy: it sends such a cluster again with a timeout for the
 * resources that Envoy fetches before it uses the cluster (docs/changes-without-loss.md). Decoded independently of the
 * server's code.
 */

import { hash } from 'node:crypto';
import { createRegistry, type DescMessage, fromBinary, isMessage, type Message, toBinary } from '@bufbuild/protobuf';
import { type ReflectMessage, reflect } from '@bufbuild/protobuf/reflect';
import { AnySchema } from '@bufbuild/protobuf/wkt';
import { ClusterSchema } from '../../src/gen/envoy/config/cluster/v3/cluster_pb.ts';
import { ConfigSourceSchema } from '../../src/gen/envoy/config/core/v3/config_source_pb.ts';
import { UpstreamTlsContextSchema } from '../../src/gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.ts';
import type { ClusterContent } from '../sidecars/resource-batches.ts';
import type { ResourceMap } from '../sidecars/resource-maps.ts';

/** Types of messages that clusters contain as Any, with config sources. */
const packedTypes = createRegistry(UpstreamTlsContextSchema);

/** @param value an encoded Cluster */
export function clusterContent(value: Uint8Array): ClusterContent {
  const cluster = fromBinary(ClusterSchema, value);
  const isLimited = removeLimits(ClusterSchema, cluster);
  return { digest: hash('sha1', toBinary(ClusterSchema, cluster), 'hex'), isLimited };
}

/** Removes the timeouts of all config sources in a message. @returns whether any had one; 0 means no timeout */
function removeLimits(schema: DescMessage, message: Message): boolean {
  if (isMessage(message, ConfigSourceSchema)) {
    const { seconds = 0n, nanos = 0 } = message.initialFetchTimeout ?? {};
    delete message.initialFetchTimeout;
    return seconds > 0n || nanos > 0;
  }
  if (isMessage(message, AnySchema)) {
    const packedSchema = packedTypes.getMessage(message.typeUrl.slice(message.typeUrl.lastIndexOf('/') + 1));
    if (packedSchema === undefined) return false;
    const inner = fromBinary(packedSchema, message.value);
    const isLimited = removeLimits(packedSchema, inner);
    message.value = toBinary(packedSchema, inner);
    return isLimited;
  }
  let isLimited = false;
  for (const child of childrenOf(reflect(schema, message))) {
    if (removeLimits(child.desc, child.message)) isLimited = true;
  }
  return isLimited;
}

function* childrenOf(message: ReflectMessage): Generator<ReflectMessage> {
  for (const field of message.fields) {
    if (field.message === undefined || !message.isSet(field)) continue;
    if (field.fieldKind === 'message') yield message.get(field);
    else if (field.fieldKind === 'list') yield* message.get(field) as Iterable<ReflectMessage>;
    else if (field.fieldKind === 'map') for (const [, value] of message.get(field)) yield value as ReflectMessage;
  }
}

/** Names of clusters that now have a timeout and otherwise equal those of the proxy. */
export function clustersGivenUp(
  previousMap: ResourceMap,
  nextMap: ResourceMap,
  names: readonly string[],
): readonly string[] {
  return names.filter((name) => {
    const [previous, next] = [previousMap.get(name)?.content, nextMap.get(name)?.content];
    return next?.isLimited === true && previous?.digest === next.digest;
  });
}

/** Names of all clusters with a timeout. */
export function limitedClusters(clusters: ResourceMap): readonly string[] {
  return [...clusters.values()].filter(({ content }) => content?.isLimited === true).map(({ name }) => name);
}
