/** Domains of virtual hosts: the first to claim a domain has it. */
import { onceFor } from '../../../model/collections/once-for.ts';
import { compareText } from '../../../model/config/config.ts';
import { inBlocks, type PartBlock, sharedBlock, sharedList } from '../../messages/part-block.ts';
import { type Claimed, differingPlaces, type Made, virtualHostsField } from './planned-routes.ts';
import { type MadeVirtualHost, withDomains } from './sidecar-virtual-hosts.ts';
import type { VirtualHostPart } from './virtual-host-part.ts';

/** When all claim what those before them did, or nobody else's, each has what it wants; undefined: it takes a look at all. */
export function claimedAgain(
  before: Claimed,
  was: readonly MadeVirtualHost[],
  { hosts, changed }: Made,
): Claimed | undefined {
  if (was.length !== hosts.length) return undefined;
  const places = changed ?? differingPlaces(was, hosts);
  if (!places.every((place) => isInPlaceOf(was[place]!, hosts[place]!))) return undefined;
  const moved = places.filter((place) => was[place]!.domains.text !== hosts[place]!.domains.text);
  if (moved.length > 0 && !(before.allHaveTheirs && areFree(moved, was, hosts))) return undefined;
  const parts = before.parts.slice();
  const byBlock = new ChangedBlocks(before.blocks);
  for (const place of places) {
    const old = parts[place];
    if (old === undefined) continue;
    const host = hosts[place]!;
    const part = old === was[place]!.part ? host.part : withDomains(host, old.domains);
    parts[place] = part;
    byBlock.set(before.sorted[place]!, part);
  }
  return { ...before, parts, blocks: byBlock.blocks() };
}

function isInPlaceOf(was: MadeVirtualHost, host: MadeVirtualHost): boolean {
  return was.name === host.name;
}

/** Which host has which domain, where no two want one. */
const ownersOf = onceFor((hosts: readonly MadeVirtualHost[]): ReadonlyMap<string, number> => {
  const owners = new Map<string, number>();
  for (const [place, { domains }] of hosts.entries()) for (const domain of domains.all) owners.set(domain, place);
  return owners;
});

/** Whether the domains that these hosts want now are nobody else's; who takes all is for all to say. */
function areFree(
  moved: readonly number[],
  was: readonly MadeVirtualHost[],
  hosts: readonly MadeVirtualHost[],
): boolean {
  const owners = ownersOf(was);
  const givers = new Set(moved);
  const taken = new Set<string>();
  return moved.every((place) => {
    const { all } = hosts[place]!.domains;
    if (all.includes('*') || was[place]!.domains.all.includes('*')) return false;
    return all.every((domain) => {
      const owner = owners.get(domain);
      if ((owner !== undefined && !givers.has(owner)) || taken.has(domain)) return false;
      taken.add(domain);
      return true;
    });
  });
}

/** Blocks of which some parts come to be others of the same names: those blocks alone are put together again. */
class ChangedBlocks {
  readonly #before: readonly PartBlock<VirtualHostPart>[];
  readonly #changed = new Map<number, VirtualHostPart[]>();

  constructor(before: readonly PartBlock<VirtualHostPart>[]) {
    this.#before = before;
  }

  /** @param place among the parts of all blocks */
  set(place: number, part: VirtualHostPart): void {
    let index = 0;
    let offset = place;
    while (offset >= this.#before[index]!.parts.length) offset -= this.#before[index++]!.parts.length;
    const parts = this.#changed.get(index) ?? [...this.#before[index]!.parts];
    parts[offset] = part;
    this.#changed.set(index, parts);
  }

  blocks(): readonly PartBlock<VirtualHostPart>[] {
    const blocks = [...this.#before];
    for (const [index, parts] of this.#changed) blocks[index] = sharedBlock(virtualHostsField, parts);
    return sharedList(blocks);
  }
}

/** Hosts that claim their domains at a time. */
const claimsAtATime = 256;

export function* claiming(hosts: readonly MadeVirtualHost[], sorts: boolean): Generator<undefined, Claimed> {
  const claimed = new Set<string>();
  let takesAll = false;
  let allHaveTheirs = true;
  const claim = (host: MadeVirtualHost): VirtualHostPart | undefined => {
    const wanted = host.domains.all;
    const free = wanted.every((domain) => !claimed.has(domain))
      ? wanted
      : wanted.filter((domain) => !claimed.has(domain));
    allHaveTheirs &&= free === wanted;
    if (free.length === 0) return undefined;
    for (const domain of free) claimed.add(domain);
    takesAll ||= free.includes('*');
    return free === wanted ? host.part : withDomains(host, free);
  };
  const parts: (VirtualHostPart | undefined)[] = [];
  for (const [place, host] of hosts.entries()) {
    parts.push(claim(host));
    if (place % claimsAtATime === claimsAtATime - 1) yield undefined;
  }
  const places = [...parts.keys()].filter((place) => parts[place] !== undefined);
  if (sorts) places.sort((a, b) => compareText(parts[a]!.name, parts[b]!.name));
  const sorted = new Int32Array(parts.length);
  for (const [at, place] of places.entries()) sorted[place] = at;
  yield undefined;
  const blocks = sharedList(
    inBlocks(
      virtualHostsField,
      places.map((place) => parts[place]!),
    ),
  );
  return { parts, sorted, blocks, takesAll, allHaveTheirs };
}
