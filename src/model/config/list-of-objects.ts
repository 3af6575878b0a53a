/** Reads lists of objects as kubectl does: a `List` of any kinds, or a typed list such as `VirtualServiceList`. */
import { isObject } from '../../runtime/json-object.ts';

const listSuffix = 'List';

/** Items of a typed list inherit its `kind` and `apiVersion`. */
export function itemsOfList(value: unknown): readonly unknown[] | undefined {
  if (!isObject(value)) return undefined;
  const { apiVersion, kind, items } = value;
  if (typeof kind !== 'string' || !kind.endsWith(listSuffix) || !Array.isArray(items)) return undefined;
  const itemKind = kind.slice(0, -listSuffix.length);
  if (itemKind === '') return items;
  return items.map((item: unknown) =>
    isObject(item) && !item.kind && !item.apiVersion ? { ...item, apiVersion, kind: itemKind } : item,
  );
}

export function* objectsWithin(
  value: unknown,
  path = '',
): Generator<{ readonly value: unknown; readonly path: string }> {
  const items = itemsOfList(value);
  if (items === undefined) {
    yield { value, path };
    return;
  }
  for (const [index, item] of items.entries())
    yield* objectsWithin(item, `${path === '' ? '' : `${path}.`}items[${index}]`);
}
