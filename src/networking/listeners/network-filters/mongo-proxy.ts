/** Counts MongoDB's operations on their way. */
import { MongoProxySchema } from '../../../gen/envoy/extensions/filters/network/mongo_proxy/v3/mongo_proxy_pb.ts';
import { typedExtension } from '../../any.ts';
import type { NetworkFilterContributor } from './contributor.ts';

export const mongoProxy: NetworkFilterContributor = (_context, use) => {
  if (use.kind !== 'tcp' || use.protocol !== 'Mongo') return [];
  const statPrefix = use.destinations[0]!.cluster;
  return [typedExtension('envoy.filters.network.mongo_proxy', MongoProxySchema, { statPrefix })];
};
