/**
 * Objects whose Wasm code is not sent to a proxy, because its Envoy would exit or reject it (docs/envoy-versions.md).
 */
import { type ConfigKey, configKeyOf } from '../../model/config/config.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { patchSetOf } from './patch-set.ts';

/** WasmPlugins and EnvoyFilters that apply to the proxy, empty if its Envoy runs Wasm code. */
export function withheldWasm(shape: ProxyShape, push: PushContext): readonly ConfigKey[] {
  if (shape.runsWasm) return [];
  const { wasmPlugins } = push.policiesFor(shape);
  return [...wasmPlugins, ...(patchSetOf(shape, push)?.withheldFrom ?? [])].map(configKeyOf);
}
