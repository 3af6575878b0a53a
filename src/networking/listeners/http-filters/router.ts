/** Sends the request where its route says. */
import { RouterSchema } from '../../../gen/envoy/extensions/filters/http/router/v3/router_pb.ts';
import { typedExtension } from '../../any.ts';
import type { HttpFilterContributor } from './contributor.ts';

const filter = typedExtension('envoy.filters.http.router', RouterSchema);

export const router: HttpFilterContributor = () => [filter];
