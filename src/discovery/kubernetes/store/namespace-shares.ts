/**
 * How much of the heap the objects of one namespace may take (issue 33, item 10). Whoever may write in one namespace must not use up the
 * memory of the control plane: what exceeds the share is refused, and is reported.
 */
import { getHeapStatistics } from 'node:v8';
import { standInBuilders } from '../../../model/kinds/closed.ts';

/**
 * Of the heap's limit, for the objects of one namespace as informers keep them. What is made of an object (its decoded form, indexes,
 * resources of proxies) takes some times as much.
 */
const maxShareOfHeap = 1 / 16;
/** Of refused objects of one kind and namespace, so many are named: each takes memory, too. Further ones are only counted. */
export const maxNamedRefusals = 100;

/** Bytes that the objects of one namespace may take. */
export function maxBytesOfNamespace(heapLimitBytes = getHeapStatistics().heap_size_limit): number {
  return Math.floor(heapLimitBytes * maxShareOfHeap);
}

/** Bytes that are taken, by namespace: of several kinds that share one limit. */
export class NamespaceShares {
  readonly maxBytes: number;
  readonly #bytes = new Map<string, number>();

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes;
  }

  bytesOf(namespace: string): number {
    return this.#bytes.get(namespace) ?? 0;
  }

  add(namespace: string, bytes: number): void {
    const sum = this.bytesOf(namespace) + bytes;
    if (sum > 0) this.#bytes.set(namespace, sum);
    else this.#bytes.delete(namespace);
  }
}

/**
 * Kinds that restrict share a limit of their own, so that a namespace full of other objects never costs a restriction: whoever fills it with
 * pods would open it.
 */
export class SharesOfKinds {
  readonly #restricting: NamespaceShares;
  readonly #others: NamespaceShares;

  constructor(maxBytes = maxBytesOfNamespace()) {
    this.#restricting = new NamespaceShares(maxBytes / 4);
    this.#others = new NamespaceShares(maxBytes);
  }

  of(kind: string): NamespaceShares {
    return standInBuilders.has(kind) ? this.#restricting : this.#others;
  }
}
