/** Finds the clusters to which a resource refers. Each encoded chunk is read only once. */
import type { DescMessage } from '@bufbuild/protobuf';
import { memoizeByObject } from '../../model/collections/memoize-by-object.ts';
import { NameCollector } from './collect-names.ts';
import { clusterFields, messagesWithoutClusters } from './name-fields.ts';
import { packedType } from './packed-type.ts';

/** Names per chunk. Resources with a common chunk share its set. */
export type ClusterNames = readonly ReadonlySet<string>[];

const collector = new NameCollector({ fields: clusterFields, skippedTypes: messagesWithoutClusters });

/** An encoded resource in chunks, each of which ends with a complete field. */
export interface EncodedMessage {
  readonly typeUrl: string;
  readonly firstChunk: Uint8Array;
  /** Offset of the message in the first chunk. */
  readonly start: number;
  readonly tailChunks: readonly Uint8Array[];
}

/** Includes references by EnvoyFilters. Excludes clusters that are selected per request (`cluster_header`, plugins, Lua). */
export function clustersNamedIn({ typeUrl, firstChunk, start, tailChunks }: EncodedMessage): ClusterNames {
  const schema = packedType(typeUrl);
  if (schema === undefined) return [];
  const names = new Set<string>();
  collector.collect(schema, firstChunk, names, start);
  const sharedNames = tailChunks.map((chunk) => namesInChunk(schema)(chunk)).filter(({ size }) => size > 0);
  return names.size === 0 ? sharedNames : [names, ...sharedNames];
}

export function namesCluster(clusters: ClusterNames, name: string): boolean {
  return clusters.some((names) => names.has(name));
}

export function clustersAmong(clusters: ClusterNames, candidates: ReadonlySet<string>): readonly string[] {
  const count = clusters.reduce((sum, { size }) => sum + size, 0);
  // If there are fewer candidates, iterating over them is faster.
  if (candidates.size * clusters.length <= count) return [...candidates].filter((name) => namesCluster(clusters, name));
  const referencedNames = new Set(clusters.flatMap((names) => [...names].filter((name) => candidates.has(name))));
  return referencedNames.size === 0 ? [] : [...candidates].filter((name) => referencedNames.has(name));
}

const namesInChunk = memoizeByObject((schema: DescMessage) =>
  memoizeByObject((chunk: Uint8Array): ReadonlySet<string> => {
    const names = new Set<string>();
    collector.collect(schema, chunk, names);
    return names;
  }),
);
