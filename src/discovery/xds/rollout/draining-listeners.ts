/**
 * Listeners of which a client drains connections: these have the routes that they had, so what named clusters before still does. Envoy
 * begins to drain a listener when the one that replaces it is warm, which no response tells: at the earliest when it has acknowledged
 * everything that the new one may wait for.
 */
import { extensionType, listenerType } from '../../../../machines/discovery/xds/ads-types.ts';
import { onceForPair } from '../../../model/collections/once-for.ts';
import type { EncodedResource, ResourceReferences } from '../resource-source.ts';
import { differenceOf, type SentResources } from '../responses/ads-sent.ts';

type ResourceMap = ReadonlyMap<string, EncodedResource>;

/** The stream of the client. */
export interface DrainingStream {
  readonly references: ResourceReferences;
  readonly removal: RemovalTimes;
  sentOf(typeUrl: string): SentResources;
  now(): number;
}

export interface RemovalTimes {
  /** Since the client has acknowledged that nothing names a cluster, until it is removed. */
  readonly delayMs: number;
  /** How long Envoy drains the connections of a listener that was replaced. */
  readonly drainMs: number;
}

/** Listeners and route configurations that one response replaced. */
interface Replaced {
  readonly typeUrl: string;
  /** `undefined`: they are those of another stream, and not known. */
  readonly before: ResourceMap | undefined;
  readonly names: readonly string[];
  /** `undefined`: Envoy may not have begun to drain. */
  until: number | undefined;
}

/** Replacements that are remembered in detail; if there are more, everything that is removed drains. */
const maxReplacements = 16;

/** A new listener waits so long for a certificate that does not exist: Envoy's default for a source without a limit. */
export const maxListenerWarmingMs = 15_000;

const noNames: readonly string[] = [];

/** Listeners of the old map that are not the same in the new one. */
const replacedNames = onceForPair((before: ResourceMap, after: ResourceMap): readonly string[] => {
  const { changed, removed } = differenceOf(before, after);
  return [...changed.filter((name) => before.has(name)), ...removed];
});

export class DrainingListeners {
  readonly #stream: DrainingStream;
  #replaced: Replaced[] | undefined;

  constructor(stream: DrainingStream) {
    this.#stream = stream;
  }

  /** The client has listeners of another stream. It may drain some already, and replaces others by what it is sent first. */
  returning(): void {
    if (this.#replaced?.some(({ before }) => before === undefined) === true) return;
    this.#add({ typeUrl: listenerType, before: undefined, names: noNames, until: undefined });
  }

  /** A listener, route or extension response is about to be made. */
  replacing(typeUrl: string, next: ResourceMap): void {
    if (typeUrl === extensionType) return;
    const { resources: before } = this.#stream.sentOf(typeUrl);
    if (before.size === 0 || before === next) return;
    // Envoy goes on with the routes of a listener that drains under the name that they had.
    const names = typeUrl === listenerType ? replacedNames(before, next) : differenceOf(before, next).removed;
    if (names.length > 0) this.#add({ typeUrl, before, names, until: undefined });
  }

  #add(replaced: Replaced): void {
    this.#forgetDrained();
    this.#replaced = [...(this.#replaced ?? []), replaced];
    if (this.#replaced.length > maxReplacements) this.#replaced.splice(1, 1);
  }

  /** The client has acknowledged everything that may name clusters. */
  begun(): void {
    this.#forgetDrained();
    for (const one of this.#replaced ?? []) one.until ??= this.#stream.now() + this.#drainMs;
  }

  #forgetDrained(): void {
    const now = this.#stream.now();
    const left = this.#replaced?.filter(({ until }) => until === undefined || until > now) ?? [];
    this.#replaced = left.length === 0 ? undefined : left;
  }

  /** Steps of the removal delay in which a listener drains that was replaced just now. */
  get steps(): number {
    return Math.ceil(this.#drainMs / this.#stream.removal.delayMs) + 1;
  }

  get #drainMs(): number {
    return this.#stream.removal.drainMs + maxListenerWarmingMs;
  }

  /** Whether such a listener fetches a route configuration. Those of another stream are not known. */
  fetches(routeConfiguration: string): boolean {
    this.#forgetDrained();
    const { references } = this.#stream;
    return (this.#replaced ?? []).some(({ typeUrl, before, names }) =>
      names.some((name) => {
        const listener = typeUrl === listenerType ? before?.get(name) : undefined;
        return listener !== undefined && references.routeConfigurationsOf(listener).has(routeConfiguration);
      }),
    );
  }

  /** Whether such a listener names a cluster. */
  naming(): (cluster: string) => boolean {
    this.#forgetDrained();
    const replaced = this.#replaced ?? [];
    if (replaced.length >= maxReplacements || replaced.some(({ before }) => before === undefined)) return () => true;
    const { references } = this.#stream;
    return (cluster) =>
      replaced.some(({ before, names }) =>
        names.some((name) => {
          const resource = before?.get(name);
          return resource !== undefined && references.names(resource, cluster);
        }),
      );
  }
}
