/** Keeps clusters at a client that are no longer configured, for as long as it may use them (machines/discovery/xds/cluster-removal.ts). */
import type { ResponseOrder } from '../../../../machines/discovery/xds/ads-protocol.ts';
import {
  clusterType,
  endpointType,
  extensionType,
  listenerType,
  routeType,
} from '../../../../machines/discovery/xds/ads-types.ts';
import { isSubscribed } from '../../../../machines/discovery/xds/ads-watch.ts';
import {
  type ClusterUse,
  evictedBetween,
  removableClusters,
  withoutRemovable,
} from '../../../../machines/discovery/xds/cluster-removal.ts';
import type { Rollout } from '../../../../machines/discovery/xds/cluster-rollout.ts';
import type { RolloutRules } from '../../../../machines/discovery/xds/rollout-rules.ts';
import type { Watch } from '../../../../machines/discovery/xds/watch-record.ts';
import { onceForPair } from '../../../model/collections/once-for.ts';
import type { EncodedResource, ResourceSet } from '../resource-source.ts';
import { differenceOf } from '../responses/ads-sent.ts';
import { LayeredResources } from '../responses/layered-resources.ts';
import type { DepartedResources } from './departed-clusters.ts';
import { DrainingListeners, type DrainingStream } from './draining-listeners.ts';
import type { Prepared } from './held-order.ts';
import type { NamingResource } from './rollout-waits.ts';

type ResourceMap = ReadonlyMap<string, EncodedResource>;

/** The stream whose clusters are kept. */
export interface RetainingStream extends DrainingStream {
  readonly rules: RolloutRules;
  readonly isDelta: boolean;
  /** Whether the client, an Envoy on an aggregated stream, takes clusters that it has not requested. */
  readonly takesUnrequested: boolean;
  watchOf(typeUrl: string): Watch | undefined;
  /** What the client was sent on its last stream; undefined if that is not known. */
  departedResources(): DepartedResources | undefined;
}

/** What is sent of clusters, and what follows. */
interface RetainedResponse {
  readonly rollout: Rollout;
  readonly order: ResponseOrder;
  readonly set: ResourceSet;
  /** Clusters that it removes before their time, because the client keeps too many. */
  readonly evicted: readonly string[];
}

const namingTypes = [listenerType, routeType, extensionType];

/** All clusters of the new map, and those of the old one that are not in it; one map for all streams that were sent the same. */
const unionOf = onceForPair((before: ResourceMap, after: ResourceMap) =>
  LayeredResources.shared(after, resourcesOf(before, differenceOf(before, after).removed), []),
);

export class ClusterRetention {
  readonly #stream: RetainingStream;
  readonly #draining: DrainingListeners;
  /**
   * The client has listeners and routes of another stream, and has acknowledged none on this one. `undefined` until it requests clusters or
   * acknowledges such: while one of its clusters warms, it requests listeners and routes first.
   */
  #hasOthers: boolean | undefined;
  /**
   * Clusters that were not configured when the client connected, and that it had from another stream, with their endpoints; with the version
   * that it reported, until they are configured again or removed.
   */
  #brought: Map<string, string | undefined> | undefined;
  /** What it was sent on its last stream, until it has acknowledged listeners or routes on this one. */
  #departed: DepartedResources | undefined;

  constructor(stream: RetainingStream) {
    this.#stream = stream;
    this.#draining = new DrainingListeners(stream);
  }

  /** What is sent of clusters, and what follows. @param held resources that are to be sent later */
  clusters(
    rollout: Rollout,
    order: ResponseOrder,
    set: ResourceSet,
    held: (cluster: string) => boolean,
  ): RetainedResponse {
    const sent = this.#stream.sentOf(order.typeUrl);
    const isReturning = order.has !== undefined || order.returning !== undefined;
    if (isReturning) this.#hasOthers ??= true;
    const last = isReturning ? this.#lastStream() : undefined;
    const departed = order.returning === undefined ? undefined : last?.clusters;
    const before = departed ?? sent.resources;
    const unconfigured = differenceOf(before, set.resources).removed;
    const removed = departed === undefined ? unconfigured : unconfigured.filter(this.#usedOnLastStream(last!));
    // Of another stream: those are known by name alone.
    const brought = isReturning ? order.asked.filter((name) => !set.resources.has(name)) : [];
    if (removed.length + brought.length + rollout.retained.length === 0) {
      return { rollout, order, set, evicted: [] };
    }
    const next = this.#stream.rules.withRetained(
      rollout,
      [...new Set([...removed, ...brought])],
      (name) => set.resources.has(name),
      () => this.#use(held),
    );
    if (isReturning) {
      // This stream may have sent clusters without a request: those are of no other one.
      const isOfThis = (name: string): boolean => sent.has(name) && this.#brought?.has(name) !== true;
      const others = [...removed, ...brought].filter((name) => !isOfThis(name));
      this.#brought = broughtBy(order, others);
    }
    const removable = removableClusters(next);
    for (const name of removable) this.#forgetVersion(name);
    const kept = withoutRemovable(next);
    const names = kept.retained.map(({ name }) => name);
    const isAllKept = removable.length === 0 && names.length === unconfigured.length;
    const resources = isAllKept
      ? unionOf(before, set.resources)
      : LayeredResources.shared(set.resources, resourcesOf(before, names), []);
    const unasked = new Set(names);
    const unseen = removable.filter((name) => !sent.has(name));
    const asked = [...order.asked.filter((name) => !unasked.has(name)), ...unseen];
    const isSame = asked.length === order.asked.length && unseen.length === 0;
    return {
      rollout: kept,
      order: isSame ? order : { ...order, asked },
      set: { version: set.version, resources },
      evicted: evictedBetween(rollout, next),
    };
  }

  /**
   * Clusters that the client brought from another stream and that are configured again: those that it has in this form count as sent.
   *
   * @returns their names
   */
  returned({ resources }: ResourceSet): readonly string[] {
    const sent = this.#stream.sentOf(clusterType);
    const configured = [...(this.#brought ?? [])].filter(([name]) => resources.has(name));
    const known = configured.flatMap(([name, version]) => {
      this.#forgetVersion(name);
      const cluster = resources.get(name)!;
      return cluster.version === version ? [cluster] : [];
    });
    if (known.length > 0) sent.adopt(known);
    return known.map(({ name }) => name);
  }

  #forgetVersion(name: string): void {
    if (this.#brought?.has(name) === true) this.#brought.set(name, undefined);
  }

  /**
   * The endpoints of clusters that are kept stay as they are: of a name that means nothing any more there are none.
   *
   * @param of.configured all clusters that the node should have
   * @param of.outdated names that are not answered unless what the client had is known
   * @param of.unused clusters that the client was sent on this stream, and does not use yet
   */
  endpoints(
    { retained }: Rollout,
    order: ResponseOrder,
    set: ResourceSet,
    of: {
      readonly configured: () => ResourceMap | undefined;
      readonly outdated: readonly string[];
      readonly unused: readonly string[];
    },
  ): Prepared {
    const isUnused = new Set(of.unused);
    const leaving = [...this.#leaving(order, of.configured).filter((name) => !isUnused.has(name)), ...of.outdated];
    const replaced = this.#ofReplacedTypes(order, set.resources);
    if (retained.length + leaving.length + replaced.length === 0) return { order, set };
    const sent = this.#stream.sentOf(order.typeUrl);
    const names = new Set([...retained.map(({ name }) => name), ...leaving, ...replaced]);
    const last = this.#departed?.assignments;
    const kept = [...names].flatMap((name) => sent.get(name) ?? last?.get(name) ?? []);
    const isUnseen = (name: string): boolean => !sent.has(name) && last?.has(name) !== true;
    const isBrought = new Set([...leaving, ...this.#unansweredNames(order, retained, set.resources)]);
    const unknown = [...names].filter(
      (name) => isUnseen(name) && (isBrought.has(name) || this.#brought?.has(name) === true),
    );
    const resources = LayeredResources.shared(set.resources, kept, unknown);
    if (resources === set.resources) return { order, set };
    return { order: withoutNames(order, unknown), set: { version: set.version, resources } };
  }

  /**
   * Clusters that the client was sent in a form that fetches endpoints, and that are configured in another one, which is still to be
   * sent: there are no endpoints for the form that the client warms, while it uses an earlier one.
   */
  outdatedForms(
    { asked }: ResponseOrder,
    resources: ResourceMap,
    configured: () => ResourceMap | undefined,
  ): readonly string[] {
    const { references } = this.#stream;
    const clusters = this.#stream.sentOf(clusterType);
    const isEmpty = (name: string): boolean => {
      const assignment = resources.get(name);
      return assignment !== undefined && references.isEmptyAssignment(assignment);
    };
    const empty = asked.filter((name) => clusters.has(name) && isEmpty(name));
    const now = empty.length === 0 ? undefined : configured();
    if (now === undefined) return [];
    return empty.filter((name) => {
      const next = now.get(name);
      return next !== undefined && next !== clusters.get(name) && !references.fetchesEndpoints(next);
    });
  }

  /**
   * Clusters that do not fetch endpoints any more, as the client was sent them. While it warms them (resolves names), it uses the form
   * that does: with the endpoints that it has.
   */
  #ofReplacedTypes({ typeUrl, changed }: ResponseOrder, resources: ResourceMap): readonly string[] {
    if (!changed) return [];
    const { references } = this.#stream;
    const clusters = this.#stream.sentOf(clusterType);
    const sent = this.#stream.sentOf(typeUrl);
    return sent.differenceTo(resources).changed.filter((name) => {
      const assignment = resources.get(name)!;
      if (!sent.has(name) || !references.isEmptyAssignment(assignment)) return false;
      const cluster = clusters.get(name);
      return cluster !== undefined && !references.fetchesEndpoints(cluster);
    });
  }

  /**
   * Clusters that a client brought from another stream, that its first response on this one contains, and that are removed before it
   * requests their endpoints: the response that retains them is still to be made.
   */
  #leaving({ all, asked, names }: ResponseOrder, configured: () => ResourceMap | undefined): readonly string[] {
    const requested = all ? names : asked;
    if (this.#hasOthers !== true || requested === '*' || requested.length === 0) return [];
    // A delta client requests the endpoints of all clusters that it brings at once: later ones are of clusters that are new to it.
    if (this.#stream.isDelta && this.#stream.sentOf(endpointType).count > 0) return [];
    const clusters = this.#stream.sentOf(clusterType);
    const now = configured();
    if (now === undefined) return [];
    const isUsed = this.#departed === undefined ? () => true : this.#usedOnLastStream(this.#departed);
    return requested.filter((name) => clusters.has(name) && !now.has(name) && isUsed(name));
  }

  /**
   * Clusters whose endpoints the client brought from another stream, and that were removed before this stream sent any: a push of
   * endpoints has none for them. The client requested them, and had no response.
   */
  #unansweredNames(
    { changed, asked }: ResponseOrder,
    retained: Rollout['retained'],
    resources: ResourceMap,
  ): readonly string[] {
    if (!changed) return [];
    const isAsked = new Set(asked);
    return retained.flatMap(({ name }) => {
      const assignment = resources.get(name);
      const isEmpty = assignment !== undefined && this.#stream.references.isEmptyAssignment(assignment);
      return isEmpty && !isAsked.has(name) ? [name] : [];
    });
  }

  /** The client has listeners or routes of another stream. */
  returning(): void {
    this.#draining.returning();
  }

  /** A listener, route or extension response is about to be made. */
  replacing(typeUrl: string, next: ResourceMap): void {
    this.#draining.replacing(typeUrl, next);
  }

  /** Whether a listener of this stream that was replaced, and that the client may still use, fetches a route configuration. */
  drainingFetches(routeConfiguration: string): boolean {
    return this.#draining.fetches(routeConfiguration);
  }

  /** The client has acknowledged listeners, routes or extensions of this stream. */
  proven(typeUrl: string): void {
    this.#hasOthers = false;
    this.#departed = undefined;
    if (this.#unacknowledged().every((each) => each === typeUrl)) this.#draining.begun();
  }

  /**
   * Whether the client may use a cluster of its last stream. One whose endpoints neither that stream nor this one has sent it does not use,
   * and has perhaps not received: there are no endpoints that it could wait for. Its routes may name one whose endpoints were sent on this
   * stream alone, because the last stream had given the cluster up.
   */
  #usedOnLastStream({ clusters, assignments }: DepartedResources): (name: string) => boolean {
    const { references } = this.#stream;
    const sent = this.#stream.sentOf(endpointType);
    return (name) => {
      const cluster = clusters.get(name);
      if (cluster === undefined || !references.fetchesEndpoints(cluster)) return true;
      const { assignment } = references.usabilityOf(cluster);
      const sentHere = sent.get(assignment);
      return assignments.has(assignment) || (sentHere !== undefined && !references.isEmptyAssignment(sentHere));
    };
  }

  /** What the client has, of this stream and, until it has acknowledged listeners or routes on this one, of the one before it. */
  resources(hasClusters: boolean): DepartedResources | undefined {
    const clusters = hasClusters ? this.#stream.sentOf(clusterType).resources : this.#departed?.clusters;
    if (clusters === undefined) return undefined;
    const sent = this.#stream.sentOf(endpointType).resources;
    const last = [...(this.#departed?.assignments.values() ?? [])].filter(({ name }) => !sent.has(name));
    return { clusters, assignments: LayeredResources.shared(sent, last, []) };
  }

  #lastStream(): DepartedResources | undefined {
    this.#departed ??= this.#stream.departedResources();
    return this.#departed;
  }

  /**
   * Endpoints that a client requests before clusters: of those that are no longer configured, what it had. If that is not known, it keeps
   * them: its routes may name the cluster. A cluster that warms may wait for them, until it is removed or clusters are sent without a
   * request.
   */
  endpointsOfLastStream(order: ResponseOrder, set: ResourceSet, isConfigured: (cluster: string) => boolean): Prepared {
    const last = this.#lastStream()?.assignments;
    const gone = [...set.resources.keys()].filter((name) => !isConfigured(name));
    if (gone.length === 0) return { order, set };
    const unknown = this.#stream.takesUnrequested ? gone.filter((name) => last?.has(name) !== true) : [];
    const kept = last === undefined ? [] : resourcesOf(last, gone);
    const resources = LayeredResources.shared(set.resources, kept, unknown);
    return { order: withoutNames(order, unknown), set: { version: set.version, resources } };
  }

  acknowledged(rollout: Rollout, typeUrl: string, held: (cluster: string) => boolean): Rollout {
    return this.#stream.rules.withUseAcknowledged(rollout, typeUrl, () => this.#use(held));
  }

  /** Finds what names a cluster, of what the client was sent or will be. @param held whether a resource that is held back names it */
  naming(held: (cluster: string) => boolean): (cluster: string) => NamingResource | undefined {
    const { references } = this.#stream;
    return (cluster) => {
      for (const typeUrl of namingTypes) {
        const found = this.#subscribedResources(typeUrl).find((resource) => references.names(resource, cluster));
        if (found !== undefined) return { typeUrl, name: found.name };
      }
      if (held(cluster)) return 'held resource';
      return this.#hasOthers === true ? 'previous stream' : undefined;
    };
  }

  #use(held: (cluster: string) => boolean): ClusterUse {
    const { references } = this.#stream;
    let found: readonly EncodedResource[] | undefined;
    const naming = (): readonly EncodedResource[] => {
      found ??= namingTypes.flatMap((typeUrl) => this.#subscribedResources(typeUrl));
      return found;
    };
    return {
      isNamed: (cluster) =>
        this.#hasOthers === true || held(cluster) || naming().some((resource) => references.names(resource, cluster)),
      drains: this.#draining.naming(),
      unacknowledged: this.#unacknowledged(),
      drainSteps: this.#draining.steps,
    };
  }

  /** Types that may name clusters, and of which the client has not acknowledged what it was sent last. */
  #unacknowledged(): readonly string[] {
    return namingTypes.filter((typeUrl) => {
      const watch = this.#stream.watchOf(typeUrl);
      if (watch === undefined || !isSubscribed(watch)) return false;
      return watch.nonceSent !== watch.nonceAcked || watch.awaits !== undefined;
    });
  }

  /** Those that the client uses: Envoy unsubscribes from routes when the last listener that takes them is drained. */
  #subscribedResources(typeUrl: string): readonly EncodedResource[] {
    const watch = this.#stream.watchOf(typeUrl);
    if (watch === undefined) return [];
    const { resources } = this.#stream.sentOf(typeUrl);
    return watch.wildcard ? [...resources.values()] : resourcesOf(resources, watch.names);
  }
}

function resourcesOf(resources: ResourceMap, names: readonly string[]): EncodedResource[] {
  return names.flatMap((name) => resources.get(name) ?? []);
}

function broughtBy({ has }: ResponseOrder, names: readonly string[]): Map<string, string | undefined> {
  const versions = new Map(has?.names.map((name, index) => [name, has.versions[index]]));
  return new Map(names.map((name) => [name, versions.get(name)]));
}

function withoutNames(order: ResponseOrder, unwanted: readonly string[]): ResponseOrder {
  if (unwanted.length === 0) return order;
  const isUnwanted = new Set(unwanted);
  const left = (names: readonly string[]): readonly string[] => names.filter((name) => !isUnwanted.has(name));
  return { ...order, asked: left(order.asked), names: order.names === '*' ? order.names : left(order.names) };
}
