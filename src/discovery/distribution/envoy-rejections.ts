/** What connected proxies reject at this moment, and by whose doing. One thing for each type of each stream, whatever it says how often. */

import { setBounded } from '../../model/collections/set-bounded.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { FollowedProxy } from './proxy-progress.ts';
import { type Blame, isTraced } from './rejection-origin.ts';

/** What a stream rejects of a type. */
interface Rejected {
  /** Undefined: not found out yet, or nobody can tell. */
  blame: Blame | undefined;
  isTraced: boolean;
}

/** What of an object is rejected. */
export interface RejectionsOfObject {
  readonly proxies: number;
  /** What most reject. */
  readonly blame: Blame;
}

/** Many proxies say the same; of strangers' own texts there is no end. */
const mostKept = 1_000;

export class EnvoyRejections<Proxy extends FollowedProxy> {
  readonly #byProxy = new Map<Proxy, Map<string, Rejected>>();
  readonly #same = new Map<string, Blame>();

  /** Whether there are any. */
  get isEmpty(): boolean {
    return this.#byProxy.size === 0;
  }

  /** @returns whether it has to be found out what it is about */
  add(proxy: Proxy, typeUrl: string): boolean {
    if (!isTraced(typeUrl)) return false;
    const ofProxy = this.#byProxy.get(proxy) ?? new Map<string, Rejected>();
    const known = ofProxy.get(typeUrl);
    // Its turn was just now: who rejects all the time must not take the time of those that wait.
    if (known?.isTraced === true) this.#byProxy.delete(proxy);
    this.#byProxy.set(proxy, ofProxy);
    // Until it is found out anew, what was found before holds: what is sent meanwhile is rejected for the same reason, mostly.
    ofProxy.set(typeUrl, { blame: known?.blame, isTraced: false });
    return true;
  }

  /** @returns whether there was one */
  remove(proxy: Proxy, typeUrl: string): boolean {
    const ofProxy = this.#byProxy.get(proxy);
    if (ofProxy?.delete(typeUrl) !== true) return false;
    if (ofProxy.size === 0) this.#byProxy.delete(proxy);
    return true;
  }

  /** @returns whether it rejected anything */
  left(proxy: Proxy): boolean {
    return this.#byProxy.delete(proxy);
  }

  /**
   * Finds out what is not known yet, as long as there is time.
   *
   * @param blameOf costs what making a response costs
   * @returns whether all of it is known
   */
  trace(blameOf: (proxy: Proxy, typeUrl: string) => Blame | undefined, hasTime: () => boolean): boolean {
    const asked = new Map<ProxyShape, Map<string, Blame | undefined>>();
    for (const [proxy, types] of this.#byProxy) {
      for (const [typeUrl, rejected] of types) {
        if (rejected.isTraced) continue;
        const watch = proxy.watches[typeUrl];
        if (watch === undefined) {
          types.delete(typeUrl);
          continue;
        }
        // Proxies of a shape that were sent the same and say the same mean the same.
        const ofShape = asked.get(proxy.shape) ?? new Map<string, Blame | undefined>();
        asked.set(proxy.shape, ofShape);
        const question = [typeUrl, watch.versionSent, watch.versionAcked, watch.names.length, watch.lastError].join(
          ' ',
        );
        if (!ofShape.has(question)) {
          if (!hasTime()) return false;
          ofShape.set(question, this.#kept(blameOf(proxy, typeUrl)));
        }
        rejected.blame = ofShape.get(question);
        rejected.isTraced = true;
      }
    }
    return true;
  }

  /** Rejections by the object's key. */
  byObject(): ReadonlyMap<string, RejectionsOfObject> {
    const found = new Map<string, { proxies: Set<Proxy>; readonly counts: Map<Blame, number> }>();
    for (const [proxy, types] of this.#byProxy) {
      for (const { blame } of types.values()) {
        for (const key of blame?.keys ?? []) {
          const ofObject = found.get(key) ?? { proxies: new Set(), counts: new Map<Blame, number>() };
          found.set(key, ofObject);
          ofObject.proxies.add(proxy);
          ofObject.counts.set(blame!, (ofObject.counts.get(blame!) ?? 0) + 1);
        }
      }
    }
    return new Map(
      [...found].map(([key, { proxies, counts }]) => [key, { proxies: proxies.size, blame: mostFrequent(counts) }]),
    );
  }

  #kept(blame: Blame | undefined): Blame | undefined {
    if (blame === undefined) return undefined;
    const key = JSON.stringify(blame);
    const same = this.#same.get(key);
    if (same !== undefined) return same;
    setBounded(this.#same, key, blame, mostKept);
    return blame;
  }
}

/** The most frequent one; the first of those that are equally frequent. */
function mostFrequent(counts: ReadonlyMap<Blame, number>): Blame {
  let best: [Blame, number] | undefined;
  for (const entry of counts) if (best === undefined || entry[1] > best[1]) best = entry;
  return best![0];
}
