/** Which lists there are of a context: what each shape has of a type, or of it under some names. */
import type { WeakValues } from '../../../model/collections/weak-values.ts';
import type { ProxyShape } from '../../../model/proxy/proxy-shape.ts';
import type { ListMaking, ResourceMap } from './list-making.ts';
import type { MakingAhead } from './making-ahead.ts';
import type { NameList } from './name-list.ts';
import type { WholeListMaking } from './whole-list-making.ts';

/** What one shape has of a type (or of it under some names) in one context, or in all contexts that share the set. */
export interface ResourceSet {
  readonly typeUrl: string;
  /** Held by the proxies that have it: a set whose proxies are all gone is not carried over. */
  readonly shape: WeakRef<ProxyShape>;
  readonly names: WeakRef<NameList> | undefined;
  list: ResourceMap | undefined;
  /** The list of an earlier context, and that context's number in the history. */
  readonly base: ResourceMap | undefined;
  readonly baseOf: number;
  /** A context since then has changed what is in reach of the shape. */
  readonly reachChanged: boolean;
}

export interface ResourceSets {
  readonly byKey: Map<string, ResourceSet>;
  /** Number of sets at which those are swept out whose proxies are gone or want something else. */
  sweepAt: number;
  /** The list that was made last, by type and shape: a client that asks for a name more has the others. */
  readonly lists: WeakValues<ResourceMap>;
  /** Little of the previous context was taken over: building a whole list would block the event loop. */
  readonly makesAhead: boolean;
  /** What is made ahead of the first lists, by type and what of a proxy it depends on. */
  readonly ahead: Map<string, MakingAhead>;
  /** Lists that are being made, as long as somebody waits for them. */
  readonly makings: WeakValues<ListMaking>;
  readonly wholeMakings: WeakValues<WholeListMaking>;
}

/** Sets that are too few to be worth a look at which of them are of no use. */
export const fewSets = 1_000;

/**
 * Contexts for which a list stays a base that nobody asked for: its proxies are slow, or on their way out, and a base is
 * little help when much has changed since.
 */
const longestLag = 256;

/** Whether somebody may still want what the set has. */
export function isInUse({ shape, names }: ResourceSet): boolean {
  return shape.deref() !== undefined && (names === undefined || names.deref() !== undefined);
}

/** Clients that want something else again and again leave sets behind, however long it is until the next context. */
export function keep(sets: ResourceSets, key: string, set: ResourceSet): void {
  const { byKey } = sets;
  if (byKey.size >= sets.sweepAt) {
    for (const [other, unused] of byKey) if (!isInUse(unused)) byKey.delete(other);
    sets.sweepAt = Math.max(fewSets, 2 * byKey.size);
  }
  byKey.set(key, set);
}

/** A set for the context after the one of this number, from whose list (or base) the list there will be made. */
export function outdated(set: ResourceSet, number: number, reachChanges: () => boolean): ResourceSet | undefined {
  const isNamed = set.names !== undefined;
  if (set.list !== undefined) {
    return { ...set, list: undefined, base: set.list, baseOf: number, reachChanged: isNamed && reachChanges() };
  }
  if (set.base === undefined || number - set.baseOf >= longestLag) return undefined;
  return { ...set, reachChanged: set.reachChanged || (isNamed && reachChanges()) };
}
