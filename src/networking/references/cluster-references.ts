/** Which clusters a generated resource names, read from its bytes once. */
import type { DescMessage } from '@bufbuild/protobuf';
import { onceFor } from '../../model/collections/once-for.ts';
import { NameCollector } from './collect-names.ts';
import { clusterFields, messagesWithoutClusters } from './name-fields.ts';
import { packedType } from './packed-type.ts';

/** Names of clusters, in sets that resources share. */
export type ClusterNames = readonly ReadonlySet<string>[];

const collector = new NameCollector({ fields: clusterFields, skipped: messagesWithoutClusters });

/** A resource as encoded: the first chunk may begin with other bytes, and each chunk ends at the end of a field. */
export interface EncodedMessage {
  readonly typeUrl: string;
  readonly first: Uint8Array;
  /** Where the message begins in the first chunk. */
  readonly start: number;
  readonly rest: readonly Uint8Array[];
}

/**
 * The clusters that a listener, a route configuration or an extension configuration names: of routes (weighted and mirrored
 * ones included), TCP proxies, authorization, rate limits, tracing and access logs, whatever EnvoyFilters added.
 * What is chosen for each request (`cluster_header`, a plugin, Lua) is not among them.
 */
export function clustersNamedIn({ typeUrl, first, start, rest }: EncodedMessage): ClusterNames {
  const schema = packedType(typeUrl);
  if (schema === undefined) return [];
  const names = new Set<string>();
  collector.collect(schema, first, names, start);
  const shared = rest.map((chunk) => namesInChunk(schema)(chunk)).filter(({ size }) => size > 0);
  return names.size === 0 ? shared : [names, ...shared];
}

export function namesCluster(clusters: ClusterNames, name: string): boolean {
  return clusters.some((names) => names.has(name));
}

/** Those of these clusters that are named, in their order. */
export function clustersAmong(clusters: ClusterNames, wanted: ReadonlySet<string>): readonly string[] {
  const count = clusters.reduce((sum, { size }) => sum + size, 0);
  // Of one large list thousands of new clusters may be looked up.
  if (wanted.size * clusters.length <= count) return [...wanted].filter((name) => namesCluster(clusters, name));
  const found = new Set(clusters.flatMap((names) => [...names].filter((name) => wanted.has(name))));
  return found.size === 0 ? [] : [...wanted].filter((name) => found.has(name));
}

/** Chunks are shared by many resources of their type. */
const namesInChunk = onceFor((schema: DescMessage) =>
  onceFor((chunk: Uint8Array): ReadonlySet<string> => {
    const names = new Set<string>();
    collector.collect(schema, chunk, names);
    return names;
  }),
);
