import type { RouteConfiguration } from '../../../gen/envoy/config/route/v3/route_pb.ts';
import type { HttpFilterSchema } from '../../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts';
import type { ConnectionContext } from '../../inputs/connection-context.ts';
import type { Init } from '../../messages/init.ts';

export type HttpFilterInit = Init<typeof HttpFilterSchema>;

export type HttpFilterContributor = (
  context: ConnectionContext,
  options: HttpConnectionManagerOptions,
) => readonly HttpFilterInit[];

export interface HttpConnectionManagerOptions {
  /** RDS name, or inline route configuration. */
  readonly routes: string | RouteConfiguration;
  readonly grpcWeb?: boolean;
  readonly http3?: boolean;
  readonly http10?: boolean;
  /** The listener is an HTTP proxy, to which clients send absolute URLs. */
  readonly absoluteUrl?: boolean;
}
