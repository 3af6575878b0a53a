/** Functions of Istio's templates beyond Go's own: `toJSON` and common functions of the sprig library. Istio's agent provides all of sprig. */
import { sprint } from '../../../runtime/go-template/format.ts';
import type { TemplateFunction } from '../../../runtime/go-template/functions.ts';
import { FunctionError } from '../../../runtime/go-template/template-error.ts';
import {
  GoMap,
  type GoValue,
  goValueOf,
  isList,
  isTruthy,
  toJson,
  typeName,
} from '../../../runtime/go-template/values.ts';

const text = (value: GoValue): string => {
  if (typeof value === 'string') return value;
  throw new FunctionError(`expected a string, got ${typeName(value)}`);
};

const textOf = (value: GoValue): string => (typeof value === 'string' ? value : sprint([value]));
const isNil = (value: GoValue): boolean => value === null || value === undefined;

function textFunction(call: (...texts: string[]) => GoValue, count: number): TemplateFunction {
  return { min: count, max: count, call: (args) => call(...args.map(text)) };
}

function list(value: GoValue): readonly GoValue[] {
  if (isList(value)) return value;
  throw new FunctionError(`expected a list, got ${typeName(value)}`);
}

function map(value: GoValue): GoMap {
  if (value instanceof GoMap) return value;
  throw new FunctionError(`expected a map, got ${typeName(value)}`);
}

/** Converts as `strconv.Atoi` and sprig's casts do; 0 for an invalid number. */
function integer(value: GoValue): bigint {
  if (typeof value === 'bigint') return value;
  if (typeof value === 'number') return BigInt(Math.trunc(value));
  if (typeof value === 'boolean') return value ? 1n : 0n;
  return typeof value === 'string' && /^[+-]?\d{1,18}$/.test(value) ? BigInt(value) : 0n;
}

const json: TemplateFunction = { min: 1, max: 1, call: ([value]) => toJson(value) };

export const templateFunctions: ReadonlyMap<string, TemplateFunction> = new Map<string, TemplateFunction>([
  ['toJSON', { min: 1, max: 1, call: ([value]) => (isNil(value) ? '{}' : toJson(value)) }],
  ['toJson', json],
  ['json', json],
  ['fromJson', { min: 1, max: 1, call: ([value]) => parseJson(text(value)) }],
  ['default', { min: 1, max: 2, call: ([fallback, value]) => (isTruthy(value) ? value : fallback) }],
  ['empty', { min: 1, max: 1, call: ([value]) => !isTruthy(value) }],
  ['coalesce', { min: 0, call: (args) => args.find(isTruthy) ?? null }],
  [
    'ternary',
    {
      min: 3,
      max: 3,
      call: ([valueIfTrue, valueIfFalse, condition]) => (condition === true ? valueIfTrue : valueIfFalse),
    },
  ],
  [
    'quote',
    {
      min: 0,
      call: (args) =>
        args
          .filter((arg) => !isNil(arg))
          .map((arg) => JSON.stringify(textOf(arg)))
          .join(' '),
    },
  ],
  [
    'squote',
    {
      min: 0,
      call: (args) =>
        args
          .filter((arg) => !isNil(arg))
          .map((arg) => `'${textOf(arg)}'`)
          .join(' '),
    },
  ],
  ['join', { min: 2, max: 2, call: joinTexts }],
  ['splitList', textFunction((separator, value) => value!.split(separator!), 2)],
  ['upper', textFunction((value) => value!.toUpperCase(), 1)],
  ['lower', textFunction((value) => value!.toLowerCase(), 1)],
  ['trim', textFunction((value) => value!.trim(), 1)],
  [
    'trimPrefix',
    textFunction((prefix, value) => (value!.startsWith(prefix!) ? value!.slice(prefix!.length) : value!), 2),
  ],
  [
    'trimSuffix',
    textFunction(
      (suffix, value) => (value!.endsWith(suffix!) ? value!.slice(0, value!.length - suffix!.length) : value!),
      2,
    ),
  ],
  ['replace', textFunction((from, to, value) => replaceText(value!, from!, to!), 3)],
  ['contains', textFunction((substring, value) => value!.includes(substring!), 2)],
  ['hasPrefix', textFunction((prefix, value) => value!.startsWith(prefix!), 2)],
  ['hasSuffix', textFunction((suffix, value) => value!.endsWith(suffix!), 2)],
  ['list', { min: 0, call: (args) => args }],
  ['first', { min: 1, max: 1, call: ([value]) => list(value)[0] ?? null }],
  ['last', { min: 1, max: 1, call: ([value]) => list(value).at(-1) ?? null }],
  ['append', { min: 2, max: 2, call: ([values, value]) => [...list(values), value] }],
  ['has', { min: 2, max: 2, call: ([value, values]) => !isNil(values) && list(values).includes(value) }],
  ['dict', { min: 0, call: dictionary }],
  ['hasKey', { min: 2, max: 2, call: ([values, key]) => map(values).has(text(key)) }],
  ['get', { min: 2, max: 2, call: ([values, key]) => map(values).get(text(key)) ?? '' }],
  ['toString', { min: 1, max: 1, call: ([value]) => textOf(value) }],
  ['int', { min: 1, max: 1, call: ([value]) => integer(value) }],
  ['add', { min: 0, call: (args) => args.map(integer).reduce((sum, value) => sum + value, 0n) }],
  ['sub', { min: 2, max: 2, call: ([a, b]) => integer(a) - integer(b) }],
]);

const maxReplacedChars = 4 * 1024 * 1024;

function replaceText(value: string, from: string, to: string): string {
  const segments = value.split(from);
  if (segments.length * to.length > maxReplacedChars)
    throw new FunctionError(`the result has more than ${maxReplacedChars} characters`);
  return segments.join(to);
}

function joinTexts([separator, values]: readonly GoValue[]): string {
  // Templates for earlier versions of chartpilot pass the list first.
  if (isList(separator)) return joinTexts([values, separator]);
  const items = isList(values) ? values : isNil(values) ? [] : [values];
  return items
    .filter((item) => !isNil(item))
    .map(textOf)
    .join(text(separator));
}

function dictionary(args: readonly GoValue[]): GoMap {
  const entries: [string, GoValue][] = [];
  for (let index = 0; index < args.length; index += 2) entries.push([textOf(args[index]), args[index + 1] ?? '']);
  return new GoMap(entries);
}

function parseJson(value: string): GoValue {
  try {
    return goValueOf(JSON.parse(value));
  } catch {
    return null;
  }
}
