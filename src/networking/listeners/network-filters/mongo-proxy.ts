import { MongoProxySchema } from '../../../gen/envoy/extensions/filters/network/mongo_proxy/v3/mongo_proxy_pb.ts';
import { typedExtension } from '../../messages/any.ts';
import type { NetworkFilterContributor } from './contributor.ts';

export const mongoProxy: NetworkFilterContributor = ({ push }, use) => {
  if (use.kind !== 'tcp' || use.protocol !== 'Mongo' || !push.features.mongoFilter) return [];
  const statPrefix = use.destinations[0]!.cluster;
  return [typedExtension('envoy.filters.network.mongo_proxy', MongoProxySchema, { statPrefix })];
};
