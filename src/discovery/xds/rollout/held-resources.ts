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
  sentOf(typeUrl: string): SentResources;
  sharedNames(names: readonly string[]): readonly string[];
  takeRolloutEvent(event: RolloutEvent): void;
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

  skip(order: ResponseOrder): void {
    this.#holdResources(order, [], noNames, new Set());
    if (!this.#record.current.held.some(({ typeUrl }) => typeUrl === order.typeUrl)) this.drop(order.typeUrl);
  }

  drop(typeUrl: string): void {
    this.#setCandidates(typeUrl, undefined);
  }

  /**
   * @param unsent configured clusters that were not sent
   * @returns `undefined` if everything is delayed
   */
  prepare(originalOrder: ResponseOrder, set: ResourceSet, unsent: readonly string[]): PreparedResponse | undefined {
    const { typeUrl } = originalOrder;
    const candidates = this.#candidates?.get(typeUrl);
    const blocking = new Set([...unusableClusters(this.#record.current), ...unsent]);
    if (blocking.size === 0 && candidates === undefined) return { order: originalOrder, set };
    const order = this.#withHeldNames(originalOrder);
    const sentResources = this.#stream.sentOf(typeUrl);
    const changedNames = outdatedNames(order, sentResources.differenceTo(set.resources).changedNames, set);
    const heldResources = changedNames.flatMap((name): HeldResource[] => {
      const clusters = this.#blockingNamesOf(set.resources.get(name)!, blocking);
      return clusters.length === 0 ? [] : [{ typeUrl, name, clusters }];
    });
    const isUnsent = new Set(unsent);
    const awaitsUnsent = heldResources.some(({ clusters }) => clusters.some((name) => isUnsent.has(name)));
    // An older candidate whose clusters were sent takes precedence over a newer one whose clusters were not.
    if (awaitsUnsent && candidates !== undefined) {
      this.#setCandidates(typeUrl, { set: candidates.set, isOutdated: true });
      const newHeldNames = new Set(heldResources.map(({ name }) => name));
      const olderNames = new Set(this.#heldNames(typeUrl).filter((name) => newHeldNames.has(name)));
      const newer = heldResources.filter(({ name }) => !olderNames.has(name));
      this.#holdResources(order, newer, unsent, olderNames);
      return withClientVersions(order, set, new Set(heldResources.map(({ name }) => name)), sentResources);
    }
    this.#setCandidates(typeUrl, heldResources.length === 0 ? undefined : { set, isOutdated: false });
    this.#holdResources(order, heldResources, unsent, new Set());
    if (heldResources.length === 0) return { order, set };
    return withClientVersions(order, set, new Set(heldResources.map(({ name }) => name)), sentResources);
  }

  #heldNames(typeUrl: string): readonly string[] {
    return this.#record.current.held.filter((heldResource) => heldResource.typeUrl === typeUrl).map(({ name }) => name);
  }

  /** Adds the delayed names, because all must come from one set. */
  #withHeldNames(order: ResponseOrder): ResponseOrder {
    if (order.all || order.changed) return order;
    const requestedNames = new Set([...order.requested, ...this.#heldNames(order.typeUrl)]);
    return requestedNames.size === order.requested.length ? order : { ...order, requested: [...requestedNames] };
  }

  #blockingNamesOf(resource: EncodedResource, blocking: ReadonlySet<string>): readonly string[] {
    const blockingNames = this.#stream.references.namesAmong(resource, blocking);
    return blocking.has(anyCluster) ? [anyCluster, ...blockingNames] : blockingNames;
  }

  #holdResources(
    order: ResponseOrder,
    heldResources: readonly HeldResource[],
    unsent: readonly string[],
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
        unsent.filter((name) => awaitedClusters.has(name)),
      ),
      order.typeUrl,
    );
  }

  /** Returns delayed resources that are ready, in the delayed version. */
  release(order: ResponseOrder): PreparedResponse | undefined {
    const { typeUrl } = order;
    const candidates = this.#candidates?.get(typeUrl);
    const ready = new Set(readyResources(this.#record.current, typeUrl));
    if (candidates === undefined || ready.size === 0) return undefined;
    const sentResources = this.#stream.sentOf(typeUrl);
    const { set } = candidates;
    const subscribedNames = order.names === '*' ? undefined : new Set(order.names);
    const requestedNames = this.#stream.sharedNames(
      [...ready].filter((name) => set.resources.has(name) && (subscribedNames?.has(name) ?? true)),
    );
    this.#record.update(
      this.#stream.rules.withHeld(
        this.#record.current,
        (heldResource) => heldResource.typeUrl === typeUrl && ready.has(heldResource.name),
        [],
        noNames,
      ),
      typeUrl,
    );
    if (!this.#record.current.held.some((heldResource) => heldResource.typeUrl === typeUrl))
      this.#setCandidates(typeUrl, undefined);
    if (candidates.isOutdated)
      this.#stream.takeRolloutEvent({ type: 'resources.ready', typeUrl, names: noNames, changed: true });
    if (requestedNames.length === 0) return undefined;
    const { changedNames, removedNames } = sentResources.differenceTo(set.resources);
    const isAll = removedNames.length === 0 && changedNames.every((name) => ready.has(name));
    const resources = isAll
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
