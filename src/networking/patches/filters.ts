/**
 * Filters are removed and merged first, then replaced, then added; each patch sees the results of earlier ones. A namespace therefore cannot remove
 * or change a filter that the root namespace inserts.
 */
import type { DescMessage, Message } from '@bufbuild/protobuf';
import type { Any } from '@bufbuild/protobuf/wkt';
import { messageNameOf } from '../../model/envoy-api/message-name.ts';
import { currentFilterName } from '../../model/kinds/envoy-filter/envoy-filter.rules.ts';
import type { ActivePatch } from './active-patch.ts';
import { listMergeOf } from './apply-patches.ts';
import { mergeMessages, PatchFailure, shallowCopy } from './merge-messages.ts';
import { isMerge, messageOfPatch } from './patch-set.ts';
import { attemptPatch } from './status.ts';

export interface ListedFilter extends Message {
  name: string;
  readonly configType: { readonly case: string | undefined; readonly value?: unknown };
}

interface FilterList {
  readonly schema: DescMessage;
  readonly filterName: (activePatch: ActivePatch) => string | undefined;
  readonly isLast?: (filter: ListedFilter) => boolean;
}

/** Returns the same list if no patch changes it. */
export function patchedFilters<F extends ListedFilter>(
  filters: readonly F[],
  patches: readonly ActivePatch[],
  list: FilterList,
): readonly F[] {
  const insertedBy = new Map<F, ActivePatch>();
  let result = filters;
  for (const activePatch of sortByPass(patches)) {
    const filterName = list.filterName(activePatch);
    const current = result;
    if (hasNoEffect(activePatch, filterName, current)) continue;
    result = attemptPatch<readonly F[]>(activePatch, current, () =>
      applyPatch(current, activePatch, list.schema, filterName),
    );
    for (const filter of insertedFilters(activePatch, current, result, list.schema))
      insertedBy.set(filter, activePatch);
  }
  return result === filters ? filters : withoutUnreachable(result, insertedBy, list);
}

const passByOperation: Readonly<Record<ActivePatch['patch']['operation'], number>> = {
  ...{ REMOVE: 0, MERGE: 0, MERGE_AND_REPLACE_LIST: 0, REPLACE: 1 },
  ...{ ADD: 2, INSERT_FIRST: 2, INSERT_BEFORE: 2, INSERT_AFTER: 2 },
};

function sortByPass(patches: readonly ActivePatch[]): readonly ActivePatch[] {
  return [...patches].sort((a, b) => passByOperation[a.patch.operation] - passByOperation[b.patch.operation]);
}

function insertedFilters<F extends ListedFilter>(
  activePatch: ActivePatch,
  current: readonly F[],
  result: readonly F[],
  schema: DescMessage,
): readonly F[] {
  if (result === current || activePatch.patch.operation === 'REMOVE') return [];
  return isMerge(activePatch)
    ? result.filter((filter, index) => filter !== current[index])
    : [messageOfPatch(schema, activePatch) as F];
}

/** A patch for a missing filter has no effect, which is not an error. */
function hasNoEffect(
  { patch: { operation } }: ActivePatch,
  filterName: string | undefined,
  filters: readonly ListedFilter[],
): boolean {
  if (operation === 'ADD' || operation === 'INSERT_FIRST') return false;
  if (filterName === undefined) return operation !== 'INSERT_BEFORE' && operation !== 'INSERT_AFTER';
  return !filters.some(({ name }) => hasFilterName(name, filterName));
}

function applyPatch<F extends ListedFilter>(
  filters: readonly F[],
  activePatch: ActivePatch,
  schema: DescMessage,
  filterName: string | undefined,
): readonly F[] {
  const filterIndex = filterName === undefined ? -1 : filters.findIndex(({ name }) => hasFilterName(name, filterName));
  const value = (): F => messageOfPatch(schema, activePatch) as F;
  switch (activePatch.patch.operation) {
    case 'ADD':
      return [...filters, value()];
    case 'INSERT_FIRST':
      return [value(), ...filters];
    case 'INSERT_BEFORE':
      return filters.toSpliced(Math.max(filterIndex, 0), 0, value());
    case 'INSERT_AFTER':
      return filters.toSpliced(filterIndex === -1 ? filters.length : filterIndex + 1, 0, value());
    case 'REPLACE':
      return filters.toSpliced(filterIndex, 1, value());
    case 'REMOVE':
      return filters.filter(({ name }) => !hasFilterName(name, filterName!));
    case 'MERGE':
    case 'MERGE_AND_REPLACE_LIST':
      return filters.map((filter) =>
        hasFilterName(filter.name, filterName!) ? mergedFilter(filter, activePatch, schema) : filter,
      );
  }
}

/** Keeps the name. Settings of another type cannot be merged. */
function mergedFilter<F extends ListedFilter>(filter: F, activePatch: ActivePatch, schema: DescMessage): F {
  const value = shallowCopy(messageOfPatch(schema, activePatch) as F);
  value.name = filter.name;
  return mergeMessages(schema, filter, value, listMergeOf(activePatch));
}

function withoutUnreachable<F extends ListedFilter>(
  filters: readonly F[],
  insertedBy: ReadonlyMap<F, ActivePatch>,
  { isLast = () => false }: FilterList,
): readonly F[] {
  const terminalIndex = filters.findIndex(isLast);
  if (terminalIndex === -1 || terminalIndex === filters.length - 1) return filters;
  return filters.filter((filter, index) => {
    const activePatch = insertedBy.get(filter);
    if (index <= terminalIndex || activePatch === undefined) return true;
    return attemptPatch(activePatch, false, () => {
      throw new PatchFailure(`${filter.name} must not come after ${filters[terminalIndex]!.name}, the terminal filter`);
    });
  });
}

export function hasFilterName(name: string, filterName: string): boolean {
  return currentFilterName(name) === currentFilterName(filterName);
}

export function packedSettingsOf({ configType }: ListedFilter): Any | undefined {
  return configType.case === 'typedConfig' ? (configType.value as Any) : undefined;
}

export function isPackedAs(packedMessage: Any | undefined, typeName: string): boolean {
  return packedMessage !== undefined && messageNameOf(packedMessage.typeUrl) === typeName;
}
