/** Replaced listeners whose connections a client drains, so that their routes still name clusters. */
import { extensionType, listenerType } from '../../../../machines/discovery/xds/ads-types.ts';
import { memoizeByPair } from '../../../model/collections/memoize-by-object.ts';
import type { EncodedResource, ResourceReferences } from '../resource-source.ts';
import { differenceOf, type SentResources } from '../responses/ads-sent.ts';

type ResourceMap = ReadonlyMap<string, EncodedResource>;

export interface DrainingStream {
  readonly references: ResourceReferences;
  readonly removal: RemovalTimes;
  sentResourcesOf(typeUrl: string): SentResources;
  now(): number;
}

export interface RemovalTimes {
  /** Delay from the ACK after which no resource names a cluster to its removal. */
  readonly delayMs: number;
  /** Envoy's drain time for connections of a replaced listener. */
  readonly drainMs: number;
}

interface ReplacedResources {
  readonly typeUrl: string;
  /** `undefined` if the resources are from a previous stream and unknown. */
  readonly previous: ResourceMap | undefined;
  readonly names: readonly string[];
  /** `undefined` while draining may not have started. */
  drainEndsAt: number | undefined;
}

/** With more replacements, all removed clusters are treated as draining. */
const maxReplacements = 16;

/** Envoy's default for a missing certificate of a new listener. */
export const maxListenerWarmingMs = 15_000;

const noNames: readonly string[] = [];

const replacedNames = memoizeByPair((previous: ResourceMap, current: ResourceMap): readonly string[] => {
  const { changedNames, removedNames } = differenceOf(previous, current);
  return [...changedNames.filter((name) => previous.has(name)), ...removedNames];
});

export class DrainingListeners {
  readonly #stream: DrainingStream;
  #replacedResources: ReplacedResources[] | undefined;

  constructor(stream: DrainingStream) {
    this.#stream = stream;
  }

  /** A returning client may already drain some listeners, and the first responses replace others. */
  onReturning(): void {
    if (this.#replacedResources?.some(({ previous }) => previous === undefined) === true) return;
    this.#add({ typeUrl: listenerType, previous: undefined, names: noNames, drainEndsAt: undefined });
  }

  /** Called before a listener, route or extension response is built. */
  recordReplacement(typeUrl: string, next: ResourceMap): void {
    if (typeUrl === extensionType) return;
    const { resources: previous } = this.#stream.sentResourcesOf(typeUrl);
    if (previous.size === 0 || previous === next) return;
    // A draining listener keeps the last version of a removed route configuration.
    const names = typeUrl === listenerType ? replacedNames(previous, next) : differenceOf(previous, next).removedNames;
    if (names.length > 0) this.#add({ typeUrl, previous, names, drainEndsAt: undefined });
  }

  #add(replacedResources: ReplacedResources): void {
    this.#forgetDrained();
    this.#replacedResources = [...(this.#replacedResources ?? []), replacedResources];
    if (this.#replacedResources.length > maxReplacements) this.#replacedResources.splice(1, 1);
  }

  /** Called when the client has acknowledged everything that may name clusters. */
  startDrain(): void {
    this.#forgetDrained();
    for (const replacedListener of this.#replacedResources ?? [])
      replacedListener.drainEndsAt ??= this.#stream.now() + this.#drainMs;
  }

  #forgetDrained(): void {
    const now = this.#stream.now();
    const drainingListeners =
      this.#replacedResources?.filter(({ drainEndsAt }) => drainEndsAt === undefined || drainEndsAt > now) ?? [];
    this.#replacedResources = drainingListeners.length === 0 ? undefined : drainingListeners;
  }

  /** Drain time of a listener that is replaced now, as a multiple of the removal delay. */
  get drainSteps(): number {
    return Math.ceil(this.#drainMs / this.#stream.removal.delayMs) + 1;
  }

  get #drainMs(): number {
    return this.#stream.removal.drainMs + maxListenerWarmingMs;
  }

  /** Returns false for listeners of a previous stream, which are unknown. */
  fetches(routeConfiguration: string): boolean {
    this.#forgetDrained();
    const { references } = this.#stream;
    return (this.#replacedResources ?? []).some(({ typeUrl, previous, names }) =>
      names.some((name) => {
        const listener = typeUrl === listenerType ? previous?.get(name) : undefined;
        return listener !== undefined && references.routeConfigurationsOf(listener).has(routeConfiguration);
      }),
    );
  }

  createNamingFilter(): (cluster: string) => boolean {
    this.#forgetDrained();
    const replacedResources = this.#replacedResources ?? [];
    if (replacedResources.length >= maxReplacements || replacedResources.some(({ previous }) => previous === undefined))
      return () => true;
    const { references } = this.#stream;
    return (cluster) =>
      replacedResources.some(({ previous, names }) =>
        names.some((name) => {
          const resource = previous?.get(name);
          return resource !== undefined && references.names(resource, cluster);
        }),
      );
  }
}
