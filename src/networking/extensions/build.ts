/**
 * Builds WasmPlugin configurations of a proxy. Filters request them by name over ECDS, so that a changed plugin neither changes its listener nor
 * drains connections. If Envoy itself fetches the code, the listener contains the plugin instead. An active listener of Envoy 1.40 never fetches code
 * of a plugin received by ECDS (measured: each request gets 503).
 */

import { hash } from 'node:crypto';
import { create } from '@bufbuild/protobuf';
import { type Any, anyPack, StringValueSchema } from '@bufbuild/protobuf/wkt';
import { TypedExtensionConfigSchema } from '../../gen/envoy/config/core/v3/extension_pb.ts';
import { WasmSchema as HttpWasmSchema } from '../../gen/envoy/extensions/filters/http/wasm/v3/wasm_pb.ts';
import { WasmSchema as NetworkWasmSchema } from '../../gen/envoy/extensions/filters/network/wasm/v3/wasm_pb.ts';
import type { EnvironmentVariablesSchema, PluginConfigSchema } from '../../gen/envoy/extensions/wasm/v3/wasm_pb.ts';
import { memoizeByPair } from '../../model/collections/memoize-by-object.ts';
import { type Config, configKeyOf } from '../../model/config/config.ts';
import type { WasmPlugin } from '../../model/kinds/extensions/wasm-plugin.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { type Memory, noMemory } from '../inputs/generator-memory.ts';
import { withOrigins } from '../inputs/message-origin.ts';
import { pack } from '../messages/any.ts';
import type { Init } from '../messages/init.ts';
import { type EnvoyResource, namedResource } from '../messages/resource.ts';
import { extensionName, levelOf } from './wasm-plugins.ts';
import { type PullVariables, pullOf } from './wasm-pull.ts';
import { type WasmSource, wasmSource } from './wasm-source.ts';
import { wasmSubstitute } from './wasm-substitute.ts';

export function buildWasmPlugins(
  shape: ProxyShape,
  push: PushContext,
  names: readonly string[],
  cache: Memory = noMemory,
): EnvoyResource[] {
  const { wasmPlugins } = push.policiesFor(shape);
  if (wasmPlugins.length === 0) return [];
  const pluginByName = new Map(wasmPlugins.map((plugin) => [extensionName(plugin), plugin]));
  return names.flatMap((name) => {
    const plugin = pluginByName.get(name);
    if (plugin === undefined) return [];
    const { code, cluster, isFetchedByAgent, dependsOn } = sourceOf(plugin, shape, push);
    // New listeners contain this plugin, because Envoy fetches its code. Without an ECDS resource, an older listener keeps its configuration.
    if (cluster !== undefined) return [];
    const fetches = shape.metadata.WASM_FETCH ?? '';
    const pull = isFetchedByAgent ? pullOf(plugin, shape, push) : undefined;
    const cacheKey = `${name} ${shape.runsWasm} ${fetches} ${pull?.mayHaveSecret ?? ''}`;
    return cache.getOrBuild('ECDS', cacheKey, [plugin, pull?.secret], () => {
      const typedConfig = configurationOf(plugin, code, pull?.variables);
      const message = create(TypedExtensionConfigSchema, { name, typedConfig });
      const key = configKeyOf(plugin);
      const allDependencies = [key, ...(pull?.dependsOn ?? []), ...dependsOn];
      return namedResource(TypedExtensionConfigSchema, withOrigins(message, [{ key }]), allDependencies);
    });
  });
}

/** The configuration of a plugin whose code Envoy fetches, `undefined` for plugins that use ECDS. */
export function fetchedPlugin(plugin: Config<WasmPlugin>, shape: ProxyShape, push: PushContext): Any | undefined {
  const { code, cluster } = sourceOf(plugin, shape, push);
  return cluster === undefined ? undefined : configurationOf(plugin, code);
}

/** Clusters from which Envoy fetches code. Listeners contain these plugins, so this text is part of their cache keys. */
export function fetchedPluginsText(shape: ProxyShape, push: PushContext): string {
  const { wasmPlugins } = push.policiesFor(shape);
  return wasmPlugins.map((plugin) => sourceOf(plugin, shape, push).cluster ?? '').join();
}

function sourceOf(plugin: Config<WasmPlugin>, shape: ProxyShape, push: PushContext): WasmSource {
  if (!shape.runsWasm) return emptySource;
  const cachedSources = sourcesOf(shape, push);
  const source = cachedSources.get(plugin) ?? wasmSource(plugin.spec, shape, push);
  cachedSources.set(plugin, source);
  return source;
}

const sourcesOf = memoizeByPair((_: ProxyShape, __: PushContext) => new Map<Config<WasmPlugin>, WasmSource>());

/** Source for an Envoy that cannot run Wasm code. It has the same effect as code that cannot be fetched. */
const emptySource: WasmSource = { code: undefined, dependsOn: [] };

function configurationOf(plugin: Config<WasmPlugin>, code: WasmSource['code'], agentPull?: PullVariables): Any {
  const network = levelOf(plugin.spec) === 'NETWORK';
  if (code === undefined) return wasmSubstitute(levelOf(plugin.spec), plugin.spec.failStrategy === 'FAIL_OPEN');
  const config = pluginConfig(plugin, code, agentPull);
  return network ? pack(NetworkWasmSchema, { config }) : pack(HttpWasmSchema, { config });
}

function pluginConfig(
  { namespace, name, spec }: Config<WasmPlugin>,
  code: NonNullable<WasmSource['code']>,
  agentPull: PullVariables | undefined,
): Init<typeof PluginConfigSchema> {
  const { pluginConfig: settings, pluginName = '', failStrategy, vmConfig } = spec;
  const environment = environmentOf(vmConfig?.env ?? [], agentPull);
  const vmId = vmIdOf(spec);
  return {
    name: extensionName({ namespace, name }),
    rootId: pluginName,
    failOpen: failStrategy === 'FAIL_OPEN',
    ...(settings && {
      configuration: anyPack(StringValueSchema, create(StringValueSchema, { value: JSON.stringify(settings) })),
    }),
    vm: {
      case: 'vmConfig',
      value: {
        ...{ runtime: 'envoy.wasm.runtime.v8', code },
        ...(vmId !== '' && { vmId }),
        ...(environment && { environmentVariables: environment }),
      },
    },
  };
}

/** Plugins with the same ID and code share a VM. Envoy 1.40 compares neither code that is still being fetched nor environment variables. */
function vmIdOf({ url, sha256 = '', vmConfig }: WasmPlugin): string {
  const isLocalFile = url.startsWith('file:');
  const variables = vmConfig?.env ?? [];
  return isLocalFile && variables.length === 0
    ? ''
    : hash('sha256', JSON.stringify([isLocalFile ? '' : sha256, variables]));
}

function environmentOf(
  variables: NonNullable<NonNullable<WasmPlugin['vmConfig']>['env']>,
  agentPull: PullVariables | undefined,
): Init<typeof EnvironmentVariablesSchema> | undefined {
  if (variables.length === 0 && agentPull === undefined) return undefined;
  const [host, inline] = [true, false].map((isFromHost) =>
    variables.filter(({ valueFrom }) => (valueFrom === 'HOST') === isFromHost),
  );
  return {
    hostEnvKeys: host!.map((variable) => variable.name),
    keyValues: { ...Object.fromEntries(inline!.map(({ name, value }) => [name, value ?? ''])), ...agentPull },
  };
}
