/** Which WasmPlugins a connection goes through, and in which order (spec/discovery.md §8.4). */
import type { Config } from '../../model/config/config.ts';
import type { WasmMatch, WasmPlugin } from '../../model/kinds/extensions/wasm-plugin.ts';
import type { ConnectionContext } from '../inputs/connection-context.ts';
import { type Side, sideOf } from '../telemetry/mode.ts';

export type WasmPhase = NonNullable<WasmPlugin['phase']>;

/** What a plugin looks at: requests, or the bytes of connections. */
export type WasmLevel = 'HTTP' | 'NETWORK';

export function levelOf({ type }: WasmPlugin): WasmLevel {
  return type === 'NETWORK' ? 'NETWORK' : 'HTTP';
}

/**
 * Name of a plugin's configuration, by which proxies ask for it: `namespace.name`. Namespaces have no dots, so it can be
 * read back.
 */
export function extensionName({ namespace, name }: Pick<Config, 'namespace' | 'name'>): string {
  return `${namespace}.${name}`;
}

/** Higher priorities first; among equal ones the mesh's, then the older. */
export function pluginsOf(
  context: ConnectionContext,
  level: WasmLevel,
  phase: WasmPhase,
): readonly Config<WasmPlugin>[] {
  const { wasmPlugins } = context.policies;
  if (wasmPlugins.length === 0) return wasmPlugins;
  const side = sideOf(context.direction);
  return wasmPlugins
    .filter(({ spec }) => levelOf(spec) === level && (spec.phase ?? 'UNSPECIFIED_PHASE') === phase)
    .filter(({ spec }) => isMatched(spec.match ?? [], side, context.port))
    .toSorted((a, b) => (b.spec.priority ?? 0) - (a.spec.priority ?? 0));
}

/** A chain for whatever port may meet any of the ports. */
function isMatched(matches: readonly WasmMatch[], side: Side, port: number): boolean {
  if (matches.length === 0) return true;
  return matches.some(({ mode = 'UNDEFINED', ports = [] }) => {
    const onSide = mode === 'UNDEFINED' || mode === 'CLIENT_AND_SERVER' || mode === side;
    return onSide && (ports.length === 0 || port === 0 || ports.some(({ number }) => number === port));
  });
}
