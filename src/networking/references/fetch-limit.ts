/** Limits how long Envoy waits for the endpoints and secrets of a cluster. */
import { type DescMessage, fromBinary, isMessage, type Message, toBinary } from '@bufbuild/protobuf';
import { type ReflectMessage, reflect } from '@bufbuild/protobuf/reflect';
import { type Any, AnySchema } from '@bufbuild/protobuf/wkt';
import { Cluster_DiscoveryType, ClusterSchema } from '../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import { ConfigSourceSchema } from '../../gen/envoy/config/core/v3/config_source_pb.ts';
import { duration } from '../messages/protobuf-duration.ts';
import { packedType } from './packed-type.ts';

/** Envoy's default for `initial_fetch_timeout`. */
const defaultFetchMs = 15_000;

interface FetchLimit {
  readonly fetchMs: number;
  readonly awaitsNames: boolean;
}

/**
 * @param bytes an encoded Cluster
 * @returns `undefined` if the cluster already has limits that are low enough
 */
export function withFetchLimit(bytes: Uint8Array, { fetchMs, awaitsNames }: FetchLimit): Uint8Array | undefined {
  const cluster = fromBinary(ClusterSchema, bytes);
  const hasLimitedSource = limitSources(ClusterSchema, cluster, fetchMs);
  const { case: kind, value: type } = cluster.clusterDiscoveryType;
  const isNameBased =
    kind === 'clusterType' || type === Cluster_DiscoveryType.STRICT_DNS || type === Cluster_DiscoveryType.LOGICAL_DNS;
  const skipsWarming = !awaitsNames && isNameBased && cluster.waitForWarmOnInit !== false;
  if (skipsWarming) cluster.waitForWarmOnInit = false;
  return hasLimitedSource || skipsWarming ? toBinary(ClusterSchema, cluster) : undefined;
}

function limitSources(schema: DescMessage, message: Message, fetchMs: number): boolean {
  if (isMessage(message, ConfigSourceSchema)) {
    const { seconds, nanos } = message.initialFetchTimeout ?? duration(defaultFetchMs);
    const ms = Number(seconds) * 1_000 + nanos / 1_000_000;
    if (ms > 0 && ms <= fetchMs) return false;
    message.initialFetchTimeout = duration(fetchMs);
    return true;
  }
  if (isMessage(message, AnySchema)) return limitPacked(message, fetchMs);
  let hasLimitedSource = false;
  for (const child of childrenOf(reflect(schema, message))) {
    if (limitSources(child.desc, child.message, fetchMs)) hasLimitedSource = true;
  }
  return hasLimitedSource;
}

function limitPacked(packedMessage: Any, fetchMs: number): boolean {
  const schema = packedType(packedMessage.typeUrl);
  if (schema === undefined) return false;
  const message = fromBinary(schema, packedMessage.value);
  if (!limitSources(schema, message, fetchMs)) return false;
  packedMessage.value = toBinary(schema, message);
  return true;
}

function* childrenOf(message: ReflectMessage): Generator<ReflectMessage> {
  for (const field of message.fields) {
    if (field.message === undefined || !message.isSet(field)) continue;
    if (field.fieldKind === 'message') yield message.get(field);
    else if (field.fieldKind === 'list') yield* message.get(field) as Iterable<ReflectMessage>;
    else if (field.fieldKind === 'map') for (const [, value] of message.get(field)) yield value as ReflectMessage;
  }
}
