/** Sent resources of one type on a stream. Streams with the same inputs (compared by identity) share a selection that is computed once. */
import type { ResponseOrder } from '../../../../machines/discovery/xds/ads-protocol.ts';
import { isByName } from '../../../../machines/discovery/xds/ads-types.ts';
import type { KnownResources } from '../../../../machines/discovery/xds/watch-record.ts';
import { memoizeByObject, memoizeByPair } from '../../../model/collections/memoize-by-object.ts';
import { WeakValues } from '../../../model/collections/weak-values.ts';
import type { EncodedResource, ResourceSet } from '../resource-source.ts';
import { versionOf } from './encoding.ts';
import { LayeredResources } from './layered-resources.ts';

type ResourceMap = ReadonlyMap<string, EncodedResource>;

export interface ResponseSelection {
  /** Equal selections are the same object. */
  readonly resources: ResourceMap | readonly EncodedResource[];
  /** In delta responses, names that the client must remove. */
  readonly removedNames: readonly string[];
  /** New or changed names; `'all'` if everything is sent regardless of the client's state. */
  readonly changedNames: NameSelection;
  readonly addedNames: readonly string[];
}

type NameSelection = readonly string[] | 'all';

interface SentState {
  readonly resources: ResourceMap;
  /** Names that must be sent again. */
  readonly forgottenNames: NameSelection;
}

interface Outcome {
  /** `undefined` if there is nothing to send. */
  readonly selection: ResponseSelection | undefined;
  readonly nextState: SentState;
}

/** Does not reference the two compared maps, so that they can be garbage-collected. */
interface CachedOutcome extends Outcome {
  readonly forgottenNames: NameSelection;
  readonly order: ResponseOrder;
  readonly isDelta: boolean;
}

export interface ResourceDifference {
  /** New, or with another version in the new map. */
  readonly changedNames: readonly string[];
  /** Changed names that are not in the old map. */
  readonly addedNames: readonly string[];
  readonly removedNames: readonly string[];
}

const noNames: readonly string[] = [];
const noResources: ResourceMap = new Map();

export class SentResources {
  readonly #delta: boolean;
  #sentState: SentState = { resources: noResources, forgottenNames: noNames };
  /** Keeps the outcome in memory for other streams. */
  #lastOutcome: Outcome | undefined;

  constructor(delta: boolean) {
    this.#delta = delta;
  }

  get count(): number {
    return this.#sentState.resources.size;
  }

  /** Resources of the client, if it accepted all responses. */
  get resources(): ResourceMap {
    return this.#sentState.resources;
  }

  get(name: string): EncodedResource | undefined {
    return this.#sentState.resources.get(name);
  }

  has(name: string): boolean {
    return this.#sentState.resources.has(name);
  }

  /** If true, unchanged resources must be sent again. */
  get hasForgottenNames(): boolean {
    return this.#sentState.forgottenNames.length > 0;
  }

  /** Computed once for all streams with the same maps. */
  computeDifference(next: ResourceMap): ResourceDifference {
    return computeStep(this.#sentState.resources, next).difference;
  }

  /** Marks names that the next order for changes sends again. */
  forgetNames(names: NameSelection): void {
    this.#sentState = {
      resources: this.#sentState.resources,
      forgottenNames: joinNames(this.#sentState.forgottenNames, names),
    };
  }

  /** Marks resources as sent that the client has from a previous stream. */
  markResourcesSent(resources: readonly EncodedResource[]): void {
    this.#sentState = {
      ...this.#sentState,
      resources: LayeredResources.sharedLayerOver(this.#sentState.resources, resources, []),
    };
  }

  /** A subscription always gets a response, even if none of its resources exist: an empty list, or in delta the removed names. */
  selectResources(order: ResponseOrder, set: ResourceSet): ResponseSelection | undefined {
    this.#lastOutcome =
      order.has === undefined
        ? outcomeOf(this.#sentState, order, set.resources, this.#delta)
        : resumeClient(this.#sentState, order, order.has, set.resources);
    this.#sentState = this.#lastOutcome.nextState;
    return this.#lastOutcome.selection;
  }
}

function joinNames(names: NameSelection, otherNames: NameSelection): NameSelection {
  if (names === 'all' || otherNames === 'all') return 'all';
  if (names.length === 0) return otherNames;
  return otherNames.length === 0 ? names : [...new Set([...names, ...otherNames])];
}

/** The resources of a returning client may come from another server: a version identifies the same content on all servers. */
function resumeClient(
  { forgottenNames }: SentState,
  order: ResponseOrder,
  clientResources: KnownResources,
  next: ResourceMap,
): Outcome {
  const versions = versionsByName(clientResources.names, clientResources.versions);
  const outdatedResources =
    forgottenNames.length === 0 ? outdatedVersions(versions, next) : selectOutdated(versions, next, forgottenNames);
  const isFullChange = outdatedResources.length === next.size;
  const selection: ResponseSelection = {
    resources: isFullChange ? next : sharedPart(next, outdatedResources),
    removedNames: sortedAbsentNames(order.names === '*' ? order.requested : order.names, next),
    changedNames: isFullChange ? 'all' : outdatedResources.map(({ name }) => name),
    addedNames: outdatedResources.map(({ name }) => name),
  };
  return { selection, nextState: { resources: next, forgottenNames: noNames } };
}

// Clients that report the same resources share the lists.
const versionsByName = memoizeByPair(
  (names: readonly string[], versions: readonly string[]): ReadonlyMap<string, string> =>
    new Map(names.map((name, i) => [name, versions[i]!])),
);
const outdatedVersions = memoizeByPair((versions: ReadonlyMap<string, string>, next: ResourceMap) =>
  selectOutdated(versions, next, noNames),
);
const sortedAbsentNames = memoizeByPair((names: readonly string[], resources: ResourceMap): readonly string[] =>
  [...new Set(absentNames(names, resources))].sort(),
);

function selectOutdated(
  versions: ReadonlyMap<string, string>,
  next: ResourceMap,
  namesToForget: NameSelection,
): readonly EncodedResource[] {
  if (namesToForget === 'all') return [...next.values()];
  const forgottenNames = new Set(namesToForget);
  return [...next.values()].filter(({ name, version }) => versions.get(name) !== version || forgottenNames.has(name));
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

interface Step {
  readonly difference: ResourceDifference;
  /** Outcomes, newest last. Weak references, so that an idle stream does not keep later outcomes in memory. */
  readonly outcomes: WeakRef<CachedOutcome>[];
}

/** Maximum number of cached orders per pair of maps. */
const maxOutcomes = 16;
const steps = new WeakMap<ResourceMap, WeakMap<ResourceMap, Step>>();

function outcomeOf(
  { resources, forgottenNames }: SentState,
  order: ResponseOrder,
  next: ResourceMap,
  delta: boolean,
): Outcome {
  const { difference, outcomes } = computeStep(resources, next);
  for (const outcomeRef of outcomes) {
    const cachedOutcome = outcomeRef.deref();
    if (
      cachedOutcome === undefined ||
      cachedOutcome.isDelta !== delta ||
      cachedOutcome.forgottenNames !== forgottenNames
    )
      continue;
    if (isSameOrder(cachedOutcome.order, order)) return cachedOutcome;
  }
  const newOutcome: CachedOutcome = {
    ...computeOutcome({ resources, forgottenNames }, order, next, difference, delta),
    forgottenNames,
    order,
    isDelta: delta,
  };
  if (outcomes.length === maxOutcomes) outcomes.shift();
  outcomes.push(new WeakRef(newOutcome));
  return newOutcome;
}

export function differenceOf(previous: ResourceMap, current: ResourceMap): ResourceDifference {
  return computeStep(previous, current).difference;
}

function computeStep(previous: ResourceMap, current: ResourceMap): Step {
  let nextOutcomes = steps.get(previous);
  if (nextOutcomes === undefined) {
    nextOutcomes = new WeakMap();
    steps.set(previous, nextOutcomes);
  }
  let step = nextOutcomes.get(current);
  if (step === undefined) {
    step = { difference: compare(previous, current), outcomes: [] };
    nextOutcomes.set(current, step);
  }
  return step;
}

/** Compares lists by identity. */
function isSameOrder(order: ResponseOrder, otherOrder: ResponseOrder): boolean {
  return (
    order.names === otherOrder.names &&
    order.all === otherOrder.all &&
    order.changed === otherOrder.changed &&
    (order.requested === otherOrder.requested || order.requested.length + otherOrder.requested.length === 0) &&
    order.typeUrl === otherOrder.typeUrl
  );
}

function compare(previous: ResourceMap, current: ResourceMap): ResourceDifference {
  const changedNames: string[] = [];
  const addedNames: string[] = [];
  const removedResources: string[] = [];
  if (previous === current) return { changedNames, addedNames, removedNames: removedResources };
  if (previous instanceof LayeredResources || current instanceof LayeredResources) {
    const { difference } = computeStep(baseOf(previous), baseOf(current));
    // Names can differ between the bases, or in the overrides of either map.
    for (const name of new Set([
      ...difference.changedNames,
      ...difference.removedNames,
      ...overlayNames(previous),
      ...overlayNames(current),
    ])) {
      const [previousResource, now] = [previous.get(name), current.get(name)];
      if (now === undefined) {
        if (previousResource !== undefined) removedResources.push(name);
      } else if (previousResource !== now && previousResource?.version !== now.version) {
        changedNames.push(name);
        if (previousResource === undefined) addedNames.push(name);
      }
    }
    return { changedNames, addedNames, removedNames: removedResources };
  }
  for (const [name, resource] of current) {
    const previousResource = previous.get(name);
    if (previousResource === resource || previousResource?.version === resource.version) continue;
    changedNames.push(name);
    if (previousResource === undefined) addedNames.push(name);
  }
  for (const name of previous.keys()) if (!current.has(name)) removedResources.push(name);
  return { changedNames, addedNames, removedNames: removedResources };
}

function baseOf(resources: ResourceMap): ResourceMap {
  return resources instanceof LayeredResources ? resources.base : resources;
}

function overlayNames(resources: ResourceMap): readonly string[] {
  return resources instanceof LayeredResources ? [...resources.overrides.keys(), ...resources.omittedNames] : noNames;
}

function computeOutcome(
  previous: SentState,
  order: ResponseOrder,
  next: ResourceMap,
  difference: ResourceDifference,
  delta: boolean,
): Outcome {
  if (order.all) return selectAll(order, next, difference, delta);
  // A SotW response of a wildcard type replaces all resources of the client.
  if (!delta && !isByName(order.typeUrl)) return selectFullState(previous, order, next, difference);
  return selectNamed(previous, order, next, difference, delta);
}

function selectAll(order: ResponseOrder, next: ResourceMap, difference: ResourceDifference, delta: boolean): Outcome {
  const orderedNames = order.names === '*' ? order.requested : order.names;
  const removedNames = delta
    ? new Set([...absentNames(orderedNames, next), ...subscribedRemovals(order.names, difference.removedNames)])
    : noNames;
  const { addedNames } = difference;
  const selection: ResponseSelection = {
    resources: next,
    removedNames: [...removedNames].sort(),
    changedNames: 'all',
    addedNames,
  };
  return { selection, nextState: { resources: next, forgottenNames: noNames } };
}

function selectFullState(
  previous: SentState,
  order: ResponseOrder,
  next: ResourceMap,
  difference: ResourceDifference,
): Outcome {
  const hasChanges =
    difference.changedNames.length > 0 || subscribedRemovals(order.names, difference.removedNames).length > 0;
  // The remaining differences do not affect the client, so the new map also describes its resources.
  if (!hasChanges && order.requested.length === 0)
    return { selection: undefined, nextState: { ...previous, resources: next } };
  const { changedNames, addedNames } = difference;
  const selection: ResponseSelection = { resources: next, removedNames: [], changedNames, addedNames };
  return { selection, nextState: { resources: next, forgottenNames: noNames } };
}

function selectNamed(
  previous: SentState,
  order: ResponseOrder,
  next: ResourceMap,
  difference: ResourceDifference,
  delta: boolean,
): Outcome {
  const names = new Set(order.requested);
  const removedNames = new Set(absentNames(order.requested, next));
  if (order.changed) {
    for (const name of difference.changedNames) names.add(name);
    for (const name of previous.forgottenNames === 'all' ? next.keys() : previous.forgottenNames) names.add(name);
    for (const name of subscribedRemovals(order.names, difference.removedNames)) removedNames.add(name);
  }
  const chosenResources = [...names].flatMap((name) => next.get(name) ?? []);
  const removedList = delta ? [...removedNames].sort() : [];
  const nextSent = order.changed
    ? { resources: next, forgottenNames: noNames }
    : recordNamedResponse(previous, order.requested, next, difference);
  if (chosenResources.length === 0 && removedList.length === 0 && order.requested.length === 0)
    return { selection: undefined, nextState: nextSent };
  // If all are chosen, uses the complete map, so that its frames are joined once for all streams.
  const resources = chosenResources.length === next.size ? next : chosenResources;
  const { addedNames } = difference;
  return {
    selection: {
      resources,
      removedNames: removedList,
      changedNames: chosenResources.map(({ name }) => name),
      addedNames,
    },
    nextState: nextSent,
  };
}

/** Other resources of the client are unchanged. */
function recordNamedResponse(
  previous: SentState,
  names: readonly string[],
  next: ResourceMap,
  difference: ResourceDifference,
): SentState {
  const requestedNames = new Set(names);
  const { forgottenNames } = previous;
  const remainingForgotten =
    forgottenNames === 'all' || !forgottenNames.some((name) => requestedNames.has(name))
      ? forgottenNames
      : forgottenNames.filter((name) => !requestedNames.has(name));
  if (difference.removedNames.length === 0 && difference.changedNames.every((name) => requestedNames.has(name))) {
    return { resources: next, forgottenNames: remainingForgotten };
  }
  const resources = new Map(previous.resources);
  for (const name of names) {
    const resource = next.get(name);
    if (resource === undefined) resources.delete(name);
    else resources.set(name, resource);
  }
  return { resources, forgottenNames: remainingForgotten };
}

function subscribedRemovals(
  subscription: readonly string[] | '*',
  removedResources: readonly string[],
): readonly string[] {
  if (subscription === '*' || removedResources.length === 0) return removedResources;
  const subscribedNames = new Set(subscription);
  return removedResources.filter((name) => subscribedNames.has(name));
}

function absentNames(names: readonly string[], resources: ResourceMap): string[] {
  return names.filter((name) => !resources.has(name));
}
