/** A `bigint` is a Go int, a `number` a float64. */
import type { Position } from './template-error.ts';

export type GoValue = InvalidValue | null | boolean | bigint | number | string | GoList | GoMap | GoStruct;

/** The value of a missing key of a map. A nil interface is `null`. */
export type InvalidValue = undefined;

export type GoList = readonly GoValue[];

/** Access to a missing key is no error. */
export class GoMap extends Map<string, GoValue> {
  /** Result of `index` for a missing key. */
  readonly zero: GoValue;

  constructor(entries: Iterable<readonly [string, GoValue]> = [], zero: GoValue = null) {
    super(entries);
    this.zero = zero;
  }

  sortedEntries(): [string, GoValue][] {
    return [...this].sort(([a], [b]) => compareText(a, b));
  }
}

/** Access to an unknown field is an error. */
export class GoStruct {
  readonly typeName: string;
  readonly fields: ReadonlyMap<string, GoValue>;
  /** Called for each unknown field in a condition, which is then false. If absent, such a field is an error. */
  readonly onUnknownInCondition: ((name: string, position: Position) => void) | undefined;

  constructor(
    typeName: string,
    fields: Iterable<readonly [string, GoValue]>,
    onUnknownInCondition?: (name: string, position: Position) => void,
  ) {
    this.typeName = typeName;
    this.fields = new Map(fields);
    this.onUnknownInCondition = onUnknownInCondition;
  }
}

export function isList(value: GoValue): value is GoList {
  return Array.isArray(value);
}

/** JSON numbers without a fraction become ints. */
export function goValueOf(json: unknown): GoValue {
  if (json === undefined || json === null) return null;
  if (json instanceof GoMap || json instanceof GoStruct) return json;
  if (Array.isArray(json)) return json.map(goValueOf);
  if (typeof json === 'number') return Number.isSafeInteger(json) ? BigInt(json) : json;
  if (typeof json === 'object') return new GoMap(Object.entries(json).map(([key, value]) => [key, goValueOf(value)]));
  return json as boolean | bigint | string;
}

export function isTruthy(value: GoValue): boolean {
  if (isList(value)) return value.length > 0;
  if (value instanceof GoMap) return value.size > 0;
  return value instanceof GoStruct || Boolean(value);
}

export function typeName(value: GoValue): string {
  if (value === undefined || value === null) return 'nil';
  if (isList(value)) return '[]interface {}';
  if (value instanceof GoMap) return 'map[string]interface {}';
  if (value instanceof GoStruct) return value.typeName;
  return { boolean: 'bool', bigint: 'int', number: 'float64', string: 'string' }[typeof value as 'string'];
}

/** Compares UTF-8 bytes, as Go does. */
export function compareText(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/** Like Go's encoding/json, sorts keys and escapes characters of HTML markup. */
export function toJson(value: GoValue): string {
  return jsonText(value).replace(
    /[<>&\u2028\u2029]/g,
    (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

function jsonText(value: GoValue): string {
  if (value === undefined || value === null) return 'null';
  if (isList(value)) return `[${value.map(jsonText).join(',')}]`;
  if (value instanceof GoMap) return object(value.sortedEntries());
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
