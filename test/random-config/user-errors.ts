/** Typical user errors in a valid object. */

import type { Draw } from './draw.ts';
import type { WrittenObject } from './values.ts';

type Path = readonly (string | number)[];
type UserError = (value: unknown, draw: Draw) => unknown;

const removedMarker = Symbol('removed');

/** Changes of a leaf or an inner value of the object. */
const userErrors: readonly UserError[] = [
  // A different type.
  (value) => {
    if (typeof value === 'number') return 'seven';
    if (typeof value === 'string') return { text: value };
    return typeof value === 'boolean' ? 'maybe' : 17;
  },
  // An unknown field.
  (value) => (isObject(value) ? { ...value, nosuchfield: 1 } : Array.isArray(value) ? { list: value } : [value]),
  // A value out of range or an unknown enum value.
  (value, draw) => {
    if (typeof value === 'number') return draw.pick([-1, 1.5, 1e9, 70_000]);
    return typeof value === 'string' ? draw.pick(['', 'NO_SUCH_VALUE', '((', '-5s', 'a_b!c', ' ']) : removedMarker;
  },
  // A missing field.
  () => removedMarker,
  () => null,
];

/** Changes one value in the object's spec, which may leave it valid. */
export function withUserError(object: WrittenObject, draw: Draw): WrittenObject {
  const path = draw.pick(pathsOf(object.spec));
  const spec = changeAt(object.spec, path, (value) => draw.pick(userErrors)(value, draw));
  return { ...object, spec: spec === removedMarker ? {} : (spec as object) };
}

function pathsOf(value: unknown, path: Path = []): Path[] {
  if (Array.isArray(value)) return [path, ...value.flatMap((item, index) => pathsOf(item, [...path, index]))];
  if (!isObject(value)) return [path];
  return [path, ...Object.entries(value).flatMap(([key, item]) => pathsOf(item, [...path, key]))];
}

function changeAt(value: unknown, [step, ...rest]: Path, change: (value: unknown) => unknown): unknown {
  if (step === undefined) return change(value);
  const at = (item: unknown, itemKey: string | number): unknown =>
    itemKey === step ? changeAt(item, rest, change) : item;
  if (Array.isArray(value)) return value.map(at).filter((item) => item !== removedMarker);
  const entries = Object.entries(value as object).map(([key, item]) => [key, at(item, key)] as const);
  return Object.fromEntries(entries.filter(([, item]) => item !== removedMarker));
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
