import type { Config } from '../../model/config/config.ts';
import type { WasmMatch, WasmPlugin } from '../../model/kinds/extensions/wasm-plugin.ts';
import type { ConnectionContext } from '../inputs/connection-context.ts';
import { sideOf, type TelemetrySide } from '../telemetry/mode.ts';

export type WasmPhase = NonNullable<WasmPlugin['phase']>;

export type WasmLevel = 'HTTP' | 'NETWORK';

export function levelOf({ type }: WasmPlugin): WasmLevel {
  return type === 'NETWORK' ? 'NETWORK' : 'HTTP';
}

/** ECDS name `NAMESPACE.NAME`. Namespaces contain no dots, so the name can be parsed. */
export function extensionName({ namespace, name }: Pick<Config, 'namespace' | 'name'>): string {
  return `${namespace}.${name}`;
}

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
    .filter(({ spec }) => matchesAnyOf(spec.match ?? [], side, context.port))
    .toSorted((a, b) => (b.spec.priority ?? 0) - (a.spec.priority ?? 0));
}

/** With port 0, the filter chain is for any port, so every port condition matches. */
function matchesAnyOf(matches: readonly WasmMatch[], side: TelemetrySide, port: number): boolean {
  if (matches.length === 0) return true;
  return matches.some(({ mode = 'UNDEFINED', ports = [] }) => {
    const matchesSide = mode === 'UNDEFINED' || mode === 'CLIENT_AND_SERVER' || mode === side;
    return matchesSide && (ports.length === 0 || port === 0 || ports.some(({ number }) => number === port));
  });
}
