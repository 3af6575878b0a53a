/** Values of templates, by Go's types: a `bigint` is an int, a `number` a float64. */
import type { Position } from './template-error.ts';

export type GoValue = Invalid | null | boolean | bigint | number | string | GoList | GoMap | GoStruct;

/** No value at all: what a map has for a key that it lacks. A nil interface is `null`. */
export type Invalid = undefined;

export type GoList = readonly GoValue[];

/** A map with text keys; any key may be asked for. */
export class GoMap extends Map<string, GoValue> {
  /** What `index` gives for a missing key. */
  readonly zero: GoValue;

  constructor(entries: Iterable<readonly [string, GoValue]> = [], zero: GoValue = null) {
    super(entries);
    this.zero = zero;
  }

  /** In the order of the keys' bytes. */
  sorted(): [string, GoValue][] {
    return [...this].sort(([a], [b]) => compareText(a, b));
  }
}

/** Fields that are known beforehand: to ask for another one is an error. */
export class GoStruct {
  readonly typeName: string;
  readonly fields: ReadonlyMap<string, GoValue>;
  /** Gets each unknown field that a condition asks for, which is then false. Absent: that is an error, too. */
  readonly onUnknownInCondition: ((name: string, at: Position) => void) | undefined;

  constructor(
    typeName: string,
    fields: Iterable<readonly [string, GoValue]>,
    onUnknownInCondition?: (name: string, at: Position) => void,
  ) {
    this.typeName = typeName;
    this.fields = new Map(fields);
    this.onUnknownInCondition = onUnknownInCondition;
  }
}

export function isList(value: GoValue): value is GoList {
  return Array.isArray(value);
}

/** JSON without fraction is an int, an object a map. */
export function goValueOf(json: unknown): GoValue {
  if (json === undefined || json === null) return null;
  if (json instanceof GoMap || json instanceof GoStruct) return json;
  if (Array.isArray(json)) return json.map(goValueOf);
  if (typeof json === 'number') return Number.isSafeInteger(json) ? BigInt(json) : json;
  if (typeof json === 'object') return new GoMap(Object.entries(json).map(([key, value]) => [key, goValueOf(value)]));
  return json as boolean | bigint | string;
}

/** What `if`, `and`, `or` and `not` take as true. */
export function isTrue(value: GoValue): boolean {
  if (isList(value)) return value.length > 0;
  if (value instanceof GoMap) return value.size > 0;
  return value instanceof GoStruct || Boolean(value);
}

/** As Go names it in errors, and with `%T`. */
export function typeName(value: GoValue): string {
  if (value === undefined || value === null) return 'nil';
  if (isList(value)) return '[]interface {}';
  if (value instanceof GoMap) return 'map[string]interface {}';
  if (value instanceof GoStruct) return value.typeName;
  return { boolean: 'bool', bigint: 'int', number: 'float64', string: 'string' }[typeof value as 'string'];
}

/** By bytes of UTF-8, as Go compares. */
export function compareText(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/** Compact, with sorted keys, and without signs of HTML, as Go's encoding/json writes. */
export function toJson(value: GoValue): string {
  return jsonText(value).replace(
    /[<>&\u2028\u2029]/g,
    (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

function jsonText(value: GoValue): string {
  if (value === undefined || value === null) return 'null';
  if (isList(value)) return `[${value.map(jsonText).join(',')}]`;
  if (value instanceof GoMap) return object(value.sorted());
  if (value instanceof GoStruct) return object([...value.fields]);
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'number' && !Number.isFinite(value)) throw new Error(`${value} cannot be encoded as JSON`);
  return String(value)
    .replace(/e\+?(-?)0?(\d)/, 'e$1$2')
    .replace(/e(\d)/, 'e+$1');
}

function object(entries: readonly (readonly [string, GoValue])[]): string {
  return `{${entries.map(([key, value]) => `${JSON.stringify(key)}:${jsonText(value)}`).join(',')}}`;
}
