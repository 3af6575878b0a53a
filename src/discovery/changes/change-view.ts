/** The history of changes in JSON: `/debug/changes`. */
import { compareText, configKeyText } from '../../model/config/config.ts';
import type { MeshNode } from '../push/mesh-resources.ts';
import type { ChangeHistory } from './change-history.ts';
import { type ChangedObject, maxNames, type ProxyCounts, type PushRecord, type Rejection } from './push-record.ts';

/** Which pushes are shown. */
export interface ChangeFilter {
  /** Unix time in milliseconds. */
  readonly since?: number;
  readonly until?: number;
  /** Part of `Kind/namespace/name`, or of `namespace/hostname` of a service. */
  readonly object?: string;
  /** Part of a node ID: pushes that such a proxy received, rejected or has not answered. */
  readonly proxy?: string;
  /** Only pushes that a proxy rejected. */
  readonly rejected: boolean;
  /** Also pushes of endpoints alone. */
  readonly endpoints: boolean;
}

/** A list whose names are bounded. */
export interface NamedItems<Item> {
  readonly items: readonly Item[];
  /** Items that are not listed. Absent: none. */
  readonly more?: number;
}

export interface PushView {
  /** Number of the push since the start; the part of `version` after the slash. */
  readonly push: number;
  readonly version: string;
  /** When the push began, ISO 8601. */
  readonly time: string;
  /** From the first change to the push: debounce and building the push context. */
  readonly waitedMs?: number;
  /** From the push to the last ACK or rejection. Absent: there is none. */
  readonly answeredMs?: number;
  readonly first?: true;
  /** Everything may have changed. */
  readonly full: boolean;
  /** Those that the filter searches for first, then removed, changed and added ones. */
  readonly objects: NamedItems<ChangedObject>;
  readonly services: NamedItems<string>;
  readonly endpoints: NamedItems<string>;
  readonly proxies: ProxyCounts;
  readonly pushedTo: NamedItems<string>;
  readonly pendingAt: NamedItems<string>;
  readonly rejections: NamedItems<Rejection>;
}

export interface ChangesView {
  /** Start of the history, ISO 8601: earlier pushes are not known. Absent: it is empty. */
  readonly since?: string;
  readonly kept: ChangeHistory['occupancy'];
  /** Oldest first. */
  readonly pushes: readonly PushView[];
}

/** @param nodes connected proxies */
export function changesView(
  history: ChangeHistory,
  nodes: () => Iterable<MeshNode>,
  filter: ChangeFilter,
): ChangesView {
  const { records } = history;
  const first = records[0];
  const pushes: PushView[] = [];
  for (const record of records) {
    if (!isInTime(record, filter) || !hasObject(record, filter)) continue;
    if (filter.rejected && record.rejections.count === 0) continue;
    if (record.isOfEndpoints && !filter.endpoints && filter.object === undefined && !filter.rejected) continue;
    const view = viewOf(record, [...history.pendingAt(record, nodes())], filter);
    if (hasProxy(view, filter)) pushes.push(view);
  }
  return { ...(first && { since: timeText(first.publishedAt) }), kept: history.occupancy, pushes };
}

function isInTime({ publishedAt }: PushRecord, { since = 0, until = Number.POSITIVE_INFINITY }: ChangeFilter): boolean {
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
  const rejecting = rejections.items.map((rejection) => rejection.proxy);
  return [...pushedTo.items, ...pendingAt.items, ...rejecting].some((name) => name.includes(proxy));
}

function viewOf(record: PushRecord, pending: readonly string[], { object }: ChangeFilter): PushView {
  const { version, number, publishedAt, firstChangeAt, lastAnswerAt, isFirst, full, proxies } = record;
  const pendingAt = pending.slice(0, maxNames.proxies);
  return {
    push: number,
    version,
    time: timeText(publishedAt),
    ...(firstChangeAt !== undefined && { waitedMs: publishedAt - firstChangeAt }),
    ...(lastAnswerAt !== undefined && { answeredMs: lastAnswerAt - publishedAt }),
    ...(isFirst && { first: true }),
    full,
    objects: { ...named(record.objects), items: sortedObjects(record.objects.items, object) },
    services: named(record.services),
    endpoints: named(record.endpoints),
    proxies: { ...proxies },
    pushedTo: named(record.pushedTo),
    pendingAt: named({ items: pendingAt, more: pending.length - pendingAt.length }),
    rejections: named(record.rejections),
  };
}

const changeOrder: readonly ChangedObject['change'][] = ['removed', 'changed', 'added'];

/** Those that are searched for first; then changes of what was there, which break requests more often than additions. */
function sortedObjects(objects: readonly ChangedObject[], searched: string | undefined): readonly ChangedObject[] {
  const isSearched = (object: ChangedObject): boolean =>
    searched !== undefined && configKeyText(object).includes(searched);
  return objects.toSorted(
    (one, other) =>
      Number(isSearched(other)) - Number(isSearched(one)) ||
      changeOrder.indexOf(one.change) - changeOrder.indexOf(other.change) ||
      compareText(configKeyText(one), configKeyText(other)),
  );
}

function named<Item>({ items, more }: { readonly items: readonly Item[]; readonly more: number }): NamedItems<Item> {
  return { items, ...(more > 0 && { more }) };
}

function timeText(ms: number): string {
  return new Date(ms).toISOString();
}
