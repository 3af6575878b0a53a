/** One push of the history: what changed, and what proxies did with it. */
import type { ConfigKey } from '../../model/config/config.ts';

/** Names that a push keeps; what exceeds them is counted. */
export const maxNames = { objects: 1_000, services: 500, endpoints: 200, proxies: 100, rejections: 20 } as const;

/** An object that differs from the previous push. */
export interface ChangedObject extends ConfigKey {
  readonly change: 'added' | 'changed' | 'removed';
  /** `mesh/cart.yaml:12` or the address of a source over xDS; absent for objects of a cluster. For a removed object, where it was. */
  readonly source?: string;
  /** Of an object of a cluster. */
  readonly resourceVersion?: string;
}

/** A response that a proxy rejected (NACK). */
export interface Rejection {
  /** ISO 8601. */
  readonly at: string;
  /** Node ID. */
  readonly proxy: string;
  /** `cluster.v3.Cluster`. */
  readonly type: string;
  /** Envoy's message. */
  readonly reason: string;
}

/** The first items of a list, and how many there are. */
export class BoundedList<Item> {
  readonly items: Item[] = [];
  count = 0;
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  /** @returns whether the item is kept */
  add(item: Item): boolean {
    this.count++;
    if (this.items.length >= this.#max) return false;
    this.items.push(item);
    return true;
  }

  /** Items that are counted only. */
  get more(): number {
    return this.count - this.items.length;
  }
}

/** Number of proxies by what they did with the push. */
export interface ProxyCounts {
  /** Received at least one response because of the push. */
  pushed: number;
  acknowledged: number;
  /** Rejected at least one response. */
  rejected: number;
  /** Have not answered yet. */
  pending: number;
  /** Received the next push, or disconnected, before they answered. */
  unanswered: number;
}

export interface PushRecord {
  /** Version of the push context: `<ISO time>/<number>`. */
  readonly version: string;
  /** The number in it. */
  readonly number: number;
  /** Unix time in milliseconds. */
  readonly publishedAt: number;
  /** Of the first change that the push carries, Unix time in milliseconds; absent: not known. */
  readonly firstChangeAt?: number;
  /** The first push after the start: all objects, which are counted only. */
  readonly isFirst: boolean;
  /** Everything may have changed: mesh settings, or an operator's order. */
  readonly full: boolean;
  readonly objects: BoundedList<ChangedObject>;
  /** `namespace/hostname`. */
  readonly services: BoundedList<string>;
  /** `namespace/hostname`. */
  readonly endpoints: BoundedList<string>;
  readonly proxies: ProxyCounts;
  /** Node IDs. */
  readonly pushedTo: BoundedList<string>;
  readonly rejections: BoundedList<Rejection>;
  /** Only endpoints changed. */
  isOfEndpoints: boolean;
  /** When the last proxy answered, Unix time in milliseconds. */
  lastAnswerAt: number | undefined;
  /** Approximate bytes of the record. */
  bytes: number;
}

/** Bytes of a record without names, and of each name beside its characters. */
const recordBytes = 600;
const nameBytes = 96;

export function newRecord(
  head: Pick<PushRecord, 'version' | 'publishedAt' | 'isFirst' | 'full' | 'firstChangeAt'>,
): PushRecord {
  return {
    ...head,
    number: Number(head.version.slice(head.version.lastIndexOf('/') + 1)),
    objects: new BoundedList(maxNames.objects),
    services: new BoundedList(maxNames.services),
    endpoints: new BoundedList(maxNames.endpoints),
    proxies: { pushed: 0, acknowledged: 0, rejected: 0, pending: 0, unanswered: 0 },
    pushedTo: new BoundedList(maxNames.proxies),
    rejections: new BoundedList(maxNames.rejections),
    isOfEndpoints: false,
    lastAnswerAt: undefined,
    bytes: recordBytes,
  };
}

/** Approximate bytes of a kept item. */
export function bytesOf(item: string | object): number {
  if (typeof item === 'string') return nameBytes + item.length;
  let bytes = nameBytes;
  for (const value of Object.values(item)) if (typeof value === 'string') bytes += value.length;
  return bytes;
}
