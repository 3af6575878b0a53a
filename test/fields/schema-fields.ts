/** The fields that a decoder describes, and their places in a value. */
import { type Describable, type Description, descriptionOf, type Effect } from '../../src/model/fields/description.ts';
import { isObject } from '../../src/runtime/json-object.ts';

export interface SchemaField {
  /** Path such as `http[].match[].headers{}.exact`. */
  readonly path: string;
  readonly decoder: Describable;
  readonly effect?: Effect;
  /** Whether the field has no inner fields, or none that are checked. */
  readonly isLeaf: boolean;
}

export type ValuePath = readonly (string | number)[];

/** The decoder's description without its additional checks. */
export function shapeOf(decoder: Describable, path: string): Exclude<Description, { type: 'narrowed' }> {
  const description = descriptionOf(decoder);
  if (description === undefined) throw new TypeError(`what the decoder of ${path} takes is not described`);
  return description.type === 'narrowed' ? shapeOf(description.decoder, path) : description;
}

/** All fields, outer ones first. Inner fields of a field without effect have no effect. */
export function fieldsWithin(decoder: Describable, path = ''): SchemaField[] {
  const shape = shapeOf(decoder, path);
  if (shape.type === 'list') return fieldsWithin(shape.item, `${path}[]`);
  if (shape.type === 'map') return fieldsWithin(shape.item, `${path}{}`);
  if (shape.type !== 'object') return [];
  return shape.fields.flatMap((field): SchemaField[] => {
    const at = path === '' ? field.name : `${path}.${field.name}`;
    const isClosed = field.effect?.type === 'none' || field.effect?.type === 'refused';
    const childFields = isClosed ? [] : fieldsWithin(field.decoder, at);
    const { effect } = field;
    return [
      { path: at, decoder: field.decoder, ...(effect && { effect }), isLeaf: childFields.length === 0 },
      ...childFields,
    ];
  });
}

/** Adds the places of each field in a value, by the field's path. */
export function addPlaces(
  decoder: Describable,
  value: unknown,
  placesByPath: Map<string, ValuePath[]>,
  path = '',
  place: ValuePath = [],
): void {
  const shape = shapeOf(decoder, path);
  if (shape.type === 'list' && Array.isArray(value)) {
    for (const [index, item] of value.entries())
      addPlaces(shape.item, item, placesByPath, `${path}[]`, [...place, index]);
  } else if (shape.type === 'map' && isObject(value)) {
    for (const key of Object.keys(value)) addPlaces(shape.item, value[key], placesByPath, `${path}{}`, [...place, key]);
  } else if (shape.type === 'object' && isObject(value)) {
    for (const { name, decoder: fieldDecoder, effect } of shape.fields) {
      if (value[name] === undefined || value[name] === null) continue;
      const at = path === '' ? name : `${path}.${name}`;
      placesByPath.set(at, [...(placesByPath.get(at) ?? []), [...place, name]]);
      if (effect?.type !== 'none') addPlaces(fieldDecoder, value[name], placesByPath, at, [...place, name]);
    }
  }
}

/** `a[].b` for `a[].b.c`; empty for a top-level field. */
export function parentOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('.')));
}

export function valueAt(value: unknown, valuePath: ValuePath): unknown {
  return valuePath.reduce<unknown>((at, key) => (at as Record<string | number, unknown>)[key], value);
}

/** A copy of the value with a replacement at one place. `undefined` removes the field. */
export function withValueAt(value: unknown, [key, ...rest]: ValuePath, replacement: unknown): unknown {
  if (key === undefined) return replacement;
  if (Array.isArray(value)) {
    return value.map((item, index) => (index === key ? withValueAt(item, rest, replacement) : item));
  }
  const { [key]: child, ...otherFields } = value as Record<string | number, unknown>;
  if (rest.length === 0 && replacement === undefined) return otherFields;
  return { ...(value as object), [key]: withValueAt(child, rest, replacement) };
}
