import type { DescMessage, MessageShape } from '@bufbuild/protobuf';
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import { CorsPolicySchema, CorsSchema } from '../../../gen/envoy/extensions/filters/http/cors/v3/cors_pb.ts';
import { FilterConfigSchema as DynamicForwardProxySchema } from '../../../gen/envoy/extensions/filters/http/dynamic_forward_proxy/v3/dynamic_forward_proxy_pb.ts';
import {
  type ExtAuthz,
  ExtAuthzPerRouteSchema,
  ExtAuthzSchema,
} from '../../../gen/envoy/extensions/filters/http/ext_authz/v3/ext_authz_pb.ts';
import { HTTPFaultSchema } from '../../../gen/envoy/extensions/filters/http/fault/v3/fault_pb.ts';
import {
  type JwtAuthentication,
  JwtAuthenticationSchema,
  PerRouteConfigSchema,
} from '../../../gen/envoy/extensions/filters/http/jwt_authn/v3/config_pb.ts';
import { LuaPerRouteSchema, LuaSchema } from '../../../gen/envoy/extensions/filters/http/lua/v3/lua_pb.ts';
import { RBACPerRouteSchema, RBACSchema } from '../../../gen/envoy/extensions/filters/http/rbac/v3/rbac_pb.ts';
import type { HttpFilter } from '../../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts';
import { peerClaimFilter } from '../../listeners/http-filters/peer-claim.ts';
import type { OutcomeShare } from '../outcome.ts';
import { evaluateCors } from './cors.ts';
import { evaluateFault, fractionOf } from './fault.ts';
import { type FilterResult, UndecidedError } from './filter-result.ts';
import { evaluateJwt } from './jwt.ts';
import { storeToken } from './jwt-claims.ts';
import { evaluateLua } from './lua.ts';
import { isDisabledFor, perRouteConfig, type RouteConfigs } from './per-route.ts';
import { evaluateHttpRbac } from './rbac.ts';
import { hasMetadata, type RequestSubject, type Subject } from './subject.ts';
import { typeNameOf } from './type-name.ts';

/** These filters never respond to a request. */
const passThroughFilters = new Set([
  'envoy.extensions.filters.http.grpc_stats.v3.FilterConfig',
  'envoy.extensions.filters.http.grpc_web.v3.GrpcWeb',
  'envoy.extensions.filters.http.router.v3.Router',
  'envoy.extensions.filters.http.set_filter_state.v3.Config',
  'envoy.extensions.filters.http.stateful_session.v3.StatefulSession',
  'envoy.extensions.filters.http.compressor.v3.Compressor',
  'io.istio.http.peer_metadata.Config',
  'istio.envoy.config.filter.http.alpn.v2alpha1.FilterConfig',
  'stats.PluginConfig',
]);

export interface RequestState {
  readonly subject: RequestSubject;
  /** Per-filter configurations of the current route, most specific first, and its clusters. */
  readonly routeConfigs: () => RouteConfigs;
  /** Selects the route again after filters changed the request. */
  readonly clearRoute: () => void;
  readonly resolvesHost: () => boolean;
  readonly nowMs: number;
  readonly lacksFetchedKeys: boolean;
}

/** @returns the shares of requests that filters end; if their sum is less than 1, the other requests are routed */
export function evaluateHttpFilters(filters: readonly HttpFilter[], state: RequestState): readonly OutcomeShare[] {
  const outcomeShares: OutcomeShare[] = [];
  let remainingShare = 1;
  for (const filter of filters) {
    const result = resultOf(filter, state);
    if (result === undefined) continue;
    const share = remainingShare * (result.share ?? 1);
    outcomeShares.push({ share, outcome: result.outcome });
    remainingShare -= share;
    if (remainingShare <= 0) break;
  }
  return outcomeShares;
}

function resultOf(filter: HttpFilter, state: RequestState): FilterResult {
  const { name } = filter;
  try {
    return isDisabledFor(filter, state.routeConfigs()) ? undefined : evaluateHttpFilter(filter, state);
  } catch (error) {
    if (!(error instanceof UndecidedError)) throw error;
    return { outcome: { kind: 'not decided', filter: name, why: `filter ${name}: ${error.message}` } };
  }
}

function evaluateHttpFilter(filter: HttpFilter, state: RequestState): FilterResult {
  const { subject } = state;
  const { name, configType } = filter;
  const perRoute = <Desc extends DescMessage>(schema: Desc): MessageShape<Desc> | undefined =>
    perRouteConfig(name, schema, state.routeConfigs());
  const rbac = configOf(filter, RBACSchema);
  if (rbac) {
    const override = perRoute(RBACPerRouteSchema);
    const effectiveRbac = override === undefined ? rbac : override.rbac;
    return effectiveRbac && evaluateHttpRbac(effectiveRbac, subject);
  }
  const jwt = configOf(filter, JwtAuthenticationSchema);
  if (jwt) return evaluateTokens(jwt, state, perRoute(PerRouteConfigSchema));
  const fault = configOf(filter, HTTPFaultSchema);
  if (fault) return evaluateFault(perRoute(HTTPFaultSchema) ?? fault, subject, state.routeConfigs().clusters);
  if (configOf(filter, CorsSchema)) {
    const policy = perRoute(CorsPolicySchema);
    return policy && evaluateCors(policy, subject.request);
  }
  const extAuthz = configOf(filter, ExtAuthzSchema);
  if (extAuthz)
    return evaluateExtAuthz(extAuthz, subject, perRoute(ExtAuthzPerRouteSchema)?.override.case === 'disabled');
  if (configOf(filter, DynamicForwardProxySchema)) return evaluateDynamicForwardProxy(state);
  const lua = configOf(filter, LuaSchema);
  if (lua) return evaluateLua(lua, perRoute(LuaPerRouteSchema));
  // This filter cannot change the outcome, because no rule matches its header.
  if (name === peerClaimFilter) return undefined;
  const type = configType.case === 'typedConfig' ? typeNameOf(configType.value) : undefined;
  if (type !== undefined && passThroughFilters.has(type)) return undefined;
  throw new UndecidedError(type === undefined ? 'its code decides' : `${type} decides`);
}

function evaluateDynamicForwardProxy({ subject, resolvesHost }: RequestState): FilterResult {
  if (subject.request.authority !== '' || !resolvesHost()) return undefined;
  const reason = 'the Host header is empty: no name to resolve';
  return { outcome: { kind: 'malformed', status: 400, details: 'empty_host_header', why: reason } };
}

function evaluateTokens(
  jwt: JwtAuthentication,
  state: RequestState,
  perRoute: MessageShape<typeof PerRouteConfigSchema> | undefined,
): FilterResult {
  const { filterResult, verifiedTokens } = evaluateJwt(jwt, perRoute, state.subject.request, state);
  for (const token of verifiedTokens) storeToken(token, state.subject);
  if (verifiedTokens.some(({ provider }) => provider.clearRouteCache)) state.clearRoute();
  return filterResult;
}

function evaluateExtAuthz(
  { filterEnabledMetadata, filterEnabled }: ExtAuthz,
  subject: Subject,
  isFilterDisabled: boolean,
): FilterResult {
  if (isFilterDisabled) return undefined;
  if (filterEnabledMetadata && !hasMetadata(filterEnabledMetadata, subject)) return undefined;
  if (filterEnabled && fractionOf(filterEnabled.defaultValue) === 0) return undefined;
  throw new UndecidedError('an external service decides');
}

function configOf<Desc extends DescMessage>({ configType }: HttpFilter, schema: Desc): MessageShape<Desc> | undefined {
  return configType.case === 'typedConfig'
    ? (anyUnpack(configType.value, schema) as MessageShape<Desc> | undefined)
    : undefined;
}
