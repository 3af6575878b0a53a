/** Finds objects with Wasm code that would make a proxy's Envoy exit or reject its configuration (docs/envoy-versions.md). */
import { type ConfigKey, configKeyOf } from '../../model/config/config.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { patchSetOf } from './patch-set.ts';

export function withheldWasmKeys(shape: ProxyShape, push: PushContext): readonly ConfigKey[] {
  if (shape.runsWasm) return [];
  const { wasmPlugins } = push.policiesFor(shape);
  return [...wasmPlugins, ...(patchSetOf(shape, push)?.withheldFrom ?? [])].map(configKeyOf);
}
