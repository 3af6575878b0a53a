import { fromBinary } from '@bufbuild/protobuf';
import type { Any } from '@bufbuild/protobuf/wkt';
import type { RouteConfiguration } from '../../gen/envoy/config/route/v3/route_pb.ts';
import {
  type HttpConnectionManager,
  HttpConnectionManagerSchema,
  type HttpFilter,
  HttpFilterSchema,
} from '../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts';
import type { ActivePatch } from './active-patch.ts';
import { isPackedAs, packedSettingsOf, patchedFilters } from './filters.ts';
import { repackAny, shallowCopy } from './merge-messages.ts';

export const httpConnectionManagerType =
  'envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager';
const routerType = 'envoy.extensions.filters.http.router.v3.Router';

/**
 * @param patchedRoutes returns its argument if nothing changes
 * @returns `packedManager` if nothing changes, or it is not an HTTP connection manager
 */
export function patchedManager(
  packedManager: Any,
  filters: readonly ActivePatch[],
  patchedRoutes: (routes: RouteConfiguration) => RouteConfiguration,
): Any {
  if (!isPackedAs(packedManager, httpConnectionManagerType)) return packedManager;
  const manager = fromBinary(HttpConnectionManagerSchema, packedManager.value);
  const httpFilters = patchedFilters<HttpFilter>(manager.httpFilters, filters, {
    schema: HttpFilterSchema,
    filterName: ({ patch }) => patch.match.listener?.filterChain?.filter?.subFilter?.name || undefined,
    isLast: (filter) => isPackedAs(packedSettingsOf(filter), routerType),
  });
  const { routeSpecifier } = manager;
  const routes = routeSpecifier.case === 'routeConfig' ? routeSpecifier.value : undefined;
  const newRoutes = routes && patchedRoutes(routes);
  if (httpFilters === manager.httpFilters && newRoutes === routes) return packedManager;
  const changedManager: HttpConnectionManager = shallowCopy(manager);
  changedManager.httpFilters = [...httpFilters];
  if (newRoutes !== undefined) changedManager.routeSpecifier = { case: 'routeConfig', value: newRoutes };
  return repackAny(packedManager, HttpConnectionManagerSchema, changedManager);
}
