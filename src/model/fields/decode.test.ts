import * as E from 'fp-ts/lib/Either.js';
import { describe, expect, it } from 'vitest';
import { codedError } from '../../../test/fixtures/coded-error.ts';
import {
  boolean,
  type Decoder,
  decodeIgnoringUnknown,
  decodeWith,
  dictionary,
  durationMs,
  integer,
  list,
  mapDecoder,
  name,
  oneOf,
  optional,
  port,
  refine,
  required,
  restrictingField,
  struct,
  text,
  withDefault,
} from './decode.ts';
import { conflict, disallowedValue, fieldError, outOfRange } from './violation.ts';

interface Pool {
  readonly size: number;
  readonly timeoutMs?: number;
  readonly mode: 'FAST' | 'SAFE';
}

const pool = struct<Pool>(
  {
    size: required(integer(0, 10)),
    timeoutMs: optional(durationMs, 'timeout'),
    mode: withDefault(oneOf(['FAST', 'SAFE']), 'SAFE'),
  },
  { timeoutSeconds: ['timeoutMs', mapDecoder(integer(0, 100), (seconds) => seconds * 1000)] },
);

function errorsOf<A>(decoder: Decoder<A>, value: unknown): string[] {
  const decoded = decodeWith(decoder, value);
  return E.isLeft(decoded) ? decoded.left.map(codedError) : [];
}

describe('a check of decoded values', () => {
  const exclusiveFields = refine(
    struct<{ a: number; b?: number; c?: readonly Pool[] }>({
      a: required(integer(0, 9)),
      b: optional(integer(0, 9)),
      c: optional(list(pool)),
    }),
    ({ a, b }, path) => (a === b ? [fieldError(path, conflict('a and b must differ'))] : []),
    ({ c = [] }, path) => (c.length > 1 ? [fieldError(path, conflict('c must have one'))] : []),
    ({ c = [] }, path) =>
      c.some(({ size }) => size === 0) ? [fieldError(path, disallowedValue('c must not have 0'))] : [],
  );

  it('runs despite errors in other fields', () => {
    expect(errorsOf(exclusiveFields, { a: 1, b: 1, c: 7 })).toEqual([
      'c: FIELD_TYPE_INVALID got 7',
      ': FIELD_CONFLICT',
    ]);
    expect(errorsOf(exclusiveFields, { a: 1, b: 1, z: 7 })).toEqual(['z: FIELD_UNKNOWN', ': FIELD_CONFLICT']);
  });

  it('is skipped if it requires an unreadable field', () => {
    expect(errorsOf(exclusiveFields, { a: 'x', b: 1, c: [{ size: 1 }, { size: 2 }] })).toEqual([
      'a: FIELD_TYPE_INVALID got "x"',
      ': FIELD_CONFLICT',
    ]);
    expect(errorsOf(exclusiveFields, { b: 1, c: [{ size: 99 }, {}] })).toEqual([
      'c[0].size: FIELD_OUT_OF_RANGE (from 0 to 10) got 99',
      'c[1].size: FIELD_REQUIRED',
      'a: FIELD_REQUIRED',
      ': FIELD_CONFLICT',
    ]);
  });

  it('receives the readable fields', () => {
    const converted = refine(
      mapDecoder(exclusiveFields, ({ a, ...rest }) => ({ a: a + 1, ...rest })),
      ({ a }, path) => (a === 2 ? [fieldError(path, outOfRange('not 2', a))] : []),
    );
    expect(errorsOf(converted, { a: 1, c: [{ size: 99 }] })).toEqual([
      'c[0].size: FIELD_OUT_OF_RANGE (from 0 to 10) got 99',
      ': FIELD_OUT_OF_RANGE (not 2) got 2',
    ]);
    expect(errorsOf(converted, { a: 'x' })).toEqual(['a: FIELD_TYPE_INVALID got "x"']);
  });
});

describe('a decoder', () => {
  it('renames fields, omits absent fields, and applies defaults', () => {
    expect(decodeWith(pool, { size: 3, timeout: '2s' })).toEqual(E.right({ size: 3, timeoutMs: 2000, mode: 'SAFE' }));
    expect(decodeWith(pool, { size: 3, timeout: null })).toEqual(E.right({ size: 3, mode: 'SAFE' }));
  });

  it('reads a deprecated name in its older format if the current name is absent', () => {
    expect(decodeWith(pool, { size: 1, timeoutSeconds: 4 })).toMatchObject(E.right({ timeoutMs: 4000 }));
    expect(decodeWith(pool, { size: 1, timeoutSeconds: 4, timeout: '1s' })).toMatchObject(E.right({ timeoutMs: 1000 }));
  });

  it('reports every error with its path', () => {
    const nestedDecoder = struct<{ pools: readonly Pool[]; names: Readonly<Record<string, string>> }>({
      pools: required(list(pool)),
      names: required(dictionary(text)),
    });
    expect(
      errorsOf(nestedDecoder, { pools: [{ size: 1 }, { size: 99, timeout: 5, mode: 'SAF' }, 7], names: { 'a.b': 1 } }),
    ).toEqual([
      'pools[1].size: FIELD_OUT_OF_RANGE (from 0 to 10) got 99',
      'pools[1].timeout: FIELD_FORMAT_INVALID got 5',
      'pools[1].mode: FIELD_VALUE_UNKNOWN got "SAF" near SAFE',
      'pools[2]: FIELD_TYPE_INVALID got 7',
      'names["a.b"]: FIELD_TYPE_INVALID got 1',
    ]);
  });

  it('reports an unknown field and suggests the intended one', () => {
    expect(errorsOf(pool, { size: 1, timout: '1s' })).toEqual(['timout: FIELD_UNKNOWN near timeout']);
    expect(errorsOf(pool, { size: 1, colour: 'red' })).toEqual(['colour: FIELD_UNKNOWN']);
  });

  it('distinguishes a missing field from an invalid one', () => {
    expect(errorsOf(pool, {})).toEqual(['size: FIELD_REQUIRED']);
    expect(errorsOf(pool, { size: 'x' })).toEqual(['size: FIELD_TYPE_INVALID got "x"']);
  });

  it('can ignore unknown fields at any depth and return their paths', () => {
    const outer = struct<{ pool: Pool }>({ pool: required(pool) });
    const decoded = decodeIgnoringUnknown(outer)({ pool: { size: 2, future: 1 }, later: true });
    expect(decoded).toEqual(
      E.right({
        value: { pool: { size: 2, mode: 'SAFE' } },
        unknownFields: [expect.objectContaining({ path: 'later' }), expect.objectContaining({ path: 'pool.future' })],
      }),
    );
    expect(E.isLeft(decodeIgnoringUnknown(outer)({ pool: { size: 'x', future: 1 } }))).toBe(true);
  });

  it('reports unknown fields together with errors in known fields', () => {
    const outer = struct<{ pool: Pool }>({ pool: required(pool) });
    const decoded = decodeIgnoringUnknown(outer)({ pool: { size: 'x', future: 1 } });
    expect(E.isLeft(decoded) && decoded.left.map(({ path, unknown }) => [path, unknown])).toEqual([
      ['pool.size', undefined],
      ['pool.future', 'strange'],
    ]);
  });

  it('never ignores unknown fields inside a field that restricts access, and can reject misspelled fields', () => {
    const outer = struct<{ pool?: Pool }>({ pool: restrictingField(optional(pool)) });
    const refusedPaths = (value: unknown): unknown => {
      const decoded = decodeIgnoringUnknown(outer, ['strange'])(value);
      return E.isLeft(decoded) && decoded.left.map(({ path }) => path);
    };
    expect(refusedPaths({ pool: { size: 1, future: 1 } })).toEqual(['pool.future']);
    expect(refusedPaths({ poool: { size: 1 }, future: 1 })).toEqual(['poool', 'future']);
    expect(refusedPaths({ future: 1 })).toBe(false);
  });

  it('keeps __proto__ as an ordinary key', () => {
    const decoded = decodeWith(dictionary(text), JSON.parse('{"__proto__": "x"}'));
    expect(E.isRight(decoded) && Object.entries(decoded.right)).toEqual([['__proto__', 'x']]);
  });

  it.each([
    [name, '', ': FIELD_EMPTY'],
    [boolean, 'yes', ': FIELD_TYPE_INVALID got "yes"'],
    [port, 65536, ': FIELD_OUT_OF_RANGE (from 1 to 65535) got 65536'],
    [text, true, ': FIELD_TYPE_INVALID got true'],
  ] as [Decoder<unknown>, unknown, string][])('rejects an invalid value', (decoder, value, coded) => {
    expect(errorsOf(decoder, value)).toEqual([coded]);
  });
});
