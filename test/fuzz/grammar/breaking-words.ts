/** Words and numbers that often break programs. */
import type { Draw } from '../../random-config/draw.ts';

/** Keys that every plain object inherits. */
const prototypeNames = [
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'valueOf',
  'hasOwnProperty',
  'isPrototypeOf',
  '__defineGetter__',
  '__lookupSetter__',
  'toLocaleString',
  'propertyIsEnumerable',
];

const oddTexts = [
  '',
  ' ',
  '*',
  '.',
  '..',
  '/',
  '//',
  '../../../../etc/passwd',
  '\u0000',
  'a\u0000b',
  '\r\n\r\n',
  '%',
  '%00',
  '%zz',
  '\ud800',
  'é'.normalize('NFD'),
  '\u202e',
  'null',
  'undefined',
  'true',
  '-0',
  '1e999',
  '$(id)',
  '{{7*7}}',
  '[::1]:80',
  '0x7f.1',
  '256.256.256.256',
  'outbound|80||x',
  'outbound|||',
  '|'.repeat(40),
  'a'.repeat(300),
  'x'.repeat(70_000),
];

const oddNumbers = [
  0,
  -0,
  -1,
  1,
  0.5,
  65_535,
  65_536,
  2 ** 31 - 1,
  2 ** 31,
  2 ** 32,
  2 ** 53,
  2 ** 63,
  1e308,
  -1e308,
  Number.NaN,
  Number.POSITIVE_INFINITY,
];

export function oddText(draw: Draw): string {
  return draw.one(
    () => draw.pick(prototypeNames),
    () => draw.pick(oddTexts),
    () => randomText(draw, draw.int(0, 40)),
    () => `${draw.pick(prototypeNames)}.${draw.pick(oddTexts).slice(0, 40)}`,
  );
}

function oddNumber(draw: Draw): number {
  return draw.chance(0.7) ? draw.pick(oddNumbers) : Math.floor((draw.next() - 0.5) * 2 ** draw.int(1, 60));
}

export function randomText(draw: Draw, length: number): string {
  const highest = draw.pick([0x7f, 0xff, 0xffff]);
  return String.fromCharCode(...Array.from({ length }, () => draw.int(0, highest)));
}

/** Any JSON value with limited depth. */
export function oddValue(draw: Draw, depth = 3): unknown {
  if (depth === 0 || draw.chance(0.6)) {
    return draw.one<unknown>(
      () => oddText(draw),
      () => oddNumber(draw),
      () => draw.chance(0.5),
      () => null,
    );
  }
  return draw.one<unknown>(
    () => draw.list(0, 4, () => oddValue(draw, depth - 1)),
    // Not by assignment: `__proto__` must become an own key.
    () => Object.fromEntries(draw.list(0, 4, () => [oddText(draw), oddValue(draw, depth - 1)])),
    () => nestedValue(draw.chance(0.1) ? draw.int(100, 3_000) : draw.int(5, 40)),
  );
}

function nestedValue(depth: number): unknown {
  let value: unknown = 1;
  for (let i = 0; i < depth; i++) value = i % 2 === 0 ? [value] : { a: value };
  return value;
}

/** A copy of the value with some parts replaced, removed, duplicated or added. */
export function mutatedValue(draw: Draw, value: unknown): unknown {
  if (draw.chance(0.06)) return oddValue(draw);
  if (Array.isArray(value)) {
    const items = value.flatMap((item) =>
      draw.chance(0.05) ? [] : draw.chance(0.05) ? [item, item] : [mutatedValue(draw, item)],
    );
    return draw.chance(0.05) ? [...items, oddValue(draw)] : items;
  }
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).flatMap(([key, item]): [string, unknown][] => {
    if (draw.chance(0.04)) return [];
    return [[draw.chance(0.03) ? oddText(draw) : key, mutatedValue(draw, item)]];
  });
  if (draw.chance(0.05)) entries.push([oddText(draw), oddValue(draw)]);
  return Object.fromEntries(entries);
}
