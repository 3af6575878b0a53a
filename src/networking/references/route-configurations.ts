import { fromBinary } from '@bufbuild/protobuf';
import { RouteConfigurationSchema } from '../../gen/envoy/config/route/v3/route_pb.ts';
import type { EncodedMessage } from './cluster-references.ts';
import { NameCollector } from './collect-names.ts';
import { messagesWithoutClusters, routeConfigurationFields } from './name-fields.ts';
import { packedType } from './packed-type.ts';

const collector = new NameCollector({ fields: routeConfigurationFields, skippedTypes: messagesWithoutClusters });

/** Larger configurations contain more than a fallback and are not decoded. */
const maxFallbackBytes = 2_048;

export function routeConfigurationsOf({ typeUrl, firstChunk, start, tailChunks }: EncodedMessage): ReadonlySet<string> {
  const names = new Set<string>();
  const schema = packedType(typeUrl);
  if (schema === undefined) return names;
  collector.collect(schema, firstChunk, names, start);
  for (const chunk of tailChunks) collector.collect(schema, chunk, names);
  return names;
}

export function hasHosts({ firstChunk, start, tailChunks }: EncodedMessage): boolean {
  const bytes = firstChunk.length - start + tailChunks.reduce((sum, { length }) => sum + length, 0);
  if (bytes > maxFallbackBytes) return true;
  const { virtualHosts } = fromBinary(
    RouteConfigurationSchema,
    Buffer.concat([firstChunk.subarray(start), ...tailChunks]),
  );
  return virtualHosts.some(({ domains }) => domains.some((domain) => domain !== '*'));
}
