/** Caches which types a change between two contexts pushes, by shape. */

import { type ConfigKey, parseConfigKey } from '../../model/config/config.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import { type ProxyInContext, type PushedType, typesToPush } from '../../model/proxy/types-to-push.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { ChangesBetween } from './contexts/context-history.ts';

interface ContextPair {
  readonly current: PushContext;
  readonly previous: PushContext;
  readonly changes: ChangesBetween;
  readonly keys: readonly ConfigKey[];
  /** Namespaces of the changed endpoints, if nothing else has changed. */
  readonly endpointNamespaces: ReadonlySet<string> | undefined;
  /** Results by current, then previous shape. */
  readonly resultsByShape: Map<ProxyShape, Map<ProxyShape, ReadonlySet<PushedType>>>;
}

/** Most proxies move between the same two contexts, and a few from older ones. */
const maxPairs = 4;

export class TypesToPushMemo {
  /** Most recent first. */
  #pairs: readonly ContextPair[] = [];

  /** @param changesOf called on a cache miss */
  typesToPush(now: ProxyInContext, earlier: ProxyInContext, changesOf: () => ChangesBetween): ReadonlySet<PushedType> {
    const { changes, keys, resultsByShape } = this.#pairFor(now.context, earlier.context, changesOf);
    const resultsOfShape = resultsByShape.get(now.shape) ?? new Map<ProxyShape, ReadonlySet<PushedType>>();
    resultsByShape.set(now.shape, resultsOfShape);
    let types = resultsOfShape.get(earlier.shape);
    if (types === undefined) {
      types = typesToPush({ forced: changes.forced, keys }, now, earlier);
      resultsOfShape.set(earlier.shape, types);
    }
    return types;
  }

  /**
   * True if only endpoints of other namespaces have changed, the most frequent case: a proxy's service targets are services of its own namespace.
   * Otherwise the shape has to be computed.
   */
  keepsShape(namespace: string, now: PushContext, earlier: PushContext, changesOf: () => ChangesBetween): boolean {
    const { endpointNamespaces } = this.#pairFor(now, earlier, changesOf);
    return endpointNamespaces?.has(namespace) === false;
  }

  #pairFor(now: PushContext, earlier: PushContext, changesOf: () => ChangesBetween): ContextPair {
    const cachedPair = this.#pairs.find((pair) => pair.current === now && pair.previous === earlier);
    if (cachedPair !== undefined) return cachedPair;
    const changes = changesOf();
    const keys = [...changes.changed].map(parseConfigKey);
    const onlyEndpoints = !changes.forced && keys.every(({ kind }) => kind === 'Endpoints');
    const pair: ContextPair = {
      ...{ current: now, previous: earlier, changes, keys, resultsByShape: new Map() },
      endpointNamespaces: onlyEndpoints ? new Set(keys.map(({ namespace }) => namespace)) : undefined,
    };
    // Removes older pairs, which would keep their contexts in memory.
    const remaining = this.#pairs.filter((other) => other.current === now);
    this.#pairs = [pair, ...remaining.slice(0, maxPairs - 1)];
    return pair;
  }
}
