/** Delays listeners, route and extension configurations that name clusters which the client cannot use yet. */
import type { ResponseOrder } from '../../../../machines/discovery/xds/ads-protocol.ts';
import {
  anyCluster,
  type HeldResource,
  readyResources,
  unusableClusters,
} from '../../../../machines/discovery/xds/cluster-rollout.ts';
import type { RolloutRules } from '../../../../machines/discovery/xds/rollout-rules.ts';
import type { EncodedResource, ResourceReferences, ResourceSet } from '../resource-source.ts';
import type { SentResources } from '../responses/ads-sent.ts';
import { LayeredResources } from '../responses/layered-resources.ts';
import { outdatedNames, type PreparedResponse, withClientVersions } from './held-order.ts';
import type { RolloutEvent } from './rollout-events.ts';
import type { RolloutRecord } from './rollout-record.ts';

export interface HoldingStream {
  readonly references: ResourceReferences;
  readonly rules: RolloutRules;
  sentResourcesOf(typeUrl: string): SentResources;
  sharedNames(names: readonly string[]): readonly string[];
  onRolloutEvent(event: RolloutEvent): void;
}

/** The newest set whose clusters were all sent. */
interface Candidates {
  readonly set: ResourceSet;
  readonly isOutdated: boolean;
}

const noNames: readonly string[] = [];

export class HeldResources {
  readonly #stream: HoldingStream;
  readonly #record: RolloutRecord;
  #candidates: Map<string, Candidates> | undefined;

  constructor(stream: HoldingStream, record: RolloutRecord) {
    this.#stream = stream;
    this.#record = record;
  }

  versionOf(typeUrl: string): string | undefined {
    return this.#candidates?.get(typeUrl)?.set.version;
  }

  names(cluster: string): boolean {
    return this.#record.current.held.some(({ typeUrl, name }) => {
      const resource = this.#candidates?.get(typeUrl)?.set.resources.get(name);
      return resource !== undefined && this.#stream.references.names(resource, cluster);
    });
  }

  skipHeld(order: ResponseOrder): void {
    this.#recordHeldResources(order, [], noNames, new Set());
    if (!this.#record.current.held.some(({ typeUrl }) => typeUrl === order.typeUrl)) this.drop(order.typeUrl);
  }

  drop(typeUrl: string): void {
    this.#setCandidates(typeUrl, undefined);
  }

  /**
   * @param unsentNames configured clusters that were not sent
   * @returns `undefined` if everything is delayed
   */
  prepare(
    originalOrder: ResponseOrder,
    set: ResourceSet,
    unsentNames: readonly string[],
  ): PreparedResponse | undefined {
    const { typeUrl } = originalOrder;
    const candidates = this.#candidates?.get(typeUrl);
    const blockingClusters = new Set([...unusableClusters(this.#record.current), ...unsentNames]);
    if (blockingClusters.size === 0 && candidates === undefined) return { order: originalOrder, set };
    const order = this.#withHeldNames(originalOrder);
    const sentResources = this.#stream.sentResourcesOf(typeUrl);
    const changedNames = outdatedNames(order, sentResources.computeDifference(set.resources).changedNames, set);
    const heldResources = changedNames.flatMap((name): HeldResource[] => {
      const clusters = this.#blockingNamesOf(set.resources.get(name)!, blockingClusters);
      return clusters.length === 0 ? [] : [{ typeUrl, name, clusters }];
    });
    const unsentSet = new Set(unsentNames);
    const isAwaitingUnsent = heldResources.some(({ clusters }) => clusters.some((name) => unsentSet.has(name)));
    // An older candidate whose clusters were sent takes precedence over a newer one whose clusters were not.
    if (isAwaitingUnsent && candidates !== undefined) {
      this.#setCandidates(typeUrl, { set: candidates.set, isOutdated: true });
      const newHeldNames = new Set(heldResources.map(({ name }) => name));
      const olderNames = new Set(this.#heldNamesOf(typeUrl).filter((name) => newHeldNames.has(name)));
      const newerResources = heldResources.filter(({ name }) => !olderNames.has(name));
      this.#recordHeldResources(order, newerResources, unsentNames, olderNames);
      return withClientVersions(order, set, new Set(heldResources.map(({ name }) => name)), sentResources);
    }
    this.#setCandidates(typeUrl, heldResources.length === 0 ? undefined : { set, isOutdated: false });
    this.#recordHeldResources(order, heldResources, unsentNames, new Set());
    if (heldResources.length === 0) return { order, set };
    return withClientVersions(order, set, new Set(heldResources.map(({ name }) => name)), sentResources);
  }

  #heldNamesOf(typeUrl: string): readonly string[] {
    return this.#record.current.held.filter((heldResource) => heldResource.typeUrl === typeUrl).map(({ name }) => name);
  }

  /** Adds the delayed names, because all delayed resources must come from one set. */
  #withHeldNames(order: ResponseOrder): ResponseOrder {
    if (order.all || order.changed) return order;
    const requestedNames = new Set([...order.requested, ...this.#heldNamesOf(order.typeUrl)]);
    return requestedNames.size === order.requested.length ? order : { ...order, requested: [...requestedNames] };
  }

  #blockingNamesOf(resource: EncodedResource, blockingClusters: ReadonlySet<string>): readonly string[] {
    const blockingNames = this.#stream.references.referencedNamesAmong(resource, blockingClusters);
    return blockingClusters.has(anyCluster) ? [anyCluster, ...blockingNames] : blockingNames;
  }

  #recordHeldResources(
    order: ResponseOrder,
    heldResources: readonly HeldResource[],
    unsentNames: readonly string[],
    retainedNames: ReadonlySet<string>,
  ): void {
    const isPartial = !order.all && !order.changed;
    const requestedNames = new Set(order.requested);
    const awaitedClusters = new Set(heldResources.flatMap(({ clusters }) => clusters));
    this.#record.update(
      this.#stream.rules.withHeld(
        this.#record.current,
        ({ typeUrl, name }) =>
          typeUrl === order.typeUrl && !retainedNames.has(name) && (!isPartial || requestedNames.has(name)),
        heldResources,
        unsentNames.filter((name) => awaitedClusters.has(name)),
      ),
      order.typeUrl,
    );
  }

  /** Returns delayed resources that are ready, in the delayed version. */
  release(order: ResponseOrder): PreparedResponse | undefined {
    const { typeUrl } = order;
    const candidates = this.#candidates?.get(typeUrl);
    const readyNames = new Set(readyResources(this.#record.current, typeUrl));
    if (candidates === undefined || readyNames.size === 0) return undefined;
    const sentResources = this.#stream.sentResourcesOf(typeUrl);
    const { set } = candidates;
    const subscribedNames = order.names === '*' ? undefined : new Set(order.names);
    const requestedNames = this.#stream.sharedNames(
      [...readyNames].filter((name) => set.resources.has(name) && (subscribedNames?.has(name) ?? true)),
    );
    this.#record.update(
      this.#stream.rules.withHeld(
        this.#record.current,
        (heldResource) => heldResource.typeUrl === typeUrl && readyNames.has(heldResource.name),
        [],
        noNames,
      ),
      typeUrl,
    );
    if (!this.#record.current.held.some((heldResource) => heldResource.typeUrl === typeUrl))
      this.#setCandidates(typeUrl, undefined);
    if (candidates.isOutdated)
      this.#stream.onRolloutEvent({ type: 'resources.ready', typeUrl, names: noNames, changed: true });
    if (requestedNames.length === 0) return undefined;
    const { changedNames, removedNames } = sentResources.computeDifference(set.resources);
    const isFullRelease = removedNames.length === 0 && changedNames.every((name) => readyNames.has(name));
    const resources = isFullRelease
      ? set.resources
      : LayeredResources.sharedLayerOver(
          sentResources.resources,
          requestedNames.map((name) => set.resources.get(name)!),
          noNames,
        );
    return { order: { ...order, requested: requestedNames }, set: { version: set.version, resources } };
  }

  #setCandidates(typeUrl: string, candidates: Candidates | undefined): void {
    if (candidates === undefined) {
      this.#candidates?.delete(typeUrl);
      if (this.#candidates?.size === 0) this.#candidates = undefined;
    } else {
      this.#candidates ??= new Map();
      this.#candidates.set(typeUrl, candidates);
    }
  }
}
