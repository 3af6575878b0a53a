/** The HTTP filters of every connection manager, in their order (spec/discovery.md §8.4). */
import { CorsSchema } from '../../gen/envoy/extensions/filters/http/cors/v3/cors_pb.ts';
import { HTTPFaultSchema } from '../../gen/envoy/extensions/filters/http/fault/v3/fault_pb.ts';
import { FilterConfigSchema as GrpcStatsSchema } from '../../gen/envoy/extensions/filters/http/grpc_stats/v3/config_pb.ts';
import { GrpcWebSchema } from '../../gen/envoy/extensions/filters/http/grpc_web/v3/grpc_web_pb.ts';
import { RouterSchema } from '../../gen/envoy/extensions/filters/http/router/v3/router_pb.ts';
import { type TypedExtension, typedExtension } from '../any.ts';

const grpcWeb = typedExtension('envoy.filters.http.grpc_web', GrpcWebSchema);
const grpcStats = typedExtension('envoy.filters.http.grpc_stats', GrpcStatsSchema, {
  emitFilterState: true,
  perMethodStatSpecifier: { case: 'statsForAllMethods', value: { value: false } },
});
const fault = typedExtension('envoy.filters.http.fault', HTTPFaultSchema);
const cors = typedExtension('envoy.filters.http.cors', CorsSchema);
const router = typedExtension('envoy.filters.http.router', RouterSchema);

/** Faults and CORS are told by routes; the filters must be there for a route to tell them anything. */
export function httpFilters(options: { readonly grpcWeb: boolean }): TypedExtension[] {
  return [...(options.grpcWeb ? [grpcWeb] : []), grpcStats, fault, cors, router];
}
