/**
 * ECDS: the configurations of the WasmPlugins of a proxy, which its filters ask for by name (spec/discovery.md §8.12). A
 * plugin changes then without its listener: no connection is drained for it.
 */

import { create } from '@bufbuild/protobuf';
import { type Any, anyPack, StringValueSchema } from '@bufbuild/protobuf/wkt';
import { TypedExtensionConfigSchema } from '../../gen/envoy/config/core/v3/extension_pb.ts';
import { WasmSchema as HttpWasmSchema } from '../../gen/envoy/extensions/filters/http/wasm/v3/wasm_pb.ts';
import { WasmSchema as NetworkWasmSchema } from '../../gen/envoy/extensions/filters/network/wasm/v3/wasm_pb.ts';
import type { EnvironmentVariablesSchema, PluginConfigSchema } from '../../gen/envoy/extensions/wasm/v3/wasm_pb.ts';
import { type Config, configKeyOf } from '../../model/config/config.ts';
import type { WasmPlugin } from '../../model/kinds/wasm-plugin.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { type Memory, noMemory } from '../inputs/generator-memory.ts';
import { withOrigins } from '../inputs/message-origin.ts';
import { pack } from '../messages/any.ts';
import type { Init } from '../messages/init.ts';
import { namedResource, type Resource } from '../messages/resource.ts';
import { extensionName, levelOf } from './wasm-plugins.ts';
import { type WasmSource, wasmSource } from './wasm-source.ts';
import { wasmSubstitute } from './wasm-substitute.ts';

/** One for each name that is that of a plugin in force for the proxy. */
export function buildWasmPlugins(
  shape: ProxyShape,
  push: PushContext,
  names: readonly string[],
  memory: Memory = noMemory,
): Resource[] {
  const { wasmPlugins } = push.policiesFor(shape);
  if (wasmPlugins.length === 0) return [];
  const byName = new Map(wasmPlugins.map((plugin) => [extensionName(plugin), plugin]));
  return names.flatMap((name) => {
    const plugin = byName.get(name);
    if (plugin === undefined) return [];
    const { code, cluster = '', dependsOn } = shape.runsWasm ? wasmSource(plugin.spec, shape, push) : withheld;
    return memory.recall('ECDS', `${name} ${shape.runsWasm} ${cluster}`, [plugin], () => {
      const message = create(TypedExtensionConfigSchema, { name, typedConfig: configurationOf(plugin, code) });
      const key = configKeyOf(plugin);
      return namedResource(TypedExtensionConfigSchema, withOrigins(message, [{ key }]), [key, ...dependsOn]);
    });
  });
}

/** For an Envoy that would end or reject the plugin: the plugin acts as one whose code cannot be fetched. */
const withheld: WasmSource = { code: undefined, dependsOn: [] };

function configurationOf(plugin: Config<WasmPlugin>, code: WasmSource['code']): Any {
  const network = levelOf(plugin.spec) === 'NETWORK';
  if (code === undefined) return wasmSubstitute(levelOf(plugin.spec), plugin.spec.failStrategy === 'FAIL_OPEN');
  const config = pluginConfig(plugin, code);
  return network ? pack(NetworkWasmSchema, { config }) : pack(HttpWasmSchema, { config });
}

function pluginConfig(
  { namespace, name, spec }: Config<WasmPlugin>,
  code: NonNullable<WasmSource['code']>,
): Init<typeof PluginConfigSchema> {
  const { pluginConfig: settings, pluginName = '', failStrategy, vmConfig } = spec;
  const environment = environmentOf(vmConfig?.env ?? []);
  return {
    name: extensionName({ namespace, name }),
    rootId: pluginName,
    failOpen: failStrategy === 'FAIL_OPEN',
    ...(settings && {
      configuration: anyPack(StringValueSchema, create(StringValueSchema, { value: JSON.stringify(settings) })),
    }),
    vm: {
      case: 'vmConfig',
      value: { runtime: 'envoy.wasm.runtime.v8', code, ...(environment && { environmentVariables: environment }) },
    },
  };
}

function environmentOf(
  variables: NonNullable<NonNullable<WasmPlugin['vmConfig']>['env']>,
): Init<typeof EnvironmentVariablesSchema> | undefined {
  if (variables.length === 0) return undefined;
  const [host, inline] = [true, false].map((ofHost) =>
    variables.filter(({ valueFrom }) => (valueFrom === 'HOST') === ofHost),
  );
  return {
    hostEnvKeys: host!.map((variable) => variable.name),
    keyValues: Object.fromEntries(inline!.map((variable) => [variable.name, variable.value ?? ''])),
  };
}
