import { sameItems } from '../collections/same-items.ts';
import type { Config } from '../config/config.ts';
import type { MutualTlsMode, PeerAuthentication } from '../kinds/policies/peer-authentication.ts';

/** STRICT: mutual TLS only; PERMISSIVE: also plaintext; DISABLE: plaintext only. */
export type PeerMode = Exclude<MutualTlsMode, 'UNSET'>;

export interface PeerModes {
  readonly mode: PeerMode;
  /** Modes by workload port; other ports have {@link mode}. */
  readonly ports: ReadonlyMap<number, PeerMode>;
}

const defaultModes: PeerModes = { mode: 'PERMISSIVE', ports: new Map() };

const cachedModes = new WeakMap<Config, { layers: readonly Config[]; modes: PeerModes }[]>();

/**
 * Returns the same object for identical layers.
 * @param layers policies of the mesh, the namespace and the workload: the last one that sets a mode applies. Only a policy with a selector can set
 * modes of ports.
 */
export function peerModes(layers: readonly Config<PeerAuthentication>[]): PeerModes {
  const lastLayer = layers.at(-1);
  if (lastLayer === undefined) return defaultModes;
  const cachedList = cachedModes.get(lastLayer) ?? [];
  const sameLayers = cachedList.find((cachedMode) => sameItems(cachedMode.layers, layers));
  if (sameLayers !== undefined) return sameLayers.modes;
  const modes = mergeLayers(layers);
  // Caches only the last few results, because a policy may be combined with different wider policies.
  cachedModes.set(lastLayer, [{ layers, modes }, ...cachedList.slice(0, 7)]);
  return modes;
}

export function peerModeOf({ mode, ports }: PeerModes, port: number): PeerMode {
  return ports.get(port) ?? mode;
}

export function disablesAnyMutualTls({ spec }: Config<PeerAuthentication>): boolean {
  return spec.mtls === 'DISABLE' || Object.values(spec.portLevelMtls ?? {}).includes('DISABLE');
}

function mergeLayers(layers: readonly Config<PeerAuthentication>[]): PeerModes {
  const mode = layers.reduce<PeerMode>((widerMode, { spec }) => inheritedMode(spec.mtls, widerMode), defaultModes.mode);
  const portModes = Object.entries(layers.at(-1)?.spec.portLevelMtls ?? {});
  return { mode, ports: new Map(portModes.map(([port, portMode]) => [Number(port), inheritedMode(portMode, mode)])) };
}

function inheritedMode(portMode: MutualTlsMode | undefined, widerMode: PeerMode): PeerMode {
  return portMode === undefined || portMode === 'UNSET' ? widerMode : portMode;
}
