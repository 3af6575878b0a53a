/** Counts MySQL commands (PILOT_ENABLE_MYSQL_FILTER). */
import { TypedStructSchema } from '../../../gen/udpa/type/v1/typed_struct_pb.ts';
import { typedExtension } from '../../messages/any.ts';
import type { NetworkFilterContributor } from './contributor.ts';

const typeUrl = 'type.googleapis.com/envoy.extensions.filters.network.mysql_proxy.v3.MySQLProxy';

export const mysqlProxy: NetworkFilterContributor = ({ push }, use) => {
  if (use.kind !== 'tcp' || use.protocol !== 'MySQL' || !push.features.mysqlFilter) return [];
  const value = { stat_prefix: use.destinations[0]!.cluster };
  return [typedExtension('envoy.filters.network.mysql_proxy', TypedStructSchema, { typeUrl, value })];
};
