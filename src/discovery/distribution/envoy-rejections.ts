/** Each type of a stream has one entry, regardless of the number of NACKs. */

import { setBounded } from '../../model/collections/set-bounded.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { FollowedProxy } from './proxy-progress.ts';
import { isTraced, type RejectionCause } from './rejection-origin.ts';

interface TypeRejection {
  /** `undefined` if unknown or not traced yet. */
  cause: RejectionCause | undefined;
  isTraced: boolean;
}

export interface RejectionsOfObject {
  readonly proxies: number;
  readonly cause: RejectionCause;
}

/** Many proxies report the same cause, but the number of error texts is unlimited. */
const maxCauses = 1_000;

export class EnvoyRejections<Proxy extends FollowedProxy> {
  readonly #rejectionsByProxy = new Map<Proxy, Map<string, TypeRejection>>();
  readonly #causes = new Map<string, RejectionCause>();

  get isEmpty(): boolean {
    return this.#rejectionsByProxy.size === 0;
  }

  /** @returns whether the cause must be traced */
  add(proxy: Proxy, typeUrl: string): boolean {
    if (!isTraced(typeUrl)) return false;
    const rejectionsOfProxy = this.#rejectionsByProxy.get(proxy) ?? new Map<string, TypeRejection>();
    const previousRejection = rejectionsOfProxy.get(typeUrl);
    // Moves the proxy to the end, so that a proxy that rejects repeatedly does not delay others.
    if (previousRejection?.isTraced === true) this.#rejectionsByProxy.delete(proxy);
    this.#rejectionsByProxy.set(proxy, rejectionsOfProxy);
    // Keeps the previous cause until the new one is traced, because it is usually the same.
    rejectionsOfProxy.set(typeUrl, { cause: previousRejection?.cause, isTraced: false });
    return true;
  }

  remove(proxy: Proxy, typeUrl: string): boolean {
    const rejectionsOfProxy = this.#rejectionsByProxy.get(proxy);
    if (rejectionsOfProxy?.delete(typeUrl) !== true) return false;
    if (rejectionsOfProxy.size === 0) this.#rejectionsByProxy.delete(proxy);
    return true;
  }

  disconnected(proxy: Proxy): boolean {
    return this.#rejectionsByProxy.delete(proxy);
  }

  /**
   * @param causeOf costs as much as generating a response
   * @returns whether all causes are traced
   */
  trace(causeOf: (proxy: Proxy, typeUrl: string) => RejectionCause | undefined, hasTimeLeft: () => boolean): boolean {
    const causesByShape = new Map<ProxyShape, Map<string, RejectionCause | undefined>>();
    for (const [proxy, types] of this.#rejectionsByProxy) {
      for (const [typeUrl, typeRejection] of types) {
        if (typeRejection.isTraced) continue;
        const watch = proxy.watches[typeUrl];
        if (watch === undefined) {
          types.delete(typeUrl);
          continue;
        }
        // Proxies of one shape with the same response and error have the same cause.
        const causesOfShape = causesByShape.get(proxy.shape) ?? new Map<string, RejectionCause | undefined>();
        causesByShape.set(proxy.shape, causesOfShape);
        const key = [typeUrl, watch.versionSent, watch.versionAcked, watch.names.length, watch.lastError].join(' ');
        if (!causesOfShape.has(key)) {
          if (!hasTimeLeft()) return false;
          causesOfShape.set(key, this.#intern(causeOf(proxy, typeUrl)));
        }
        typeRejection.cause = causesOfShape.get(key);
        typeRejection.isTraced = true;
      }
    }
    return true;
  }

  rejectionsByObject(): ReadonlyMap<string, RejectionsOfObject> {
    const rejectionsByObject = new Map<string, { proxies: Set<Proxy>; readonly counts: Map<RejectionCause, number> }>();
    for (const [proxy, types] of this.#rejectionsByProxy) {
      for (const { cause } of types.values()) {
        for (const key of cause?.keys ?? []) {
          const objectRejections = rejectionsByObject.get(key) ?? {
            proxies: new Set(),
            counts: new Map<RejectionCause, number>(),
          };
          rejectionsByObject.set(key, objectRejections);
          objectRejections.proxies.add(proxy);
          objectRejections.counts.set(cause!, (objectRejections.counts.get(cause!) ?? 0) + 1);
        }
      }
    }
    return new Map(
      [...rejectionsByObject].map(([key, { proxies, counts }]) => [
        key,
        { proxies: proxies.size, cause: findMostFrequent(counts) },
      ]),
    );
  }

  #intern(cause: RejectionCause | undefined): RejectionCause | undefined {
    if (cause === undefined) return undefined;
    const key = JSON.stringify(cause);
    const cachedCauses = this.#causes.get(key);
    if (cachedCauses !== undefined) return cachedCauses;
    setBounded(this.#causes, key, cause, maxCauses);
    return cause;
  }
}

function findMostFrequent(counts: ReadonlyMap<RejectionCause, number>): RejectionCause {
  let mostSpecificCause: [RejectionCause, number] | undefined;
  for (const entry of counts)
    if (mostSpecificCause === undefined || entry[1] > mostSpecificCause[1]) mostSpecificCause = entry;
  return mostSpecificCause![0];
}
