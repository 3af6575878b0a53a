/** Proxies are grouped, so that an object is compared once for all proxies with the same shape and progress. */
import { proxyConfigType } from '../../../machines/discovery/xds/ads-types.ts';
import {
  isBehind,
  isSettled,
  isSubscribed,
  type Watch,
  type Watches,
} from '../../../machines/discovery/xds/ads-watch.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import { type PushedType, pushedTypeOf } from '../../model/proxy/types-to-push.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';

export interface FollowedProxy {
  readonly shape: ProxyShape;
  readonly context: PushContext;
  readonly watches: Watches;
}

interface ProgressLevel {
  count: number;
  /** Types with unacknowledged responses. {@link lastAckedOfOthers} applies to other types. */
  readonly lastAckedByType: ReadonlyMap<PushedType, number>;
  readonly lastAckedOfOthers: number;
  readonly types: ReadonlySet<PushedType>;
}

export interface ProxyCount {
  readonly upToDate: number;
  readonly concerned: number;
}

/** The version is `<time>/<counter>`. */
export function numberOfVersion(version: string): number {
  return Number(version.slice(version.lastIndexOf('/') + 1)) || 0;
}

export class ProxyProgress {
  readonly #levels = new Map<ProxyShape, Map<string, ProgressLevel>>();

  add({ shape, context, watches }: FollowedProxy): void {
    const contextNumber = numberOfVersion(context.version);
    const { key, lastAckedByType, types } = progressLevelOf(watches, contextNumber);
    const levelsOfShape = this.#levels.get(shape) ?? new Map<string, ProgressLevel>();
    this.#levels.set(shape, levelsOfShape);
    const level = levelsOfShape.get(key);
    if (level === undefined)
      levelsOfShape.set(key, { count: 1, lastAckedByType, lastAckedOfOthers: contextNumber, types });
    else level.count++;
  }

  /**
   * @param typesOf types in which the object affects a shape
   * @param number number of the first context that contains the object
   */
  countOf(typesOf: (shape: ProxyShape) => ReadonlySet<PushedType>, number: number): ProxyCount {
    let [upToDateCount, affectedCount] = [0, 0];
    for (const [shape, levels] of this.#levels) {
      const types = typesOf(shape);
      if (types.size === 0) continue;
      for (const level of levels.values()) {
        // A proxy that watches none of the types has nothing to acknowledge.
        if (!intersects(types, level.types)) continue;
        affectedCount += level.count;
        if (hasAcknowledgedAll(level, types, number)) upToDateCount += level.count;
      }
    }
    return { upToDate: upToDateCount, concerned: affectedCount };
  }
}

function progressLevelOf(
  watches: Watches,
  contextNumber: number,
): Pick<ProgressLevel, 'lastAckedByType' | 'types'> & { readonly key: string } {
  const pendingTypes = new Map<PushedType, number>();
  const types = new Set<PushedType>();
  let key = `${contextNumber}`;
  for (const typeUrl in watches) {
    const watch = watches[typeUrl]!;
    const type = typeUrl === proxyConfigType ? undefined : pushedTypeOf(typeUrl);
    if (type === undefined || !isSubscribed(watch)) continue;
    types.add(type);
    key += ` ${type}`;
    if (isAcknowledged(watch)) continue;
    const number = numberOfVersion(watch.versionAcked);
    pendingTypes.set(type, number);
    key += `:${number}`;
  }
  return { key, lastAckedByType: pendingTypes, types };
}

function isAcknowledged(watch: Watch): boolean {
  const { nonceSent, nonceAcked, due, awaits } = watch;
  if (awaits !== undefined) return false;
  return nonceSent === nonceAcked && isSettled(watch) && !isBehind(watch) && !due.all && due.requested.length === 0;
}

function hasAcknowledgedAll(
  { lastAckedByType, lastAckedOfOthers }: ProgressLevel,
  types: ReadonlySet<PushedType>,
  number: number,
): boolean {
  if (lastAckedOfOthers < number) return false;
  for (const type of types) if ((lastAckedByType.get(type) ?? lastAckedOfOthers) < number) return false;
  return true;
}

function intersects(one: ReadonlySet<PushedType>, other: ReadonlySet<PushedType>): boolean {
  for (const type of one) if (other.has(type)) return true;
  return false;
}
