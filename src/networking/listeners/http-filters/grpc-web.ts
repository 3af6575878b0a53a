import { GrpcWebSchema } from '../../../gen/envoy/extensions/filters/http/grpc_web/v3/grpc_web_pb.ts';
import { typedExtension } from '../../messages/any.ts';
import type { HttpFilterContributor } from './contributor.ts';

const filter = typedExtension('envoy.filters.http.grpc_web', GrpcWebSchema);

export const grpcWeb: HttpFilterContributor = (_context, options) => (options.grpcWeb ? [filter] : []);
