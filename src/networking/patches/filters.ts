/**
 * Patches of lists of filters (spec/discovery.md §8.9): what there is is removed and merged, then replaced, and then come new
 * ones, each of which the next can find. So a namespace does not remove or change what the whole mesh inserts. Envoy refuses
 * a list in which anything comes after the filter that ends it, so what patches leave there is taken out again.
 */
import type { DescMessage, Message } from '@bufbuild/protobuf';
import type { Any } from '@bufbuild/protobuf/wkt';
import { messageNameOf } from '../../model/envoy-api/message-name.ts';
import { currentFilterName } from '../../model/kinds/envoy-filter/envoy-filter.rules.ts';
import type { HeldPatch } from './held-patch.ts';
import { listsOf } from './in-turn.ts';
import { merged, PatchFailure, shallowCopy } from './merge-messages.ts';
import { isMerge, valueAs } from './patch-set.ts';
import { attempt } from './status.ts';

/** A filter of any of the three lists. */
export interface ListedFilter extends Message {
  name: string;
  readonly configType: { readonly case: string | undefined; readonly value?: unknown };
}

interface FilterList {
  readonly schema: DescMessage;
  /** The name that a patch looks for; undefined for none. */
  readonly wanted: (held: HeldPatch) => string | undefined;
  /** Whether the filter ends the list. */
  readonly isLast?: (filter: ListedFilter) => boolean;
}

/** The same list when nothing in it is another. */
export function patchedFilters<F extends ListedFilter>(
  filters: readonly F[],
  patches: readonly HeldPatch[],
  list: FilterList,
): readonly F[] {
  const insertedBy = new Map<F, HeldPatch>();
  let result = filters;
  for (const held of inPasses(patches)) {
    const wanted = list.wanted(held);
    const before = result;
    if (hasNothingToDo(held, wanted, before)) continue;
    result = attempt<readonly F[]>(held, before, () => applied(before, held, list.schema, wanted));
    for (const filter of madeBy(held, before, result, list.schema)) insertedBy.set(filter, held);
  }
  return result === filters ? filters : withoutUnreachable(result, insertedBy, list);
}

const passes: Readonly<Record<HeldPatch['patch']['operation'], number>> = {
  ...{ REMOVE: 0, MERGE: 0, MERGE_AND_REPLACE_LIST: 0, REPLACE: 1 },
  ...{ ADD: 2, INSERT_FIRST: 2, INSERT_BEFORE: 2, INSERT_AFTER: 2 },
};

function inPasses(patches: readonly HeldPatch[]): readonly HeldPatch[] {
  return [...patches].sort((a, b) => passes[a.patch.operation] - passes[b.patch.operation]);
}

/** What is in the list since a patch: the filter that it has as its value, or those that it has merged in their places. */
function madeBy<F extends ListedFilter>(
  held: HeldPatch,
  before: readonly F[],
  result: readonly F[],
  schema: DescMessage,
): readonly F[] {
  if (result === before || held.patch.operation === 'REMOVE') return [];
  return isMerge(held) ? result.filter((filter, index) => filter !== before[index]) : [valueAs(schema, held) as F];
}

/** What looks for a filter that is not there has nothing to do: that is no failure. */
function hasNothingToDo(
  { patch: { operation } }: HeldPatch,
  wanted: string | undefined,
  filters: readonly ListedFilter[],
): boolean {
  if (operation === 'ADD' || operation === 'INSERT_FIRST') return false;
  if (wanted === undefined) return operation !== 'INSERT_BEFORE' && operation !== 'INSERT_AFTER';
  return !filters.some(({ name }) => isCalled(name, wanted));
}

function applied<F extends ListedFilter>(
  filters: readonly F[],
  held: HeldPatch,
  schema: DescMessage,
  wanted: string | undefined,
): readonly F[] {
  const at = wanted === undefined ? -1 : filters.findIndex(({ name }) => isCalled(name, wanted));
  const value = (): F => valueAs(schema, held) as F;
  switch (held.patch.operation) {
    case 'ADD':
      return [...filters, value()];
    case 'INSERT_FIRST':
      return [value(), ...filters];
    case 'INSERT_BEFORE':
      return filters.toSpliced(Math.max(at, 0), 0, value());
    case 'INSERT_AFTER':
      return filters.toSpliced(at === -1 ? filters.length : at + 1, 0, value());
    case 'REPLACE':
      return filters.toSpliced(at, 1, value());
    case 'REMOVE':
      return filters.filter(({ name }) => !isCalled(name, wanted!));
    case 'MERGE':
    case 'MERGE_AND_REPLACE_LIST':
      return filters.map((filter) => (isCalled(filter.name, wanted!) ? mergedFilter(filter, held, schema) : filter));
  }
}

/** A filter stays the one that it is: settings of another type are not merged into it. */
function mergedFilter<F extends ListedFilter>(filter: F, held: HeldPatch, schema: DescMessage): F {
  const value = shallowCopy(valueAs(schema, held) as F);
  value.name = filter.name;
  return merged(schema, filter, value, listsOf(held));
}

function withoutUnreachable<F extends ListedFilter>(
  filters: readonly F[],
  insertedBy: ReadonlyMap<F, HeldPatch>,
  { isLast = () => false }: FilterList,
): readonly F[] {
  const end = filters.findIndex(isLast);
  if (end === -1 || end === filters.length - 1) return filters;
  return filters.filter((filter, index) => {
    const held = insertedBy.get(filter);
    if (index <= end || held === undefined) return true;
    return attempt(held, false, () => {
      throw new PatchFailure(`${filter.name} must not come after ${filters[end]!.name}, the terminal filter`);
    });
  });
}

/** Old names mean the new ones, wherever they stand. */
export function isCalled(name: string, wanted: string): boolean {
  return currentFilterName(name) === currentFilterName(wanted);
}

/** The packed settings of a filter; undefined where they come otherwise. */
export function packedIn({ configType }: ListedFilter): Any | undefined {
  return configType.case === 'typedConfig' ? (configType.value as Any) : undefined;
}

export function isPacked(packed: Any | undefined, typeName: string): boolean {
  return packed !== undefined && messageNameOf(packed.typeUrl) === typeName;
}
