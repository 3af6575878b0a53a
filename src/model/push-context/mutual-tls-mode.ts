/** What connections a workload takes, as its PeerAuthentication objects say (spec/discovery.md §8.10). */

import { sameItems } from '../collections/same-items.ts';
import type { Config } from '../config/config.ts';
import type { MutualTlsMode, PeerAuthentication } from '../kinds/policies/peer-authentication.ts';

/** Mutual TLS alone, both, or plaintext alone. */
export type PeerMode = Exclude<MutualTlsMode, 'UNSET'>;

export interface PeerModes {
  readonly mode: PeerMode;
  /** Modes by port of the workload; ports that no object names have {@link mode}. */
  readonly ports: ReadonlyMap<number, PeerMode>;
}

const byDefault: PeerModes = { mode: 'PERMISSIVE', ports: new Map() };

const known = new WeakMap<Config, { layers: readonly Config[]; modes: PeerModes }[]>();

/**
 * The same object for the very same layers.
 *
 * @param layers the mesh's, the namespace's, the workload's, those that there are: the last one that says something
 *   holds. Only one that selects workloads may name ports.
 */
export function peerModes(layers: readonly Config<PeerAuthentication>[]): PeerModes {
  const last = layers.at(-1);
  if (last === undefined) return byDefault;
  const answers = known.get(last) ?? [];
  const same = answers.find((one) => sameItems(one.layers, layers));
  if (same !== undefined) return same.modes;
  const modes = merge(layers);
  // An object is in as many answers as there were objects above it: a few, of which old ones go.
  known.set(last, [{ layers, modes }, ...answers.slice(0, 7)]);
  return modes;
}

/** The mode of one port of the workload. */
export function peerModeOf({ mode, ports }: PeerModes, port: number): PeerMode {
  return ports.get(port) ?? mode;
}

/** Whether an object switches mutual TLS off, for any workload or any of its ports. */
export function disables({ spec }: Config<PeerAuthentication>): boolean {
  return spec.mtls === 'DISABLE' || Object.values(spec.portLevelMtls ?? {}).includes('DISABLE');
}

function merge(layers: readonly Config<PeerAuthentication>[]): PeerModes {
  const mode = layers.reduce<PeerMode>((wider, { spec }) => inherited(spec.mtls, wider), byDefault.mode);
  const ofPorts = Object.entries(layers.at(-1)?.spec.portLevelMtls ?? {});
  return { mode, ports: new Map(ofPorts.map(([port, own]) => [Number(port), inherited(own, mode)])) };
}

function inherited(own: MutualTlsMode | undefined, wider: PeerMode): PeerMode {
  return own === undefined || own === 'UNSET' ? wider : own;
}
