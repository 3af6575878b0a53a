/** The functions of Go's text/template. `and` and `or` short-circuit: see `evaluate.ts`. */
import { sprint, sprintf, sprintln } from './format.ts';
import { isPrintable } from './format-scalars.ts';
import { FunctionError } from './template-error.ts';
import { compareText, GoMap, GoStruct, type GoValue, isList, isTruthy, typeName } from './values.ts';

export interface TemplateFunction {
  readonly min: number;
  readonly max?: number;
  readonly takesText?: boolean;
  /** @throws FunctionError */
  readonly call: (args: readonly GoValue[]) => GoValue;
}

export const goFunctions: ReadonlyMap<string, TemplateFunction> = new Map<string, TemplateFunction>([
  ['and', { min: 1, call: (args) => args.find((arg) => !isTruthy(arg)) ?? args.at(-1) }],
  ['or', { min: 1, call: (args) => args.find(isTruthy) ?? args.at(-1) }],
  ['not', { min: 1, max: 1, call: ([value]) => !isTruthy(value) }],
  ['eq', { min: 1, call: ([value, ...candidates]) => equalsAny(value, candidates) }],
  ['ne', { min: 2, max: 2, call: ([a, b]) => !equalsAny(a, [b]) }],
  ['lt', { min: 2, max: 2, call: ([a, b]) => isLessThan(a, b) }],
  ['le', { min: 2, max: 2, call: ([a, b]) => isLessThan(a, b) || equalsAny(a, [b]) }],
  ['gt', { min: 2, max: 2, call: ([a, b]) => !(isLessThan(a, b) || equalsAny(a, [b])) }],
  ['ge', { min: 2, max: 2, call: ([a, b]) => !isLessThan(a, b) }],
  ['len', { min: 1, max: 1, call: ([value]) => length(value) }],
  ['index', { min: 1, call: ([item, ...indexes]) => index(item, indexes) }],
  ['slice', { min: 1, call: ([item, ...indexes]) => slice(item, indexes) }],
  ['print', { min: 0, call: sprint }],
  ['println', { min: 0, call: sprintln }],
  ['printf', { min: 1, takesText: true, call: ([format, ...args]) => sprintf(format as string, args) }],
  ['html', { min: 0, call: (args) => formatAsText(args).replace(/[&<>"'\0]/g, (sign) => htmlEscapes[sign]!) }],
  ['js', { min: 0, call: (args) => formatAsText(args).replace(/./gsu, scriptEscape) }],
  ['urlquery', { min: 0, call: (args) => queryEscape(formatAsText(args)) }],
  ['call', { min: 1, call: ([value]) => call(value) }],
]);

/** Compares strings, numbers and booleans by value; lists and maps only with nil. */
function equalsAny(value: GoValue, candidates: readonly GoValue[]): boolean {
  if (candidates.length === 0) throw new FunctionError('missing argument for comparison');
  return candidates.some((candidate) => {
    if (isNil(value) || isNil(candidate)) return isNil(value) && isNil(candidate);
    if (isBasic(value) !== isBasic(candidate) || typeof value !== typeof candidate)
      throw incompatibleTypesError(value, candidate);
    if (!isBasic(value)) throw new FunctionError(`non-comparable type: ${typeName(value)}`);
    return value === candidate;
  });
}

function isLessThan(a: GoValue, b: GoValue): boolean {
  for (const value of [a, b]) {
    if (!isBasic(value)) throw new FunctionError(`invalid type for comparison: ${typeName(value)}`);
  }
  if (typeof a !== typeof b) throw incompatibleTypesError(a, b);
  if (typeof a === 'boolean') throw new FunctionError('invalid type for comparison: bool');
  return typeof a === 'string' ? compareText(a, b as string) < 0 : (a as bigint) < (b as bigint);
}

function isNil(value: GoValue): value is null | undefined {
  return value === null || value === undefined;
}

function isBasic(value: GoValue): boolean {
  return !isNil(value) && typeof value !== 'object';
}

function incompatibleTypesError(a: GoValue, b: GoValue): FunctionError {
  return new FunctionError(`incompatible types for comparison: ${typeName(a)} and ${typeName(b)}`);
}

/** Bytes for strings, as everywhere in Go. */
function length(value: GoValue): bigint {
  if (typeof value === 'string') return BigInt(Buffer.byteLength(value));
  if (isList(value)) return BigInt(value.length);
  if (value instanceof GoMap) return BigInt(value.size);
  throw new FunctionError(`len of ${isNil(value) ? 'nil' : `type ${typeName(value)}`}`);
}

function index(item: GoValue, indexes: readonly GoValue[]): GoValue {
  if (isNil(item)) throw new FunctionError('index of untyped nil');
  return indexes.reduce(elementOf, item);
}

function elementOf(item: GoValue, key: GoValue): GoValue {
  if (item instanceof GoMap) {
    if (typeof key !== 'string') throw new FunctionError(`value has type ${typeName(key)}; should be string`);
    return item.has(key) ? item.get(key) : item.zero;
  }
  if (typeof item === 'string') {
    const bytes = Buffer.from(item);
    return BigInt(bytes[requireValidIndex(key, bytes.length - 1)]!);
  }
  if (isList(item)) return item[requireValidIndex(key, item.length - 1)];
  throw new FunctionError(`can't index item of type ${typeName(item)}`);
}

function slice(item: GoValue, indexes: readonly GoValue[]): GoValue {
  if (isNil(item)) throw new FunctionError('slice of untyped nil');
  if (indexes.length > 3) throw new FunctionError(`too many slice indexes: ${indexes.length}`);
  if (typeof item !== 'string' && !isList(item)) throw new FunctionError(`can't slice item of type ${typeName(item)}`);
  if (typeof item === 'string' && indexes.length === 3) throw new FunctionError('cannot 3-index slice a string');
  const source = typeof item === 'string' ? Buffer.from(item) : item;
  const [startIndex = 0, endIndex = source.length, capacity = source.length] = indexes.map((bound) =>
    requireValidIndex(bound, source.length),
  );
  if (startIndex > endIndex) throw new FunctionError(`invalid slice index: ${startIndex} > ${endIndex}`);
  if (endIndex > capacity) throw new FunctionError(`invalid slice index: ${endIndex} > ${capacity}`);
  return Buffer.isBuffer(source)
    ? source.subarray(startIndex, endIndex).toString()
    : source.slice(startIndex, endIndex);
}

function requireValidIndex(value: GoValue, maxIndex: number): number {
  if (typeof value !== 'bigint')
    throw new FunctionError(`cannot index slice/array with ${isNil(value) ? 'nil' : `type ${typeName(value)}`}`);
  if (value < 0n || value > BigInt(maxIndex)) throw new FunctionError(`index out of range: ${value}`);
  return Number(value);
}

function call(value: GoValue): never {
  if (isNil(value)) throw new FunctionError('call of nil');
  throw new FunctionError(`non-function of type ${value instanceof GoStruct ? 'struct' : typeName(value)}`);
}

/** A single string is unchanged; otherwise all arguments are formatted as `print` does. */
function formatAsText(args: readonly GoValue[]): string {
  const [singleArgument] = args;
  if (args.length === 1 && typeof singleArgument === 'string') return singleArgument;
  return sprint(args.map((arg) => (isNil(arg) ? '<no value>' : arg)));
}

const htmlEscapes: Readonly<Record<string, string>> = {
  ...{ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&#34;', "'": '&#39;', '\0': '\ufffd' },
};

const scriptEscapes: Readonly<Record<string, string>> = {
  ...{ '\\': '\\\\', "'": "\\'", '"': '\\"', '<': '\\u003C', '>': '\\u003E', '&': '\\u0026', '=': '\\u003D' },
};

function scriptEscape(character: string): string {
  const simpleEscape = scriptEscapes[character];
  if (simpleEscape !== undefined) return simpleEscape;
  if (isPrintable(character)) return character;
  return `\\u${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}`;
}

/** As in a query string: a space becomes `+`. */
function queryEscape(text: string): string {
  return encodeURIComponent(text.toWellFormed())
    .replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll('%20', '+');
}
