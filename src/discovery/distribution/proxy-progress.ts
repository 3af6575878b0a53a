/**
 * How far proxies are, read from the records of their streams and gathered by what they have in common, so that an object is
 * looked at once for all proxies of a shape that are equally far. Nothing is counted while responses are sent and acknowledged.
 */
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

/** A connected proxy, as far as it matters here. */
export interface FollowedProxy {
  readonly shape: ProxyShape;
  /** The context that the proxy is served from. */
  readonly context: PushContext;
  readonly watches: Watches;
}

/** Proxies of one shape that are equally far. */
interface Level {
  count: number;
  /** By type the number of the context up to which they have acknowledged it; of types that are not in it {@link all}. */
  readonly behind: ReadonlyMap<PushedType, number>;
  readonly all: number;
  readonly types: ReadonlySet<PushedType>;
}

/** How many of the proxies that something concerns have it. */
export interface Count {
  readonly upToDate: number;
  readonly concerned: number;
}

/** `<time>/<counter>`: the place of a context among all of this program. */
export function numberOfVersion(version: string): number {
  return Number(version.slice(version.lastIndexOf('/') + 1)) || 0;
}

export class ProxyProgress {
  readonly #levels = new Map<ProxyShape, Map<string, Level>>();

  add({ shape, context, watches }: FollowedProxy): void {
    const all = numberOfVersion(context.version);
    const { key, behind, types } = levelOf(watches, all);
    const ofShape = this.#levels.get(shape) ?? new Map<string, Level>();
    this.#levels.set(shape, ofShape);
    const level = ofShape.get(key);
    if (level === undefined) ofShape.set(key, { count: 1, behind, all, types });
    else level.count++;
  }

  /**
   * @param typesOf in which types it concerns a shape
   * @param number of the first context that it is in
   */
  countOf(typesOf: (shape: ProxyShape) => ReadonlySet<PushedType>, number: number): Count {
    let [upToDate, concerned] = [0, 0];
    for (const [shape, levels] of this.#levels) {
      const types = typesOf(shape);
      if (types.size === 0) continue;
      for (const level of levels.values()) {
        // Whoever watches nothing of it has nothing to acknowledge.
        if (!intersects(types, level.types)) continue;
        concerned += level.count;
        if (hasAll(level, types, number)) upToDate += level.count;
      }
    }
    return { upToDate, concerned };
  }
}

function levelOf(watches: Watches, all: number): Pick<Level, 'behind' | 'types'> & { readonly key: string } {
  const behind = new Map<PushedType, number>();
  const types = new Set<PushedType>();
  let key = `${all}`;
  for (const typeUrl in watches) {
    const watch = watches[typeUrl]!;
    const type = typeUrl === proxyConfigType ? undefined : pushedTypeOf(typeUrl);
    if (type === undefined || !isSubscribed(watch)) continue;
    types.add(type);
    key += ` ${type}`;
    if (isAcknowledged(watch)) continue;
    const number = numberOfVersion(watch.versionAcked);
    behind.set(type, number);
    key += `:${number}`;
  }
  return { key, behind, types };
}

/** All that there is for the client in the context that it is served from, if there is anything, it has acknowledged. */
function isAcknowledged(watch: Watch): boolean {
  const { nonceSent, nonceAcked, due, awaits } = watch;
  if (awaits !== undefined) return false;
  return nonceSent === nonceAcked && isSettled(watch) && !isBehind(watch) && !due.all && due.asked.length === 0;
}

function hasAll({ behind, all }: Level, types: ReadonlySet<PushedType>, number: number): boolean {
  if (all < number) return false;
  for (const type of types) if ((behind.get(type) ?? all) < number) return false;
  return true;
}

function intersects(one: ReadonlySet<PushedType>, other: ReadonlySet<PushedType>): boolean {
  for (const type of one) if (other.has(type)) return true;
  return false;
}
