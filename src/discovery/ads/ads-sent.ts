/**
 * What a stream was sent of one type, and what of a new set it should be sent. The tables hold references to the
 * source's own maps wherever they can: for a thousand streams with the same three thousand resources there is one map.
 */
import type { ResponseOrder } from '../../../machines/discovery/ads-protocol.ts';
import { isByName } from '../../../machines/discovery/ads-types.ts';
import type { EncodedResource, ResourceSet } from './resource-source.ts';

type ResourceMap = ReadonlyMap<string, EncodedResource>;

/** What one response carries. */
export interface Selection {
  /** The whole set, or some of it. */
  readonly resources: ResourceMap | readonly EncodedResource[];
  /** Names of resources that the client should drop (delta). */
  readonly removed: readonly string[];
  /** Names that are new to the client or not what it had; `'all'` when everything was sent whatever the client had. */
  readonly changed: readonly string[] | 'all';
}

interface Difference {
  /** In the new map, and not or not so in the old one. */
  readonly changed: readonly string[];
  /** In the old map only. */
  readonly removed: readonly string[];
}

const nothing: ResourceMap = new Map();
const noDifference: Difference = { changed: [], removed: [] };
/** A push to many streams that were sent the same map and should have the same other one compares them once. */
const differences = new WeakMap<ResourceMap, WeakMap<ResourceMap, Difference>>();

export class SentResources {
  readonly #delta: boolean;
  #sent: ResourceMap = nothing;
  /** Names whose sending does not count any more. */
  #forgotten: Set<string> | 'all' = new Set();

  constructor(delta: boolean) {
    this.#delta = delta;
  }

  /** The next order for changes sends these again. */
  forget(names: readonly string[] | 'all'): void {
    if (names === 'all') this.#forgotten = 'all';
    else if (this.#forgotten !== 'all') for (const name of names) this.#forgotten.add(name);
  }

  /**
   * What to send now, taken as sent; undefined when there is nothing.
   *
   * A subscription is answered even when nothing that was asked for exists: with an empty list (§7.3), in delta with the
   * names as removed.
   */
  take(order: ResponseOrder, set: ResourceSet): Selection | undefined {
    const { resources } = set;
    const difference = differenceOf(this.#sent, resources);
    if (order.all) return this.#takeAll(order, resources, difference);
    // A state-of-the-world response of a type that is sent as a whole replaces what the client has.
    if (!this.#delta && !isByName(order.typeUrl)) return this.#takeWhole(order, resources, difference);
    return this.#takeSome(order, resources, difference);
  }

  #takeAll(order: ResponseOrder, resources: ResourceMap, difference: Difference): Selection {
    const named = order.names === '*' ? order.asked : order.names;
    const gone = new Set([...absent(named, resources), ...within(order.names, difference.removed)]);
    this.#remember(resources);
    return { resources, removed: this.#delta ? [...gone].sort() : [], changed: 'all' };
  }

  #takeWhole(order: ResponseOrder, resources: ResourceMap, difference: Difference): Selection | undefined {
    const isNews = difference.changed.length > 0 || within(order.names, difference.removed).length > 0;
    if (!isNews && order.asked.length === 0) return undefined;
    this.#remember(resources);
    return { resources, removed: [], changed: difference.changed };
  }

  #takeSome(order: ResponseOrder, resources: ResourceMap, difference: Difference): Selection | undefined {
    const names = new Set(order.asked);
    const gone = new Set(absent(order.asked, resources));
    if (order.changed) {
      for (const name of difference.changed) names.add(name);
      for (const name of this.#forgotten === 'all' ? resources.keys() : this.#forgotten) names.add(name);
      for (const name of within(order.names, difference.removed)) gone.add(name);
    }
    const chosen = [...names].flatMap((name) => resources.get(name) ?? []);
    const removed = this.#delta ? [...gone].sort() : [];
    const isAnswer = order.asked.length > 0;
    if (order.changed) this.#remember(resources);
    else this.#rememberSome(order.asked, resources, difference);
    if (chosen.length === 0 && removed.length === 0 && !isAnswer) return undefined;
    return { resources: chosen, removed, changed: chosen.map(({ name }) => name) };
  }

  #remember(resources: ResourceMap): void {
    this.#sent = resources;
    this.#forgotten = new Set();
  }

  /** Only what was asked for went out: of all else the client still has what it had. */
  #rememberSome(names: readonly string[], resources: ResourceMap, difference: Difference): void {
    if (this.#forgotten !== 'all') for (const name of names) this.#forgotten.delete(name);
    const asked = new Set(names);
    if (difference.removed.length === 0 && difference.changed.every((name) => asked.has(name))) {
      this.#sent = resources;
      return;
    }
    const sent = new Map(this.#sent);
    for (const name of names) {
      const resource = resources.get(name);
      if (resource === undefined) sent.delete(name);
      else sent.set(name, resource);
    }
    this.#sent = sent;
  }
}

/** The removed names that the client still wants to hear of: of what it unsubscribed from it wants to hear nothing. */
function within(subscribed: readonly string[] | '*', removed: readonly string[]): readonly string[] {
  if (subscribed === '*' || removed.length === 0) return removed;
  const wanted = new Set(subscribed);
  return removed.filter((name) => wanted.has(name));
}

function absent(names: readonly string[], resources: ResourceMap): string[] {
  return names.filter((name) => !resources.has(name));
}

function differenceOf(before: ResourceMap, after: ResourceMap): Difference {
  if (before === after) return noDifference;
  let known = differences.get(before);
  if (known === undefined) {
    known = new WeakMap();
    differences.set(before, known);
  }
  let difference = known.get(after);
  if (difference === undefined) {
    difference = compare(before, after);
    known.set(after, difference);
  }
  return difference;
}

function compare(before: ResourceMap, after: ResourceMap): Difference {
  const changed: string[] = [];
  for (const [name, resource] of after) {
    const old = before.get(name);
    if (old !== resource && old?.version !== resource.version) changed.push(name);
  }
  const removed: string[] = [];
  for (const name of before.keys()) if (!after.has(name)) removed.push(name);
  return { changed, removed };
}
