/**
 * Keeps route and extension configurations whose listener is no longer configured. The client uses the previous version until the listener is
 * replaced and drained, so that version is kept until the client unsubscribes.
 */
import type { ResponseOrder } from '../../../../machines/discovery/xds/ads-protocol.ts';
import { extensionType, listenerType, routeType } from '../../../../machines/discovery/xds/ads-types.ts';
import type { Watch } from '../../../../machines/discovery/xds/watch-record.ts';
import { memoizeByObject } from '../../../model/collections/memoize-by-object.ts';
import type { Steps } from '../../../runtime/turns.ts';
import type { EncodedResource, ResourceReferences, ResourceSet } from '../resource-source.ts';
import type { SentResources } from '../responses/ads-sent.ts';
import { type PreparedResponse, withClientVersions } from './held-order.ts';

type ResourceMap = ReadonlyMap<string, EncodedResource>;

export interface RoutedStream {
  readonly references: ResourceReferences;
  sentResourcesOf(typeUrl: string): SentResources;
  watchOf(typeUrl: string): Watch | undefined;
  generatedSet(typeUrl: string): ResourceSet | undefined;
  /** Prepares {@link ResourceReferences} in steps. */
  generateInSteps(typeUrl: string): Steps<void>;
}

/** Cached by listener map. */
const fetchingClustersOf = memoizeByObject((references: ResourceReferences) =>
  memoizeByObject(
    (listeners: ResourceMap): ReadonlySet<string> =>
      new Set([...listeners.values()].flatMap((listener) => [...references.routeConfigurationsOf(listener)])),
  ),
);

export function* readingRoutes(stream: RoutedStream, order: ResponseOrder, set: ResourceSet): Steps<void> {
  if (candidates(stream, order, set).length === 0) return;
  yield* stream.generateInSteps(listenerType);
  for (const listener of stream.generatedSet(listenerType)?.resources.values() ?? []) {
    stream.references.routeConfigurationsOf(listener);
    yield;
  }
}

export class DepartedConfigurations {
  readonly #stream: RoutedStream;
  readonly #drainingFetches: (name: string) => boolean;
  /** Kept names by type URL, as of the last order. */
  #retainedNames: Map<string, readonly string[]> | undefined;

  constructor(stream: RoutedStream, drainingFetches: (name: string) => boolean) {
    this.#stream = stream;
    this.#drainingFetches = drainingFetches;
  }

  retainedNamesOf(typeUrl: string): readonly string[] {
    const retainedNames = this.#retainedNames?.get(typeUrl);
    if (retainedNames === undefined) return [];
    const subscribedNames = new Set(this.#stream.watchOf(typeUrl)?.names);
    return retainedNames.filter((name) => subscribedNames.has(name));
  }

  /**
   * @param isReturning whether the client has configurations of a previous stream
   * @returns `undefined` if nothing remains
   */
  prepareWithoutDeparted(order: ResponseOrder, set: ResourceSet, isReturning: boolean): PreparedResponse | undefined {
    const { typeUrl } = order;
    const sentResources = this.#stream.sentResourcesOf(typeUrl);
    const departedNames =
      typeUrl === routeType ? departedRoutes(this.#stream, order, set) : missingExtensions(order, set);
    // A returning client keeps configurations of a previous stream until it requests them again.
    const retainedNames = new Set(this.#retainedNames?.get(typeUrl));
    for (const name of order.requested) retainedNames.delete(name);
    const names = departedNames.filter(
      (name) =>
        isReturning || sentResources.has(name) || retainedNames.has(name) || this.#isFromFormerListener(typeUrl, name),
    );
    this.#retainNames(typeUrl, names);
    return names.length === 0 ? { order, set } : withClientVersions(order, set, new Set(names), sentResources);
  }

  /**
   * Whether the configuration is fetched by a sent listener that is or will be replaced. If such a listener is still warming, the version without
   * hosts would activate it.
   */
  #isFromFormerListener(typeUrl: string, name: string): boolean {
    if (typeUrl !== routeType) return false;
    const { resources } = this.#stream.sentResourcesOf(listenerType);
    return fetchingClustersOf(this.#stream.references)(resources).has(name) || this.#drainingFetches(name);
  }

  #retainNames(typeUrl: string, names: readonly string[]): void {
    if (names.length > 0) {
      this.#retainedNames ??= new Map();
      this.#retainedNames.set(typeUrl, names);
    } else if (this.#retainedNames?.delete(typeUrl) === true && this.#retainedNames.size === 0)
      this.#retainedNames = undefined;
  }
}

function departedRoutes(stream: RoutedStream, order: ResponseOrder, set: ResourceSet): readonly string[] {
  const names = candidates(stream, order, set);
  const listeners = names.length === 0 ? undefined : stream.generatedSet(listenerType)?.resources;
  if (listeners === undefined) return [];
  const fetchedNames = fetchingClustersOf(stream.references)(listeners);
  return names.filter((name) => !fetchedNames.has(name));
}

/** In delta, Envoy fails the requests of a filter whose extension configuration was removed. */
function missingExtensions({ typeUrl, names }: ResponseOrder, { resources }: ResourceSet): readonly string[] {
  return typeUrl === extensionType && names !== '*' ? names.filter((name) => !resources.has(name)) : [];
}

/** Configurations without hosts of which the client has another version. */
function candidates(stream: RoutedStream, { typeUrl }: ResponseOrder, { resources }: ResourceSet): readonly string[] {
  if (typeUrl !== routeType) return [];
  const { changedNames } = stream.sentResourcesOf(typeUrl).computeDifference(resources);
  return changedNames.filter((name) => !stream.references.hasHosts(resources.get(name)!));
}
