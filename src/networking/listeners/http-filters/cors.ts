import { CorsSchema } from '../../../gen/envoy/extensions/filters/http/cors/v3/cors_pb.ts';
import { typedExtension } from '../../messages/any.ts';
import type { HttpFilterContributor } from './contributor.ts';

const filter = typedExtension('envoy.filters.http.cors', CorsSchema);

export const cors: HttpFilterContributor = () => [filter];
