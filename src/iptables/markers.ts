/**
 * Empty chains record rules that other programs might also create. With these markers, `istio-clean-iptables` removes only its own rules and does not
 * need their original flags.
 */
import type { Interception } from './interception.ts';
import type { SavedChain } from './saved-rules.ts';

const excludedPrefix = 'ISTIO_NIC_';
const virtualMachinePrefix = 'ISTIO_VM_';
const dropInvalidChain = 'ISTIO_DROP_INVALID';

/** No name, port or mark identifies these rules. */
export interface MarkedRules {
  readonly excludedInterfaces: readonly string[];
  readonly kubevirtInterfaces: readonly string[];
  readonly dropInvalid: boolean;
}

/** The kernel limits chain names to 28 characters, interface names to 15. */
export function buildMarkers({
  excludeInterfaces,
  kubevirtInterfaces,
  dropInvalid,
  generation,
}: Interception): string[] {
  return [
    ...new Set([
      ...excludeInterfaces.map((name) => `${excludedPrefix}${name}`),
      ...kubevirtInterfaces.map((name) => `${virtualMachinePrefix}${name}`),
      ...(dropInvalid && generation === 'g3' ? [dropInvalidChain] : []),
    ]),
  ];
}

export function isMarkerChain(chain: string): boolean {
  return chain === dropInvalidChain || chain.startsWith(excludedPrefix) || chain.startsWith(virtualMachinePrefix);
}

export function parseMarkers(chains: readonly SavedChain[]): MarkedRules {
  const names = chains.map(({ chain }) => chain);
  const withPrefix = (prefix: string): string[] =>
    names.filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length));
  return {
    excludedInterfaces: withPrefix(excludedPrefix),
    kubevirtInterfaces: withPrefix(virtualMachinePrefix),
    dropInvalid: names.includes(dropInvalidChain),
  };
}
