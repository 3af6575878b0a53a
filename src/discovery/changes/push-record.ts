import type { ConfigKey } from '../../model/config/config.ts';

/** Maximum number of names that are stored per push. Further names are only counted. */
export const maxNames = { objects: 1_000, services: 500, endpoints: 200, proxies: 100, rejections: 20 } as const;

export interface RecordedChange extends ConfigKey {
  readonly change: 'added' | 'changed' | 'removed';
  /** `mesh/cart.yaml:12`, or the address of a source over xDS. `undefined` for objects of a cluster. */
  readonly source?: string;
  readonly resourceVersion?: string;
}

export interface RecordedRejection {
  /** ISO 8601. */
  readonly at: string;
  readonly proxy: string;
  readonly type: string;
  readonly reason: string;
}

export interface UnpushedRejection extends RecordedRejection {
  /** `request` means that the connected proxy requested further resources. */
  readonly receivedOn: 'connect' | 'request';
}

export class BoundedList<Item> {
  readonly items: Item[] = [];
  count = 0;
  readonly #maxItems: number;

  constructor(maxItems: number) {
    this.#maxItems = maxItems;
  }

  add(item: Item): boolean {
    this.count++;
    if (this.items.length >= this.#maxItems) return false;
    this.items.push(item);
    return true;
  }

  get more(): number {
    return this.count - this.items.length;
  }
}

export interface ProxyCounts {
  pushed: number;
  acknowledged: number;
  rejected: number;
  pending: number;
  /** Number of proxies that received the next push, or disconnected, before they responded. */
  unanswered: number;
}

export interface PushRecord {
  /** Version of the push context: `<ISO time>/<number>`. */
  readonly version: string;
  readonly number: number;
  /** Unix time in milliseconds. */
  readonly publishedAt: number;
  readonly firstChangeAt?: number;
  /** The first push contains all objects, so they are only counted. */
  readonly isFirst: boolean;
  /** Mesh settings or an operator's request force a full push. */
  readonly full: boolean;
  readonly objects: BoundedList<RecordedChange>;
  /** `namespace/hostname`. */
  readonly services: BoundedList<string>;
  readonly endpoints: BoundedList<string>;
  readonly proxies: ProxyCounts;
  /** Node IDs. */
  readonly pushedTo: BoundedList<string>;
  readonly rejections: BoundedList<RecordedRejection>;
  isOfEndpoints: boolean;
  /** Unix time in milliseconds. */
  lastResponseAt: number | undefined;
  bytes: number;
}

/** Bytes of a record without names, and overhead of each name. */
const recordBytes = 600;
const nameBytes = 96;

export function createPushRecord(
  recordFields: Pick<PushRecord, 'version' | 'publishedAt' | 'isFirst' | 'full' | 'firstChangeAt'>,
): PushRecord {
  return {
    ...recordFields,
    number: Number(recordFields.version.slice(recordFields.version.lastIndexOf('/') + 1)),
    objects: new BoundedList(maxNames.objects),
    services: new BoundedList(maxNames.services),
    endpoints: new BoundedList(maxNames.endpoints),
    proxies: { pushed: 0, acknowledged: 0, rejected: 0, pending: 0, unanswered: 0 },
    pushedTo: new BoundedList(maxNames.proxies),
    rejections: new BoundedList(maxNames.rejections),
    isOfEndpoints: false,
    lastResponseAt: undefined,
    bytes: recordBytes,
  };
}

export function itemBytes(item: string | object): number {
  if (typeof item === 'string') return nameBytes + item.length;
  let bytes = nameBytes;
  for (const value of Object.values(item)) if (typeof value === 'string') bytes += value.length;
  return bytes;
}
