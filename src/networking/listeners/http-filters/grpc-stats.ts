import { FilterConfigSchema } from '../../../gen/envoy/extensions/filters/http/grpc_stats/v3/config_pb.ts';
import { typedExtension } from '../../messages/any.ts';
import type { HttpFilterContributor } from './contributor.ts';

const filter = typedExtension('envoy.filters.http.grpc_stats', FilterConfigSchema, {
  emitFilterState: true,
  perMethodStatSpecifier: { case: 'statsForAllMethods', value: { value: false } },
});

export const grpcStats: HttpFilterContributor = () => [filter];
