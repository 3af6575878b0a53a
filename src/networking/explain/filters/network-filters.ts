import type { DescMessage, MessageShape } from '@bufbuild/protobuf';
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import type { Filter } from '../../../gen/envoy/config/listener/v3/listener_components_pb.ts';
import { ExtAuthzSchema } from '../../../gen/envoy/extensions/filters/network/ext_authz/v3/ext_authz_pb.ts';
import { RBACSchema } from '../../../gen/envoy/extensions/filters/network/rbac/v3/rbac_pb.ts';
import type { RequestOutcome } from '../outcome.ts';
import { type FilterResult, UndecidedError } from './filter-result.ts';
import { evaluateNetworkRbac } from './rbac.ts';
import { hasMetadata, type Subject } from './subject.ts';
import { typeNameOf } from './type-name.ts';

/** These filters never close a connection. */
const passThroughFilters = new Set([
  'envoy.extensions.filters.network.sni_cluster.v3.SniCluster',
  'envoy.extensions.filters.network.set_filter_state.v3.Config',
  'envoy.extensions.filters.network.sni_dynamic_forward_proxy.v3.FilterConfig',
  'envoy.extensions.filters.network.mongo_proxy.v3.MongoProxy',
  'envoy.extensions.filters.network.mysql_proxy.v3.MySQLProxy',
  'envoy.tcp.metadataexchange.config.MetadataExchange',
  'stats.PluginConfig',
]);

export function evaluateNetworkFilters(filters: readonly Filter[], subject: Subject): RequestOutcome | undefined {
  for (const filter of filters.slice(0, -1)) {
    try {
      const result = evaluateNetworkFilter(filter, subject);
      if (result !== undefined) return result.outcome;
    } catch (error) {
      if (!(error instanceof UndecidedError)) throw error;
      return { kind: 'not decided', filter: filter.name, why: `filter ${filter.name}: ${error.message}` };
    }
  }
  return undefined;
}

function evaluateNetworkFilter(filter: Filter, subject: Subject): FilterResult {
  const rbac = configOf(filter, RBACSchema);
  if (rbac) return evaluateNetworkRbac(rbac, subject);
  const extAuthz = configOf(filter, ExtAuthzSchema);
  if (extAuthz) {
    const { filterEnabledMetadata: enabledMetadata } = extAuthz;
    if (enabledMetadata && !hasMetadata(enabledMetadata, subject)) return undefined;
    throw new UndecidedError('an external service decides');
  }
  const { configType } = filter;
  const type = configType.case === 'typedConfig' ? typeNameOf(configType.value) : undefined;
  if (type !== undefined && passThroughFilters.has(type)) return undefined;
  throw new UndecidedError(type === undefined ? 'its code decides' : `${type} decides`);
}

function configOf<Desc extends DescMessage>({ configType }: Filter, schema: Desc): MessageShape<Desc> | undefined {
  return configType.case === 'typedConfig'
    ? (anyUnpack(configType.value, schema) as MessageShape<Desc> | undefined)
    : undefined;
}
