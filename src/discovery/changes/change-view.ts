/** JSON of `/debug/changes`. */
import { compareText, configKeyText } from '../../model/config/config.ts';
import { namesIn } from '../distribution/named-resources.ts';
import type { MeshNode } from '../push/mesh-resources.ts';
import type { ChangeHistory } from './change-history.ts';
import {
  maxNames,
  type ProxyCounts,
  type PushRecord,
  type RecordedChange,
  type RecordedRejection,
  type UnpushedRejection,
} from './push-record.ts';

export interface ChangeFilter {
  /** Unix time in milliseconds. */
  readonly since?: number;
  readonly until?: number;
  /** Substring of `Kind/namespace/name`, or of a service's `namespace/hostname`. */
  readonly object?: string;
  /** Substring of a node ID. Selects pushes that such a proxy received, rejected or has not acknowledged. */
  readonly proxy?: string;
  readonly rejected: boolean;
  readonly endpoints: boolean;
}

export interface NamedItems<Item> {
  readonly items: readonly Item[];
  readonly more?: number;
}

export interface PushView {
  /** Number of the push since the start, which is the part of `version` after the slash. */
  readonly push: number;
  readonly version: string;
  readonly time: string;
  /** Includes debouncing and building the push context. */
  readonly waitedMs?: number;
  /** Time from the push to the last ACK or rejection. */
  readonly answeredMs?: number;
  readonly first?: true;
  /** In a full push, anything may have changed. */
  readonly full: boolean;
  /**
   * Sorted: objects that match the filter, then those that a rejection of this push names, then EnvoyFilters if the push was rejected, then removed,
   * changed and added ones.
   */
  readonly objects: NamedItems<RecordedChange>;
  readonly services: NamedItems<string>;
  readonly endpoints: NamedItems<string>;
  readonly proxies: ProxyCounts;
  readonly pushedTo: NamedItems<string>;
  readonly pendingAt: NamedItems<string>;
  readonly rejections: NamedItems<RecordedRejection>;
}

export interface ChangesView {
  /** Start of the history (ISO 8601). */
  readonly since?: string;
  readonly kept: ChangeHistory['occupancy'];
  /** Oldest first. Empty with a filter of objects. */
  readonly unpushedRejections: readonly UnpushedRejection[];
  /** Oldest first. */
  readonly pushes: readonly PushView[];
}

export function changesView(
  history: ChangeHistory,
  nodes: () => Iterable<MeshNode>,
  filter: ChangeFilter,
): ChangesView {
  const { records } = history;
  const firstRecord = records[0];
  const pushes: PushView[] = [];
  for (const record of records) {
    if (!isInTimeRange(record, filter) || !hasObject(record, filter)) continue;
    if (filter.rejected && record.rejections.count === 0) continue;
    if (record.isOfEndpoints && !filter.endpoints && filter.object === undefined && !filter.rejected) continue;
    const view = viewOf(record, [...history.pendingAt(record, nodes())], filter);
    if (hasProxy(view, filter)) pushes.push(view);
  }
  const unpushedRejections = history.unpushedRejections.filter((rejection) => isSelected(rejection, filter));
  return {
    ...(firstRecord && { since: timeText(firstRecord.publishedAt) }),
    kept: history.occupancy,
    unpushedRejections,
    pushes,
  };
}

function isSelected({ at, proxy }: UnpushedRejection, filter: ChangeFilter): boolean {
  return (
    filter.object === undefined &&
    isInTimeRange({ publishedAt: Date.parse(at) }, filter) &&
    (filter.proxy === undefined || proxy.includes(filter.proxy))
  );
}

function isInTimeRange(
  { publishedAt }: Pick<PushRecord, 'publishedAt'>,
  { since = 0, until = Number.POSITIVE_INFINITY }: ChangeFilter,
): boolean {
  return publishedAt >= since && publishedAt <= until;
}

function hasObject({ objects, services, endpoints }: PushRecord, { object }: ChangeFilter): boolean {
  if (object === undefined) return true;
  return (
    objects.items.some((item) => configKeyText(item).includes(object)) ||
    [...services.items, ...endpoints.items].some((name) => name.includes(object))
  );
}

function hasProxy({ pushedTo, pendingAt, rejections }: PushView, { proxy }: ChangeFilter): boolean {
  if (proxy === undefined) return true;
  const rejectingProxies = rejections.items.map((rejection) => rejection.proxy);
  return [...pushedTo.items, ...pendingAt.items, ...rejectingProxies].some((name) => name.includes(proxy));
}

function viewOf(record: PushRecord, pending: readonly string[], { object }: ChangeFilter): PushView {
  const { version, number, publishedAt, firstChangeAt, lastResponseAt, isFirst, full, proxies } = record;
  const pendingAt = pending.slice(0, maxNames.proxies);
  return {
    push: number,
    version,
    time: timeText(publishedAt),
    ...(firstChangeAt !== undefined && { waitedMs: publishedAt - firstChangeAt }),
    ...(lastResponseAt !== undefined && { answeredMs: lastResponseAt - publishedAt }),
    ...(isFirst && { first: true }),
    full,
    objects: { ...namedItems(record.objects), items: sortedObjects(record, object) },
    services: namedItems(record.services),
    endpoints: namedItems(record.endpoints),
    proxies: { ...proxies },
    pushedTo: namedItems(record.pushedTo),
    pendingAt: namedItems({ items: pendingAt, more: pending.length - pendingAt.length }),
    rejections: namedItems(record.rejections),
  };
}

const changeOrder: readonly RecordedChange['change'][] = ['removed', 'changed', 'added'];

/** Changes and removals break requests more often than additions. */
function sortedObjects(
  { objects: { items }, rejections }: PushRecord,
  searchedText: string | undefined,
): readonly RecordedChange[] {
  const reasons = rejections.items.map(({ reason }) => reason);
  const rankOf = (object: RecordedChange): number => {
    if (searchedText !== undefined && configKeyText(object).includes(searchedText)) return 0;
    if (reasons.some((reason) => namesIn(reason, [object.name]).length > 0)) return 1;
    // Patches of EnvoyFilters, unlike other objects, were not validated when they were read.
    if (reasons.length > 0 && object.kind === 'EnvoyFilter') return 2;
    return 3 + changeOrder.indexOf(object.change);
  };
  return items
    .map((object) => ({ object, rank: rankOf(object) }))
    .toSorted(
      (one, other) =>
        one.rank - other.rank ||
        changeOrder.indexOf(one.object.change) - changeOrder.indexOf(other.object.change) ||
        compareText(configKeyText(one.object), configKeyText(other.object)),
    )
    .map(({ object }) => object);
}

function namedItems<Item>({
  items,
  more,
}: {
  readonly items: readonly Item[];
  readonly more: number;
}): NamedItems<Item> {
  return { items, ...(more > 0 && { more }) };
}

function timeText(ms: number): string {
  return new Date(ms).toISOString();
}
