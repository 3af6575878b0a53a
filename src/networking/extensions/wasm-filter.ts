import type { DescMessage } from '@bufbuild/protobuf';
import type { Config } from '../../model/config/config.ts';
import type { WasmPlugin } from '../../model/kinds/extensions/wasm-plugin.ts';
import type { ConnectionContext } from '../inputs/connection-context.ts';
import { adsConfigSource } from '../messages/config-source-message.ts';
import { fetchedPlugin } from './build.ts';
import { extensionName } from './wasm-plugins.ts';

export function wasmFilter(
  plugin: Config<WasmPlugin>,
  { shape, push }: Pick<ConnectionContext, 'shape' | 'push'>,
  types: readonly DescMessage[],
) {
  const name = extensionName(plugin);
  const fetchResult = fetchedPlugin(plugin, shape, push);
  if (fetchResult !== undefined) return { name, configType: { case: 'typedConfig' as const, value: fetchResult } };
  const typeUrls = types.map(({ typeName }) => `type.googleapis.com/${typeName}`);
  return { name, configType: { case: 'configDiscovery' as const, value: { configSource: adsConfigSource, typeUrls } } };
}
