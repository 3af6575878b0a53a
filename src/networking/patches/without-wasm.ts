/**
 * Removes Wasm code from patches, for an Envoy that would exit on it or reject it. As for WasmPlugins, a filter that allows or denies everything
 * replaces a Wasm filter, by its failure policy.
 */
import { toJson } from '@bufbuild/protobuf';
import type { Any } from '@bufbuild/protobuf/wkt';
import { AnySchema } from '@bufbuild/protobuf/wkt';
import { memoizeByObject } from '../../model/collections/memoize-by-object.ts';
import { messageNameOf } from '../../model/envoy-api/message-name.ts';
import type { EnvoyPatch } from '../../model/kinds/envoy-filter/envoy-filter.ts';
import { isObject } from '../../runtime/json-object.ts';
import type { WasmLevel } from '../extensions/wasm-plugins.ts';
import { wasmSubstitute } from '../extensions/wasm-substitute.ts';
import { extensionTypes } from '../messages/extension-types.ts';

/** Returns `undefined` if the patch contains only Wasm code. */
export const withoutWasm = memoizeByObject((patch: EnvoyPatch): { readonly patch: EnvoyPatch | undefined } => {
  if (patch.value === undefined) return { patch };
  const value = replaceWasm(patch.value);
  if (value === patch.value) return { patch };
  return { patch: value === undefined ? undefined : { ...patch, value: value as Readonly<Record<string, unknown>> } };
});

const filterLevels: Readonly<Record<string, WasmLevel>> = {
  'envoy.extensions.filters.http.wasm.v3.Wasm': 'HTTP',
  'envoy.extensions.filters.network.wasm.v3.Wasm': 'NETWORK',
};
const otherExtensionTypes: ReadonlySet<string> = new Set([
  'envoy.extensions.access_loggers.wasm.v3.WasmAccessLog',
  'envoy.extensions.stat_sinks.wasm.v3.Wasm',
  'envoy.extensions.wasm.v3.WasmService',
]);

/** Fields with the type URLs that ECDS may deliver, which must include the type of the substitute. */
const typeListKeys: ReadonlySet<string> = new Set(['type_urls', 'typeUrls']);

/** Returns the same value if it contains no Wasm code, and `undefined` if it contains nothing else. */
function replaceWasm(value: unknown): unknown {
  if (Array.isArray(value)) {
    const items = value.map(replaceWasm).filter((item) => item !== undefined);
    return items.length === value.length && items.every((item, index) => item === value[index]) ? value : items;
  }
  if (!isObject(value)) return value;
  const { typeName, settings } = packedSettings(value);
  if (!runsNativeCode(settings)) {
    if (Object.hasOwn(filterLevels, typeName))
      return anyToJson(wasmSubstitute(filterLevels[typeName]!, failsOpen(settings)));
    if (otherExtensionTypes.has(typeName)) return undefined;
  }
  return withEntriesReplaced(value);
}

function withEntriesReplaced(object: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> | undefined {
  let result = object;
  for (const [key, entry] of Object.entries(object)) {
    const replacement = typeListKeys.has(key) && Array.isArray(entry) ? withSubstituteTypes(entry) : replaceWasm(entry);
    if (replacement === entry) continue;
    // Also removes objects that contain only the code, such as a list entry.
    if (replacement === undefined) return undefined;
    result = { ...result, [key]: replacement };
  }
  return result;
}

function withSubstituteTypes(urls: readonly unknown[]): readonly unknown[] {
  const substitutes = urls.flatMap((url) => {
    const typeName = typeof url === 'string' ? typeNameInUrl(url) : '';
    return Object.hasOwn(filterLevels, typeName) ? [wasmSubstitute(filterLevels[typeName]!, true).typeUrl] : [];
  });
  const missingUrls = substitutes.filter((url) => !urls.includes(url));
  return missingUrls.length === 0 ? urls : [...urls, ...missingUrls];
}

function packedSettings(object: Readonly<Record<string, unknown>>): { typeName: string; settings: unknown } {
  const type = typeNameInUrl(object['@type']);
  if (type !== 'udpa.type.v1.TypedStruct' && type !== 'xds.type.v3.TypedStruct')
    return { typeName: type, settings: object };
  return { typeName: typeNameInUrl(object.type_url ?? object.typeUrl), settings: object.value };
}

function typeNameInUrl(url: unknown): string {
  return typeof url === 'string' ? messageNameOf(url) : '';
}

/** Whether the plugin is compiled into Envoy and needs no Wasm runtime. */
function runsNativeCode(settings: unknown): boolean {
  const vm = field(configIn(settings), 'vm_config', 'vmConfig');
  return field(vm, 'runtime', 'runtime') === 'envoy.wasm.runtime.null';
}

function failsOpen(settings: unknown): boolean {
  const config = configIn(settings);
  const policy = field(config, 'failure_policy', 'failurePolicy');
  return field(config, 'fail_open', 'failOpen') === true || policy === 'FAIL_OPEN' || policy === failOpenNumber;
}

/** `FAIL_OPEN` in Envoy's enum `FailurePolicy`. */
const failOpenNumber = 3;

function configIn(settings: unknown): unknown {
  return field(settings, 'config', 'config');
}

function field(object: unknown, name: string, jsonName: string): unknown {
  return isObject(object) ? (object[name] ?? object[jsonName]) : undefined;
}

function anyToJson(packedMessage: Any): unknown {
  return toJson(AnySchema, packedMessage, { registry: extensionTypes });
}
