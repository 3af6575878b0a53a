/** Assigns each domain to the first virtual host that requests it. */
import { memoizeByObject } from '../../../model/collections/memoize-by-object.ts';
import { compareText } from '../../../model/config/config.ts';
import { type PartBlock, sharedBlock, sharedList, splitIntoBlocks } from '../../messages/part-block.ts';
import { type DomainAssignment, differingPlaces, type PlannedHosts, virtualHostsField } from './planned-routes.ts';
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
  const places = changedPlaces ?? differingPlaces(previousHosts, hosts);
  if (!places.every((place) => hasSameName(previousHosts[place]!, hosts[place]!))) return undefined;
  const moved = places.filter((place) => previousHosts[place]!.domains.text !== hosts[place]!.domains.text);
  if (moved.length > 0 && !(previous.isConflictFree && areFree(moved, previousHosts, hosts))) return undefined;
  const parts = previous.parts.slice();
  const byBlock = new ChangedBlocks(previous.blocks);
  for (const place of places) {
    const old = parts[place];
    if (old === undefined) continue;
    const host = hosts[place]!;
    const part = old === previousHosts[place]!.part ? host.part : withDomains(host, old.domains);
    parts[place] = part;
    byBlock.set(previous.sortedPlaces[place]!, part);
  }
  return { ...previous, parts, blocks: byBlock.blocks() };
}

function hasSameName(previousHosts: CachedVirtualHost, host: CachedVirtualHost): boolean {
  return previousHosts.name === host.name;
}

/** Host index by domain, for a list without conflicts. */
const ownersOf = memoizeByObject((hosts: readonly CachedVirtualHost[]): ReadonlyMap<string, number> => {
  const owners = new Map<string, number>();
  for (const [place, { domains }] of hosts.entries()) for (const domain of domains.all) owners.set(domain, place);
  return owners;
});

/** Whether no unchanged host has one of the domains. Returns `false` if a catch-all is involved. */
function areFree(
  moved: readonly number[],
  previousHosts: readonly CachedVirtualHost[],
  hosts: readonly CachedVirtualHost[],
): boolean {
  const owners = ownersOf(previousHosts);
  const movedSet = new Set(moved);
  const taken = new Set<string>();
  return moved.every((place) => {
    const { all } = hosts[place]!.domains;
    if (all.includes('*') || previousHosts[place]!.domains.all.includes('*')) return false;
    return all.every((domain) => {
      const owner = owners.get(domain);
      if ((owner !== undefined && !movedSet.has(owner)) || taken.has(domain)) return false;
      taken.add(domain);
      return true;
    });
  });
}

/** Replaces parts in blocks of virtual hosts by parts with the same names. Only changed blocks are rebuilt. */
class ChangedBlocks {
  readonly #previous: readonly PartBlock<VirtualHostPart>[];
  readonly #changed = new Map<number, VirtualHostPart[]>();

  constructor(previous: readonly PartBlock<VirtualHostPart>[]) {
    this.#previous = previous;
  }

  /** @param place index of the part in the concatenated blocks */
  set(place: number, part: VirtualHostPart): void {
    let index = 0;
    let offset = place;
    while (offset >= this.#previous[index]!.parts.length) offset -= this.#previous[index++]!.parts.length;
    const parts = this.#changed.get(index) ?? [...this.#previous[index]!.parts];
    parts[offset] = part;
    this.#changed.set(index, parts);
  }

  blocks(): readonly PartBlock<VirtualHostPart>[] {
    const blocks = [...this.#previous];
    for (const [index, parts] of this.#changed) blocks[index] = sharedBlock(virtualHostsField, parts);
    return sharedList(blocks);
  }
}

const hostsPerStep = 256;

export function* assignDomainsInSteps(
  hosts: readonly CachedVirtualHost[],
  sortsByName: boolean,
): Generator<undefined, DomainAssignment> {
  const claimed = new Set<string>();
  let hasCatchAll = false;
  let isConflictFree = true;
  const claim = (host: CachedVirtualHost): VirtualHostPart | undefined => {
    const requested = host.domains.all;
    const free = requested.every((domain) => !claimed.has(domain))
      ? requested
      : requested.filter((domain) => !claimed.has(domain));
    isConflictFree &&= free === requested;
    if (free.length === 0) return undefined;
    for (const domain of free) claimed.add(domain);
    hasCatchAll ||= free.includes('*');
    return free === requested ? host.part : withDomains(host, free);
  };
  const parts: (VirtualHostPart | undefined)[] = [];
  for (const [place, host] of hosts.entries()) {
    parts.push(claim(host));
    if (place % hostsPerStep === hostsPerStep - 1) yield undefined;
  }
  const places = [...parts.keys()].filter((place) => parts[place] !== undefined);
  if (sortsByName) places.sort((a, b) => compareText(parts[a]!.name, parts[b]!.name));
  const sortedPlaces = new Int32Array(parts.length);
  for (const [at, place] of places.entries()) sortedPlaces[place] = at;
  yield undefined;
  const blocks = sharedList(
    splitIntoBlocks(
      virtualHostsField,
      places.map((place) => parts[place]!),
    ),
  );
  return { parts, sortedPlaces, blocks, hasCatchAll, isConflictFree };
}
