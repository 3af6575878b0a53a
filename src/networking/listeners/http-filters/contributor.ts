/** One row of the table of HTTP filters. */
import type { HttpFilterSchema } from '../../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts';
import type { ConnectionContext } from '../../inputs/connection-context.ts';
import type { Init } from '../../messages/init.ts';
import type { HttpConnectionManagerOptions } from '../http-connection-manager.ts';

/** A filter with its configuration packed (a TypedExtension is one), or with a name to ask for it. */
export type HttpFilterInit = Init<typeof HttpFilterSchema>;

/** The filters of one kind that the requests of a connection go through, in their order; none where they have no use. */
export type HttpFilterContributor = (
  context: ConnectionContext,
  options: HttpConnectionManagerOptions,
) => readonly HttpFilterInit[];
