/**
 * Sent resources of one type on a stream, and the part of a new set that must be sent. References the source's maps where possible: a thousand
 * streams with the same three thousand resources share one map.
 *
 * The selection depends on the sent resources, the new map and the order. Streams with the same inputs (compared by identity) share a selection that
 * is computed once.
 */
import type { ResponseOrder } from '../../../../machines/discovery/xds/ads-protocol.ts';
import { isByName } from '../../../../machines/discovery/xds/ads-types.ts';
import type { KnownResources } from '../../../../machines/discovery/xds/watch-record.ts';
import { memoizeByObject } from '../../../model/collections/memoize-by-object.ts';
import { WeakValues } from '../../../model/collections/weak-values.ts';
import type { EncodedResource, ResourceSet } from '../resource-source.ts';
import { versionOf } from './encoding.ts';
import { LayeredResources } from './layered-resources.ts';

type ResourceMap = ReadonlyMap<string, EncodedResource>;

export interface ResponseSelection {
  /** The complete set or a part. Equal selections are the same object. */
  readonly resources: ResourceMap | readonly EncodedResource[];
  /** In delta responses, names that the client must remove. */
  readonly removed: readonly string[];
  /** New or changed names; `'all'` if everything is sent regardless of the client's state. */
  readonly changed: Names;
  /** Names that were not sent before. */
  readonly added: readonly string[];
}

type Names = readonly string[] | 'all';

interface Sent {
  readonly resources: ResourceMap;
  /** Names that must be sent again. */
  readonly forgotten: Names;
}

interface Outcome {
  /** `undefined` if there is nothing to send. */
  readonly selection: ResponseSelection | undefined;
  readonly sent: Sent;
}

/** An outcome and its inputs, without the two maps. */
interface CachedOutcome extends Outcome {
  readonly forgotten: Names;
  readonly order: ResponseOrder;
  readonly delta: boolean;
}

export interface ResourceDifference {
  /** New, or with another version in the new map. */
  readonly changed: readonly string[];
  /** Changed names that are not in the old map. */
  readonly added: readonly string[];
  /** Names that are only in the old map. */
  readonly removed: readonly string[];
}

const noNames: readonly string[] = [];
const noResources: ResourceMap = new Map();

export class SentResources {
  readonly #delta: boolean;
  #sent: Sent = { resources: noResources, forgotten: noNames };
  /** Keeps the outcome in memory for other streams. */
  #last: Outcome | undefined;

  constructor(delta: boolean) {
    this.#delta = delta;
  }

  get count(): number {
    return this.#sent.resources.size;
  }

  /** Resources of the client, if it accepted all responses. */
  get resources(): ResourceMap {
    return this.#sent.resources;
  }

  get(name: string): EncodedResource | undefined {
    return this.#sent.resources.get(name);
  }

  has(name: string): boolean {
    return this.#sent.resources.has(name);
  }

  /** Whether unchanged resources must be sent again. */
  get hasForgotten(): boolean {
    return this.#sent.forgotten.length > 0;
  }

  /** Computed once for all streams with the same maps. */
  differenceTo(next: ResourceMap): ResourceDifference {
    return stepOf(this.#sent.resources, next).difference;
  }

  /** Marks names that the next order for changes sends again. */
  forget(names: Names): void {
    this.#sent = { resources: this.#sent.resources, forgotten: joinNames(this.#sent.forgotten, names) };
  }

  /** Marks resources as sent that the client has from a previous stream. */
  adopt(resources: readonly EncodedResource[]): void {
    this.#sent = { ...this.#sent, resources: LayeredResources.shared(this.#sent.resources, resources, []) };
  }

  /**
   * Returns `undefined` if there is nothing to send.
   *
   * A subscription always gets a response, even if none of its resources exist: an empty list, or in delta the removed names.
   */
  take(order: ResponseOrder, set: ResourceSet): ResponseSelection | undefined {
    this.#last =
      order.has === undefined
        ? outcomeOf(this.#sent, order, set.resources, this.#delta)
        : resumeClient(this.#sent, order, order.has, set.resources);
    this.#sent = this.#last.sent;
    return this.#last.selection;
  }
}

function joinNames(names: Names, more: Names): Names {
  if (names === 'all' || more === 'all') return 'all';
  if (names.length === 0) return more;
  return more.length === 0 ? names : [...new Set([...names, ...more])];
}

// ---- returning clients

/**
 * Selects the resources that a returning client needs, compared with those of its previous stream, possibly to another server: a version identifies
 * the same content on all servers. Computed separately for each client, because caching its list is not worthwhile. Clients that need the same
 * resources share one collection.
 */
function resumeClient(
  { forgotten }: Sent,
  order: ResponseOrder,
  knownResources: KnownResources,
  next: ResourceMap,
): Outcome {
  const versions = new Map(knownResources.names.map((name, i) => [name, knownResources.versions[i]]));
  if (forgotten === 'all') versions.clear();
  else for (const name of forgotten) versions.delete(name);
  const outdatedResources: EncodedResource[] = [];
  for (const resource of next.values()) {
    if (versions.get(resource.name) !== resource.version) outdatedResources.push(resource);
  }
  const isAll = outdatedResources.length === next.size;
  const removedNames = new Set(absent(order.names === '*' ? order.requested : order.names, next));
  const selection: ResponseSelection = {
    resources: isAll ? next : sharedPart(next, outdatedResources),
    removed: [...removedNames].sort(),
    changed: isAll ? 'all' : outdatedResources.map(({ name }) => name),
    added: outdatedResources.map(({ name }) => name),
  };
  return { selection, sent: { resources: next, forgotten: noNames } };
}

const partsOf = memoizeByObject((_: ResourceMap) => new WeakValues<readonly EncodedResource[]>());

/** Returns the same object for equal parts of a map, while it is in use. */
function sharedPart(allResources: ResourceMap, partResources: readonly EncodedResource[]): readonly EncodedResource[] {
  if (partResources.length <= 1) return partResources;
  const cachedParts = partsOf(allResources);
  const key = versionOf(partResources.map(({ name }) => name).join('\n'));
  const cachedPart = cachedParts.get(key);
  if (cachedPart !== undefined) return cachedPart;
  cachedParts.set(key, partResources);
  return partResources;
}

// ---- cached results

/** Outcomes for a pair of maps. */
interface Step {
  readonly difference: ResourceDifference;
  /** Outcomes, newest last. Weak references, so that an idle stream does not keep later outcomes in memory. */
  readonly outcomes: WeakRef<CachedOutcome>[];
}

/** Maximum number of cached orders per pair of maps. */
const maxOutcomes = 16;
const steps = new WeakMap<ResourceMap, WeakMap<ResourceMap, Step>>();

function outcomeOf({ resources, forgotten }: Sent, order: ResponseOrder, next: ResourceMap, delta: boolean): Outcome {
  const { difference, outcomes } = stepOf(resources, next);
  for (const outcomeRef of outcomes) {
    const cachedOutcome = outcomeRef.deref();
    if (cachedOutcome === undefined || cachedOutcome.delta !== delta || cachedOutcome.forgotten !== forgotten) continue;
    if (isSameOrder(cachedOutcome.order, order)) return cachedOutcome;
  }
  const outcome: CachedOutcome = {
    ...computeOutcome({ resources, forgotten }, order, next, difference, delta),
    forgotten,
    order,
    delta,
  };
  if (outcomes.length === maxOutcomes) outcomes.shift();
  outcomes.push(new WeakRef(outcome));
  return outcome;
}

/** Difference between two maps, cached by pair. */
export function differenceOf(previous: ResourceMap, after: ResourceMap): ResourceDifference {
  return stepOf(previous, after).difference;
}

function stepOf(previous: ResourceMap, after: ResourceMap): Step {
  let nextOutcomes = steps.get(previous);
  if (nextOutcomes === undefined) {
    nextOutcomes = new WeakMap();
    steps.set(previous, nextOutcomes);
  }
  let step = nextOutcomes.get(after);
  if (step === undefined) {
    step = { difference: compare(previous, after), outcomes: [] };
    nextOutcomes.set(after, step);
  }
  return step;
}

/** Compares lists by identity. Equal but distinct lists are computed again. */
function isSameOrder(order: ResponseOrder, other: ResponseOrder): boolean {
  return (
    order.names === other.names &&
    order.all === other.all &&
    order.changed === other.changed &&
    (order.requested === other.requested || order.requested.length + other.requested.length === 0) &&
    order.typeUrl === other.typeUrl
  );
}

function compare(previous: ResourceMap, after: ResourceMap): ResourceDifference {
  const changedNames: string[] = [];
  const added: string[] = [];
  const removed: string[] = [];
  if (previous === after) return { changed: changedNames, added, removed };
  if (previous instanceof LayeredResources || after instanceof LayeredResources) {
    const { difference } = stepOf(baseOf(previous), baseOf(after));
    // Names can differ between the bases, or in the overrides of either map.
    for (const name of new Set([
      ...difference.changed,
      ...difference.removed,
      ...namesBeside(previous),
      ...namesBeside(after),
    ])) {
      const [previousResource, now] = [previous.get(name), after.get(name)];
      if (now === undefined) {
        if (previousResource !== undefined) removed.push(name);
      } else if (previousResource !== now && previousResource?.version !== now.version) {
        changedNames.push(name);
        if (previousResource === undefined) added.push(name);
      }
    }
    return { changed: changedNames, added, removed };
  }
  for (const [name, resource] of after) {
    const previousResource = previous.get(name);
    if (previousResource === resource || previousResource?.version === resource.version) continue;
    changedNames.push(name);
    if (previousResource === undefined) added.push(name);
  }
  for (const name of previous.keys()) if (!after.has(name)) removed.push(name);
  return { changed: changedNames, added, removed };
}

function baseOf(resources: ResourceMap): ResourceMap {
  return resources instanceof LayeredResources ? resources.base : resources;
}

function namesBeside(resources: ResourceMap): readonly string[] {
  return resources instanceof LayeredResources ? [...resources.overrides.keys(), ...resources.without] : noNames;
}

// ---- selection

function computeOutcome(
  previous: Sent,
  order: ResponseOrder,
  next: ResourceMap,
  difference: ResourceDifference,
  delta: boolean,
): Outcome {
  if (order.all) return takeAll(order, next, difference, delta);
  // A SotW response of a wildcard type replaces all resources of the client.
  if (!delta && !isByName(order.typeUrl)) return takeWhole(previous, order, next, difference);
  return takeSome(previous, order, next, difference, delta);
}

function takeAll(order: ResponseOrder, next: ResourceMap, difference: ResourceDifference, delta: boolean): Outcome {
  const orderedNames = order.names === '*' ? order.requested : order.names;
  const removedNames = delta
    ? new Set([...absent(orderedNames, next), ...within(order.names, difference.removed)])
    : noNames;
  const { added } = difference;
  const selection: ResponseSelection = { resources: next, removed: [...removedNames].sort(), changed: 'all', added };
  return { selection, sent: { resources: next, forgotten: noNames } };
}

function takeWhole(previous: Sent, order: ResponseOrder, next: ResourceMap, difference: ResourceDifference): Outcome {
  const isNews = difference.changed.length > 0 || within(order.names, difference.removed).length > 0;
  // The remaining differences do not affect the client, so the new map also describes its resources.
  if (!isNews && order.requested.length === 0) return { selection: undefined, sent: { ...previous, resources: next } };
  const { changed, added } = difference;
  const selection: ResponseSelection = { resources: next, removed: [], changed, added };
  return { selection, sent: { resources: next, forgotten: noNames } };
}

function takeSome(
  previous: Sent,
  order: ResponseOrder,
  next: ResourceMap,
  difference: ResourceDifference,
  delta: boolean,
): Outcome {
  const names = new Set(order.requested);
  const removedNames = new Set(absent(order.requested, next));
  if (order.changed) {
    for (const name of difference.changed) names.add(name);
    for (const name of previous.forgotten === 'all' ? next.keys() : previous.forgotten) names.add(name);
    for (const name of within(order.names, difference.removed)) removedNames.add(name);
  }
  const chosen = [...names].flatMap((name) => next.get(name) ?? []);
  const removed = delta ? [...removedNames].sort() : [];
  const sent = order.changed
    ? { resources: next, forgotten: noNames }
    : withSome(previous, order.requested, next, difference);
  if (chosen.length === 0 && removed.length === 0 && order.requested.length === 0)
    return { selection: undefined, sent };
  // If all are chosen, uses the complete map, so that its frames are joined once for all streams.
  const resources = chosen.length === next.size ? next : chosen;
  const { added } = difference;
  return { selection: { resources, removed, changed: chosen.map(({ name }) => name), added }, sent };
}

/** Records a response to some names. Other resources of the client are unchanged. */
function withSome(previous: Sent, names: readonly string[], next: ResourceMap, difference: ResourceDifference): Sent {
  const requestedNames = new Set(names);
  const { forgotten } = previous;
  const stillForgotten =
    forgotten === 'all' || !forgotten.some((name) => requestedNames.has(name))
      ? forgotten
      : forgotten.filter((name) => !requestedNames.has(name));
  if (difference.removed.length === 0 && difference.changed.every((name) => requestedNames.has(name))) {
    return { resources: next, forgotten: stillForgotten };
  }
  const resources = new Map(previous.resources);
  for (const name of names) {
    const resource = next.get(name);
    if (resource === undefined) resources.delete(name);
    else resources.set(name, resource);
  }
  return { resources, forgotten: stillForgotten };
}

/** Removed names that are still subscribed. */
function within(subscribed: readonly string[] | '*', removed: readonly string[]): readonly string[] {
  if (subscribed === '*' || removed.length === 0) return removed;
  const subscribedNames = new Set(subscribed);
  return removed.filter((name) => subscribedNames.has(name));
}

function absent(names: readonly string[], resources: ResourceMap): string[] {
  return names.filter((name) => !resources.has(name));
}
