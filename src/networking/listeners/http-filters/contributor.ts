/** A row of the table of HTTP filters. */
import type { RouteConfiguration } from '../../../gen/envoy/config/route/v3/route_pb.ts';
import type { HttpFilterSchema } from '../../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts';
import type { ConnectionContext } from '../../inputs/connection-context.ts';
import type { Init } from '../../messages/init.ts';

/** A filter with packed configuration (such as a TypedExtension), or with a name for ECDS. */
export type HttpFilterInit = Init<typeof HttpFilterSchema>;

/** The filters of one kind for a connection's requests, in order. Empty if not needed. */
export type HttpFilterContributor = (
  context: ConnectionContext,
  options: HttpConnectionManagerOptions,
) => readonly HttpFilterInit[];

export interface HttpConnectionManagerOptions {
  /** An RDS name, or an inline route configuration. */
  readonly routes: string | RouteConfiguration;
  readonly grpcWeb?: boolean;
  readonly http3?: boolean;
  /** Accepts HTTP/1.0 (metadata `HTTP10`). */
  readonly http10?: boolean;
  /** The listener is an HTTP proxy, so clients send absolute URLs. */
  readonly absoluteUrl?: boolean;
}
