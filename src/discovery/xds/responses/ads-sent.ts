/**
 * What a stream was sent of one type, and what of a new set it should be sent. The tables hold references to the
 * source's own maps wherever they can: for a thousand streams with the same three thousand resources there is one map.
 *
 * What is sent follows from what was sent, what there is now, and the order; streams that agree in these (by identity:
 * maps of the source, lists of names that are shared) are all sent the same selection, worked out once.
 */
import type { ResponseOrder } from '../../../../machines/discovery/xds/ads-protocol.ts';
import { isByName } from '../../../../machines/discovery/xds/ads-types.ts';
import type { KnownResources } from '../../../../machines/discovery/xds/watch-record.ts';
import { onceFor } from '../../../model/collections/once-for.ts';
import { WeakValues } from '../../../model/collections/weak-values.ts';
import type { EncodedResource, ResourceSet } from '../resource-source.ts';
import { versionOf } from './encoding.ts';
import { LayeredResources } from './layered-resources.ts';

type ResourceMap = ReadonlyMap<string, EncodedResource>;

/** What one response carries. */
export interface Selection {
  /** The whole set, or some of it. Equal selections are one object. */
  readonly resources: ResourceMap | readonly EncodedResource[];
  /** Names of resources that the client should drop (delta). */
  readonly removed: readonly string[];
  /** Names that are new to the client or not what it had; `'all'` when everything was sent whatever the client had. */
  readonly changed: Names;
  /** Names that the client was not sent before. */
  readonly added: readonly string[];
}

type Names = readonly string[] | 'all';

/** What a stream was sent. */
interface Sent {
  readonly resources: ResourceMap;
  /** Names whose sending does not count any more. */
  readonly forgotten: Names;
}

interface Outcome {
  /** Undefined when there is nothing to send. */
  readonly selection: Selection | undefined;
  readonly sent: Sent;
}

/** An outcome, and what led to it beside the two maps. */
interface WorkedOut extends Outcome {
  readonly forgotten: Names;
  readonly order: ResponseOrder;
  readonly delta: boolean;
}

export interface Difference {
  /** Names that are in the new map, and not, or with other content, in the old one. */
  readonly changed: readonly string[];
  /** Of these, names that are not in the old map. */
  readonly added: readonly string[];
  /** Names that are in the old map only. */
  readonly removed: readonly string[];
}

const noNames: readonly string[] = [];
const noResources: ResourceMap = new Map();

export class SentResources {
  readonly #delta: boolean;
  #sent: Sent = { resources: noResources, forgotten: noNames };
  /** Held for the streams that come to it next. */
  #last: Outcome | undefined;

  constructor(delta: boolean) {
    this.#delta = delta;
  }

  /** How many resources the client has. */
  get count(): number {
    return this.#sent.resources.size;
  }

  /** What the client has, if it has taken all that it was sent. */
  get resources(): ResourceMap {
    return this.#sent.resources;
  }

  get(name: string): EncodedResource | undefined {
    return this.#sent.resources.get(name);
  }

  has(name: string): boolean {
    return this.#sent.resources.has(name);
  }

  /** Whether resources are to be sent again that are as they were. */
  get hasForgotten(): boolean {
    return this.#sent.forgotten.length > 0;
  }

  /** How the resources of a set differ from what was sent; worked out once for all streams that were sent the same. */
  differenceTo(next: ResourceMap): Difference {
    return stepOf(this.#sent.resources, next).difference;
  }

  /** The next order for changes sends these again. */
  forget(names: Names): void {
    this.#sent = { resources: this.#sent.resources, forgotten: joined(this.#sent.forgotten, names) };
  }

  /** The client has these from another stream: they count as sent. */
  adopt(resources: readonly EncodedResource[]): void {
    this.#sent = { ...this.#sent, resources: LayeredResources.shared(this.#sent.resources, resources, []) };
  }

  /**
   * What to send now, taken as sent; undefined when there is nothing.
   *
   * A subscription is answered even when nothing that was asked for exists: with an empty list (§7.3), in delta with the
   * names as removed.
   */
  take(order: ResponseOrder, set: ResourceSet): Selection | undefined {
    this.#last =
      order.has === undefined
        ? outcomeOf(this.#sent, order, set.resources, this.#delta)
        : resumed(this.#sent, order, order.has, set.resources);
    this.#sent = this.#last.sent;
    return this.#last.selection;
  }
}

function joined(names: Names, more: Names): Names {
  if (names === 'all' || more === 'all') return 'all';
  if (names.length === 0) return more;
  return more.length === 0 ? names : [...new Set([...names, ...more])];
}

// ---- of a client that comes back

/**
 * What a client lacks of what it has from another stream, of this server or another one: what a version stands for is the same
 * for all of them. Compared for each by itself, for what a client says is not worth keeping; those that lack the same are sent
 * the same collection.
 */
function resumed({ forgotten }: Sent, order: ResponseOrder, has: KnownResources, next: ResourceMap): Outcome {
  const versions = new Map(has.names.map((name, i) => [name, has.versions[i]]));
  if (forgotten === 'all') versions.clear();
  else for (const name of forgotten) versions.delete(name);
  const lacking: EncodedResource[] = [];
  for (const resource of next.values()) {
    if (versions.get(resource.name) !== resource.version) lacking.push(resource);
  }
  const isAll = lacking.length === next.size;
  const gone = new Set(absent(order.names === '*' ? order.asked : order.names, next));
  const selection: Selection = {
    resources: isAll ? next : sharedPart(next, lacking),
    removed: [...gone].sort(),
    changed: isAll ? 'all' : lacking.map(({ name }) => name),
    added: lacking.map(({ name }) => name),
  };
  return { selection, sent: { resources: next, forgotten: noNames } };
}

const partsOf = onceFor((_: ResourceMap) => new WeakValues<readonly EncodedResource[]>());

/** Equal parts of a map are one object, as long as somebody holds it. */
function sharedPart(whole: ResourceMap, part: readonly EncodedResource[]): readonly EncodedResource[] {
  if (part.length <= 1) return part;
  const parts = partsOf(whole);
  const key = versionOf(part.map(({ name }) => name).join('\n'));
  const known = parts.get(key);
  if (known !== undefined) return known;
  parts.set(key, part);
  return part;
}

// ---- worked out once

/** What was worked out from one map to another. */
interface Step {
  readonly difference: Difference;
  /** Those that a stream holds, newest last: one that stands still for long must not keep all that came since. */
  readonly outcomes: WeakRef<WorkedOut>[];
}

/** Different orders that are remembered for one step from a map to another. */
const maxOutcomes = 16;
const steps = new WeakMap<ResourceMap, WeakMap<ResourceMap, Step>>();

function outcomeOf({ resources, forgotten }: Sent, order: ResponseOrder, next: ResourceMap, delta: boolean): Outcome {
  const { difference, outcomes } = stepOf(resources, next);
  for (const one of outcomes) {
    const known = one.deref();
    if (known === undefined || known.delta !== delta || known.forgotten !== forgotten) continue;
    if (isSameOrder(known.order, order)) return known;
  }
  const outcome: WorkedOut = {
    ...workOut({ resources, forgotten }, order, next, difference, delta),
    forgotten,
    order,
    delta,
  };
  if (outcomes.length === maxOutcomes) outcomes.shift();
  outcomes.push(new WeakRef(outcome));
  return outcome;
}

/** How one map differs from another; worked out once. */
export function differenceOf(before: ResourceMap, after: ResourceMap): Difference {
  return stepOf(before, after).difference;
}

function stepOf(before: ResourceMap, after: ResourceMap): Step {
  let known = steps.get(before);
  if (known === undefined) {
    known = new WeakMap();
    steps.set(before, known);
  }
  let step = known.get(after);
  if (step === undefined) {
    step = { difference: compare(before, after), outcomes: [] };
    known.set(after, step);
  }
  return step;
}

/** Lists are compared by identity: those that are equal but not the same are worked out again. */
function isSameOrder(one: ResponseOrder, other: ResponseOrder): boolean {
  return (
    one.names === other.names &&
    one.all === other.all &&
    one.changed === other.changed &&
    (one.asked === other.asked || one.asked.length + other.asked.length === 0) &&
    one.typeUrl === other.typeUrl
  );
}

function compare(before: ResourceMap, after: ResourceMap): Difference {
  const changed: string[] = [];
  const added: string[] = [];
  const removed: string[] = [];
  if (before === after) return { changed, added, removed };
  if (before instanceof LayeredResources || after instanceof LayeredResources) {
    const { difference } = stepOf(baseOf(before), baseOf(after));
    // Whatever differs is in the difference of what they are made from, or in what is another in one of them.
    for (const name of new Set([
      ...difference.changed,
      ...difference.removed,
      ...namesBeside(before),
      ...namesBeside(after),
    ])) {
      const [old, now] = [before.get(name), after.get(name)];
      if (now === undefined) {
        if (old !== undefined) removed.push(name);
      } else if (old !== now && old?.version !== now.version) {
        changed.push(name);
        if (old === undefined) added.push(name);
      }
    }
    return { changed, added, removed };
  }
  for (const [name, resource] of after) {
    const old = before.get(name);
    if (old === resource || old?.version === resource.version) continue;
    changed.push(name);
    if (old === undefined) added.push(name);
  }
  for (const name of before.keys()) if (!after.has(name)) removed.push(name);
  return { changed, added, removed };
}

function baseOf(resources: ResourceMap): ResourceMap {
  return resources instanceof LayeredResources ? resources.base : resources;
}

function namesBeside(resources: ResourceMap): readonly string[] {
  return resources instanceof LayeredResources ? [...resources.own.keys(), ...resources.without] : noNames;
}

// ---- what an order leads to

function workOut(
  before: Sent,
  order: ResponseOrder,
  next: ResourceMap,
  difference: Difference,
  delta: boolean,
): Outcome {
  if (order.all) return takeAll(order, next, difference, delta);
  // A state-of-the-world response of a type that is sent as a whole replaces what the client has.
  if (!delta && !isByName(order.typeUrl)) return takeWhole(before, order, next, difference);
  return takeSome(before, order, next, difference, delta);
}

function takeAll(order: ResponseOrder, next: ResourceMap, difference: Difference, delta: boolean): Outcome {
  const named = order.names === '*' ? order.asked : order.names;
  const gone = delta ? new Set([...absent(named, next), ...within(order.names, difference.removed)]) : noNames;
  const { added } = difference;
  const selection: Selection = { resources: next, removed: [...gone].sort(), changed: 'all', added };
  return { selection, sent: { resources: next, forgotten: noNames } };
}

function takeWhole(before: Sent, order: ResponseOrder, next: ResourceMap, difference: Difference): Outcome {
  const isNews = difference.changed.length > 0 || within(order.names, difference.removed).length > 0;
  // What differs without being news is nothing that the client wants: the new map says as well what it has.
  if (!isNews && order.asked.length === 0) return { selection: undefined, sent: { ...before, resources: next } };
  const { changed, added } = difference;
  const selection: Selection = { resources: next, removed: [], changed, added };
  return { selection, sent: { resources: next, forgotten: noNames } };
}

function takeSome(
  before: Sent,
  order: ResponseOrder,
  next: ResourceMap,
  difference: Difference,
  delta: boolean,
): Outcome {
  const names = new Set(order.asked);
  const gone = new Set(absent(order.asked, next));
  if (order.changed) {
    for (const name of difference.changed) names.add(name);
    for (const name of before.forgotten === 'all' ? next.keys() : before.forgotten) names.add(name);
    for (const name of within(order.names, difference.removed)) gone.add(name);
  }
  const chosen = [...names].flatMap((name) => next.get(name) ?? []);
  const removed = delta ? [...gone].sort() : [];
  const sent = order.changed
    ? { resources: next, forgotten: noNames }
    : withSome(before, order.asked, next, difference);
  if (chosen.length === 0 && removed.length === 0 && order.asked.length === 0) return { selection: undefined, sent };
  // All of it is joined once for whoever gets all of it, for whatever reason.
  const resources = chosen.length === next.size ? next : chosen;
  const { added } = difference;
  return { selection: { resources, removed, changed: chosen.map(({ name }) => name), added }, sent };
}

/** Only what was asked for went out: of all else the client still has what it had. */
function withSome(before: Sent, names: readonly string[], next: ResourceMap, difference: Difference): Sent {
  const asked = new Set(names);
  const { forgotten } = before;
  const left =
    forgotten === 'all' || !forgotten.some((name) => asked.has(name))
      ? forgotten
      : forgotten.filter((name) => !asked.has(name));
  if (difference.removed.length === 0 && difference.changed.every((name) => asked.has(name))) {
    return { resources: next, forgotten: left };
  }
  const resources = new Map(before.resources);
  for (const name of names) {
    const resource = next.get(name);
    if (resource === undefined) resources.delete(name);
    else resources.set(name, resource);
  }
  return { resources, forgotten: left };
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
