import { create } from '@bufbuild/protobuf';
import { RouteSchema, type VirtualHost } from '../../../gen/envoy/config/route/v3/route_components_pb.ts';
import { virtualHost } from './route-configuration.ts';

/** Responds with 421, so that the client opens a new connection for the host (RFC 9110 §15.5.20). */
export function misdirectedHost(name: string, domains: readonly string[]): VirtualHost {
  return virtualHost(name, domains, [
    create(RouteSchema, {
      match: { pathSpecifier: { case: 'prefix', value: '/' } },
      action: { case: 'directResponse', value: { status: 421 } },
    }),
  ]);
}
