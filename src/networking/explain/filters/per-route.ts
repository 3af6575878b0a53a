import type { DescMessage, MessageShape } from '@bufbuild/protobuf';
import { type Any, anyIs, anyUnpack } from '@bufbuild/protobuf/wkt';
import { FilterConfigSchema } from '../../../gen/envoy/config/route/v3/route_components_pb.ts';
import type { HttpFilter } from '../../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts';

export interface RouteConfigs {
  /** `typed_per_filter_config`, most specific first. */
  readonly configs: readonly Readonly<Record<string, Any>>[];
  readonly clusters: readonly string[];
}

export function perRouteConfig<Desc extends DescMessage>(
  filter: string,
  schema: Desc,
  { configs }: RouteConfigs,
): MessageShape<Desc> | undefined {
  const packedConfig = configs.find((config) => Object.hasOwn(config, filter))?.[filter];
  if (packedConfig === undefined) return undefined;
  const innerConfig = anyIs(packedConfig, FilterConfigSchema)
    ? anyUnpack(packedConfig, FilterConfigSchema)?.config
    : packedConfig;
  return innerConfig && (anyUnpack(innerConfig, schema) as MessageShape<Desc> | undefined);
}

/** A route's configuration overrides the filter's default. */
export function isDisabledFor({ name, disabled }: HttpFilter, { configs }: RouteConfigs): boolean {
  const packedConfig = configs.find((config) => Object.hasOwn(config, name))?.[name];
  if (packedConfig === undefined) return disabled;
  return anyIs(packedConfig, FilterConfigSchema)
    ? anyUnpack(packedConfig, FilterConfigSchema)?.disabled === true
    : false;
}
