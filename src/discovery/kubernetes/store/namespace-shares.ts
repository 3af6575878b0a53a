/** The limits prevent a tenant from exhausting the control plane's memory (issue 33, item 10). */
import { getHeapStatistics } from 'node:v8';
import { placeholderBuilders } from '../../../model/kinds/closed.ts';

/** Data derived from the stored objects of a namespace (decoded form, indexes, resources of proxies) takes several times as much. */
const maxShareOfHeap = 1 / 16;
/** Maximum per kind and namespace. Further rejected objects are only counted. */
export const maxNamedRefusals = 100;

export function maxBytesOfNamespace(heapLimitBytes = getHeapStatistics().heap_size_limit): number {
  return Math.floor(heapLimitBytes * maxShareOfHeap);
}

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
 * Kinds that restrict access have a separate limit. Otherwise a tenant could lift a restriction by filling the
 * namespace with pods.
 */
export class SharesOfKinds {
  readonly #restrictedShares: NamespaceShares;
  readonly #generalShares: NamespaceShares;

  constructor(maxBytes = maxBytesOfNamespace()) {
    this.#restrictedShares = new NamespaceShares(maxBytes / 4);
    this.#generalShares = new NamespaceShares(maxBytes);
  }

  sharesOfKind(kind: string): NamespaceShares {
    return placeholderBuilders.has(kind) ? this.#restrictedShares : this.#generalShares;
  }
}
