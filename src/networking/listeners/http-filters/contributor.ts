/** One row of the table of HTTP filters. */
import type { RouteConfiguration } from '../../../gen/envoy/config/route/v3/route_pb.ts';
import type { HttpFilterSchema } from '../../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts';
import type { ConnectionContext } from '../../inputs/connection-context.ts';
import type { Init } from '../../messages/init.ts';

/** A filter with its configuration packed (a TypedExtension is one), or with a name to ask for it. */
export type HttpFilterInit = Init<typeof HttpFilterSchema>;

/** The filters of one kind that the requests of a connection go through, in their order; none where they have no use. */
export type HttpFilterContributor = (
  context: ConnectionContext,
  options: HttpConnectionManagerOptions,
) => readonly HttpFilterInit[];

export interface HttpConnectionManagerOptions {
  /** A route configuration's name, to be asked for, or the configuration itself. */
  readonly routes: string | RouteConfiguration;
  readonly grpcWeb?: boolean;
  /** Requests come over QUIC. */
  readonly http3?: boolean;
  /** Metadata `HTTP10`: clients of HTTP/1.0 are served. */
  readonly http10?: boolean;
  /** A client that asks this listener as its proxy names the whole URL. */
  readonly absoluteUrl?: boolean;
}
