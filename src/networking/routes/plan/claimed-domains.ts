/** Assigns each domain to the first virtual host that requests it. */
import { memoizeByObject } from '../../../model/collections/memoize-by-object.ts';
import { compareText } from '../../../model/config/config.ts';
import { type PartBlock, sharedBlock, sharedList, splitIntoBlocks } from '../../messages/part-block.ts';
import { type DomainAssignment, differingIndexes, type PlannedHosts, virtualHostsField } from './planned-routes.ts';
import { type CachedVirtualHost, withDomains } from './sidecar-virtual-hosts.ts';
import type { VirtualHostPart } from './virtual-host-part.ts';

/**
 * Reuses the previous assignment if the changed hosts request only domains that they had or that are free. Returns `undefined` if all domains must be
 * assigned again.
 */
export function reassignDomains(
  previous: DomainAssignment,
  previousHosts: readonly CachedVirtualHost[],
  { hosts, changedPlaces }: PlannedHosts,
): DomainAssignment | undefined {
  if (previousHosts.length !== hosts.length) return undefined;
  const hostIndexes = changedPlaces ?? differingIndexes(previousHosts, hosts);
  if (!hostIndexes.every((hostIndex) => areNamesEqual(previousHosts[hostIndex]!, hosts[hostIndex]!))) return undefined;
  const movedIndexes = hostIndexes.filter(
    (hostIndex) => previousHosts[hostIndex]!.domains.text !== hosts[hostIndex]!.domains.text,
  );
  if (movedIndexes.length > 0 && !(previous.isConflictFree && areDomainsFree(movedIndexes, previousHosts, hosts)))
    return undefined;
  const hostParts = previous.parts.slice();
  const changedBlocks = new ChangedBlocks(previous.blocks);
  for (const hostIndex of hostIndexes) {
    const previousPart = hostParts[hostIndex];
    if (previousPart === undefined) continue;
    const host = hosts[hostIndex]!;
    const nextPart =
      previousPart === previousHosts[hostIndex]!.hostPart ? host.hostPart : withDomains(host, previousPart.domains);
    hostParts[hostIndex] = nextPart;
    changedBlocks.set(previous.sortedPlaces[hostIndex]!, nextPart);
  }
  return { ...previous, parts: hostParts, blocks: changedBlocks.blocks() };
}

function areNamesEqual(previousHosts: CachedVirtualHost, host: CachedVirtualHost): boolean {
  return previousHosts.name === host.name;
}

const ownersOf = memoizeByObject((hosts: readonly CachedVirtualHost[]): ReadonlyMap<string, number> => {
  const owners = new Map<string, number>();
  for (const [hostIndex, { domains }] of hosts.entries())
    for (const domain of domains.domainNames) owners.set(domain, hostIndex);
  return owners;
});

/** Whether no unchanged host has one of the domains. Returns `false` if a catch-all is involved. */
function areDomainsFree(
  movedIndexes: readonly number[],
  previousHosts: readonly CachedVirtualHost[],
  hosts: readonly CachedVirtualHost[],
): boolean {
  const owners = ownersOf(previousHosts);
  const movedIndexSet = new Set(movedIndexes);
  const claimedDomains = new Set<string>();
  return movedIndexes.every((hostIndex) => {
    const { domainNames } = hosts[hostIndex]!.domains;
    if (domainNames.includes('*') || previousHosts[hostIndex]!.domains.domainNames.includes('*')) return false;
    return domainNames.every((domain) => {
      const owner = owners.get(domain);
      if ((owner !== undefined && !movedIndexSet.has(owner)) || claimedDomains.has(domain)) return false;
      claimedDomains.add(domain);
      return true;
    });
  });
}

/** Replaces parts in blocks of virtual hosts by parts with the same names. */
class ChangedBlocks {
  readonly #previous: readonly PartBlock<VirtualHostPart>[];
  readonly #changedParts = new Map<number, VirtualHostPart[]>();

  constructor(previous: readonly PartBlock<VirtualHostPart>[]) {
    this.#previous = previous;
  }

  /** @param partIndex index of the part in the concatenated blocks */
  set(partIndex: number, hostPart: VirtualHostPart): void {
    let index = 0;
    let offset = partIndex;
    while (offset >= this.#previous[index]!.parts.length) offset -= this.#previous[index++]!.parts.length;
    const blockParts = this.#changedParts.get(index) ?? [...this.#previous[index]!.parts];
    blockParts[offset] = hostPart;
    this.#changedParts.set(index, blockParts);
  }

  blocks(): readonly PartBlock<VirtualHostPart>[] {
    const blocks = [...this.#previous];
    for (const [index, blockParts] of this.#changedParts) blocks[index] = sharedBlock(virtualHostsField, blockParts);
    return sharedList(blocks);
  }
}

const hostsPerStep = 256;

export function* assignDomainsInSteps(
  hosts: readonly CachedVirtualHost[],
  sortsByName: boolean,
): Generator<undefined, DomainAssignment> {
  const assignedDomains = new Set<string>();
  let hasCatchAll = false;
  let isConflictFree = true;
  const claim = (host: CachedVirtualHost): VirtualHostPart | undefined => {
    const requestedDomains = host.domains.domainNames;
    const unassignedDomains = requestedDomains.every((domain) => !assignedDomains.has(domain))
      ? requestedDomains
      : requestedDomains.filter((domain) => !assignedDomains.has(domain));
    isConflictFree &&= unassignedDomains === requestedDomains;
    if (unassignedDomains.length === 0) return undefined;
    for (const domain of unassignedDomains) assignedDomains.add(domain);
    hasCatchAll ||= unassignedDomains.includes('*');
    return unassignedDomains === requestedDomains ? host.hostPart : withDomains(host, unassignedDomains);
  };
  const claimedParts: (VirtualHostPart | undefined)[] = [];
  for (const [hostIndex, host] of hosts.entries()) {
    claimedParts.push(claim(host));
    if (hostIndex % hostsPerStep === hostsPerStep - 1) yield undefined;
  }
  const partIndexes = [...claimedParts.keys()].filter((partIndex) => claimedParts[partIndex] !== undefined);
  if (sortsByName) partIndexes.sort((a, b) => compareText(claimedParts[a]!.name, claimedParts[b]!.name));
  const sortedIndexes = new Int32Array(claimedParts.length);
  for (const [sortedIndex, partIndex] of partIndexes.entries()) sortedIndexes[partIndex] = sortedIndex;
  yield undefined;
  const blocks = sharedList(
    splitIntoBlocks(
      virtualHostsField,
      partIndexes.map((partIndex) => claimedParts[partIndex]!),
    ),
  );
  return { parts: claimedParts, sortedPlaces: sortedIndexes, blocks, hasCatchAll, isConflictFree };
}
