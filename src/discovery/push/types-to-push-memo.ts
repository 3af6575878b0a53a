import { type ConfigKey, parseConfigKey } from '../../model/config/config.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import { type PushedType, typesToPush } from '../../model/proxy/types-to-push.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { ChangesBetween, ContextHistory } from './contexts/context-history.ts';

export interface ContextPair {
  readonly current: PushContext;
  readonly previous: PushContext;
  readonly changes: ChangesBetween;
  readonly keys: readonly ConfigKey[];
  /** Namespaces of changed endpoints. `undefined` if anything else has changed. */
  readonly endpointNamespaces: ReadonlySet<string> | undefined;
  /** Results by current, then previous shape. */
  readonly resultsByShape: Map<ProxyShape, Map<ProxyShape, ReadonlySet<PushedType>>>;
}

/** Most proxies move between the same two contexts, and a few from older ones. */
const maxPairs = 4;

export class TypesToPushMemo {
  /** Most recent first. */
  #pairs: readonly ContextPair[] = [];

  typesOf(
    { current, previous, changes, keys, resultsByShape }: ContextPair,
    shape: ProxyShape,
    previousShape: ProxyShape,
  ): ReadonlySet<PushedType> {
    const resultsOfShape = resultsByShape.get(shape) ?? new Map<ProxyShape, ReadonlySet<PushedType>>();
    resultsByShape.set(shape, resultsOfShape);
    let types = resultsOfShape.get(previousShape);
    if (types === undefined) {
      const change = { forced: changes.forced, keys };
      types = typesToPush(change, { shape, context: current }, { shape: previousShape, context: previous });
      resultsOfShape.set(previousShape, types);
    }
    return types;
  }

  /** @param changedKeys changed objects if the history does not contain both contexts */
  pairOf(
    current: PushContext,
    previous: PushContext,
    history: Pick<ContextHistory, 'changesBetween'>,
    changedKeys: ReadonlySet<string>,
  ): ContextPair {
    const cachedPair = this.#pairs.find((pair) => pair.current === current && pair.previous === previous);
    if (cachedPair !== undefined) return cachedPair;
    const recordedChanges = history.changesBetween(previous, current);
    const changes = recordedChanges ?? { forced: false, changedKeys };
    const keys = [...changes.changedKeys].map(parseConfigKey);
    const onlyEndpoints =
      recordedChanges !== undefined && !changes.forced && keys.every(({ kind }) => kind === 'Endpoints');
    const pair: ContextPair = {
      ...{ current, previous, changes, keys, resultsByShape: new Map() },
      endpointNamespaces: onlyEndpoints ? new Set(keys.map(({ namespace }) => namespace)) : undefined,
    };
    // Removes older pairs, which would keep their contexts in memory.
    const remainingPairs = this.#pairs.filter((pair) => pair.current === current);
    this.#pairs = [pair, ...remainingPairs.slice(0, maxPairs - 1)];
    return pair;
  }
}

/** Most changes affect only endpoints of other namespaces. A proxy's service targets are services of its own namespace. */
export const keepsShape = ({ endpointNamespaces }: ContextPair, namespace: string): boolean =>
  endpointNamespaces?.has(namespace) === false;
