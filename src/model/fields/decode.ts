/** Decoders of user configuration. Each reports all errors of a value with their paths, so that users can fix them together. */
import * as E from 'fp-ts/lib/Either.js';
import type { NonEmptyArray } from 'fp-ts/lib/NonEmptyArray.js';
import { isObject } from '../../runtime/json-object.ts';
import { type Effect, type FieldDescription, withDescription, withSchemaValidation } from './description.ts';
import { durationMsOf, durationPattern, notNegativePattern, positivePattern } from './duration.ts';
import { limitError, maxItems, maxUnknownFields } from './limits.ts';
import { nearestName } from './nearest-name.ts';
import { missingPart, partOf, storePart, withReadablePart } from './readable-part.ts';
import type { FieldError, UnknownField } from './violation.ts';
import * as violation from './violation.ts';

export type { FieldError, UnknownField } from './violation.ts';

export type Decoded<A> = E.Either<NonEmptyArray<FieldError>, A>;

export type Decoder<A> = (value: unknown, path: string) => Decoded<A>;

export function fail(path: string, fieldViolation: violation.FieldViolation): Decoded<never> {
  return E.left([violation.fieldError(path, fieldViolation)]);
}

/** Joins paths: `fieldPath('http[0]', 'route')` is `http[0].route`. Keys with special characters are quoted, as in `headers["x.y"]`. */
export function fieldPath(path: string, key: string): string {
  if (!/^[\w-]+$/.test(key)) return `${path}[${JSON.stringify(key)}]`;
  return path === '' ? key : `${path}.${key}`;
}

export const text: Decoder<string> = withDescription(
  (value: unknown, path: string): Decoded<string> => {
    if (typeof value === 'string') return E.right(value);
    const scalar = typeof value === 'number' || typeof value === 'boolean';
    return fail(path, violation.wrongType('a string', value, { hint: scalar ? 'put it in quotes' : undefined }));
  },
  { type: 'text' },
);

export const name: Decoder<string> = withDescription(
  (value: unknown, path: string): Decoded<string> => {
    return value === '' ? fail(path, violation.emptyValue()) : text(value, path);
  },
  { type: 'narrowed', decoder: text, validation: { minLength: 1 } },
);

export const boolean: Decoder<boolean> = withDescription(
  (value: unknown, path: string): Decoded<boolean> => {
    return typeof value === 'boolean' ? E.right(value) : fail(path, violation.wrongType('true or false', value));
  },
  { type: 'boolean' },
);

export const decimal: Decoder<number> = withDescription(
  (value: unknown, path: string): Decoded<number> => {
    return typeof value === 'number' && Number.isFinite(value)
      ? E.right(value)
      : fail(path, violation.wrongType('a number', value));
  },
  { type: 'decimal' },
);

export function integer(min: number, max: number): Decoder<number> {
  return withDescription(
    (value: unknown, path: string): Decoded<number> => {
      if (typeof value !== 'number' || !Number.isInteger(value)) {
        return fail(path, violation.wrongType('an integer', value));
      }
      if (value >= min && value <= max) return E.right(value);
      return fail(path, violation.outOfRange(`from ${min} to ${max}`, value));
    },
    { type: 'integer', min, max },
  );
}

export const count: Decoder<number> = integer(0, 2 ** 31 - 1);

export const port: Decoder<number> = integer(1, 65535);

export const durationMs: Decoder<number> = withDescription(
  (value: unknown, path: string): Decoded<number> => {
    const ms = typeof value === 'string' ? durationMsOf(value) : undefined;
    if (ms !== undefined) return E.right(ms);
    return fail(path, violation.mustBe('a duration such as "1.5s", "100ms" or "1h2m"', value));
  },
  { type: 'narrowed', decoder: text, validation: { pattern: durationPattern } },
);

function integerMilliseconds(ms: number, path: string): FieldError[] {
  if (Number.isInteger(ms)) return [];
  return [violation.fieldError(path, violation.outOfRange('an integer number of milliseconds', `${ms}ms`))];
}

/** Requires integer milliseconds, as Istio does. */
export function durationAtLeast(minMs: number): Decoder<number> {
  const decoder = refine(durationMs, (ms, path) => {
    if (ms < minMs) return [violation.fieldError(path, violation.outOfRange(`at least ${minMs}ms`, `${ms}ms`))];
    return integerMilliseconds(ms, path);
  });
  return withSchemaValidation(decoder, { allOf: [{ pattern: notNegativePattern }, { pattern: positivePattern }] });
}

/** `0s` disables a feature; otherwise Envoy's minimum is one millisecond. */
export const durationOrZero: Decoder<number> = withSchemaValidation(
  refine(durationMs, (ms, path) => {
    if (ms < 0 || (ms > 0 && ms < 1)) {
      return [violation.fieldError(path, violation.outOfRange('0s, or at least 1ms', `${ms}ms`))];
    }
    return integerMilliseconds(ms, path);
  }),
  { allOf: [{ pattern: notNegativePattern }] },
);

export function oneOf<const Names extends readonly string[]>(names: Names): Decoder<Names[number]> {
  return withDescription(
    (value: unknown, path: string): Decoded<Names[number]> => {
      if (typeof value === 'string' && names.includes(value)) return E.right(value);
      return fail(path, violation.unknownValue(names, value));
    },
    { type: 'narrowed', decoder: text, validation: { enum: names } },
  );
}

/** @param max a longer list is rejected before its items are decoded */
export function list<A>(item: Decoder<A>, max: number = maxItems): Decoder<readonly A[]> {
  return withDescription(
    (value: unknown, path: string): Decoded<readonly A[]> => {
      if (!Array.isArray(value)) return fail(path, violation.wrongType('a list', value));
      if (value.length > max) return E.left([limitError(path, value.length, max)]);
      const errors: FieldError[] = [];
      const items: A[] = [];
      for (let index = 0; index < value.length; index++)
        items.push(valueOrPart(item(value[index], `${path}[${index}]`), errors));
      return decodedOrErrors(errors, items);
    },
    { type: 'list', item, max },
  );
}

export function nonEmptyList<A>(item: Decoder<A>, max: number = maxItems): Decoder<readonly A[]> {
  return withSchemaValidation(
    refine(list(item, max), (items, path) =>
      items.length > 0 ? [] : [violation.fieldError(path, violation.emptyValue())],
    ),
    { minItems: 1 },
  );
}

export function dictionary<A>(item: Decoder<A>, max: number = maxItems): Decoder<Readonly<Record<string, A>>> {
  return withDescription(
    (value: unknown, path: string): Decoded<Readonly<Record<string, A>>> => {
      if (!isObject(value)) return fail(path, violation.wrongType('a map', value));
      // Object.entries takes three times as long for 70,000 entries.
      const keys = Object.keys(value);
      if (keys.length > max) return E.left([limitError(path, keys.length, max, 'entries')]);
      const errors: FieldError[] = [];
      const entries: [string, A][] = [];
      for (const key of keys) {
        entries.push([key, valueOrPart(item(value[key], fieldPath(path, key)), errors)]);
      }
      // With an assignment, a key named __proto__ would be lost.
      return decodedOrErrors(errors, Object.fromEntries(entries));
    },
    { type: 'map', item, max },
  );
}

export const anyValue: Decoder<unknown> = withDescription((value: unknown) => E.right(value), { type: 'anything' });

export function mapDecoder<A, B>(decoder: Decoder<A>, convert: (value: A) => B): Decoder<B> {
  return withDescription(
    (value: unknown, path: string): Decoded<B> => {
      const result = decoder(value, path);
      if (E.isRight(result)) return E.right(convert(result.right));
      const convertedPart = withReadablePart(result.left, (read: A) => ({ converted: convert(read) }));
      storePart(result.left, convertedPart === undefined ? missingPart : convertedPart.converted);
      return result;
    },
    { type: 'narrowed', decoder, validation: {} },
  );
}

type Check<A> = (value: A, path: string) => readonly FieldError[];

/**
 * Validates the decoded value, or its readable part if decoding failed. A check that reads an unreadable field is skipped, so pass checks of
 * different fields separately.
 */
export function refine<A>(decoder: Decoder<A>, ...checks: readonly Check<A>[]): Decoder<A> {
  return withDescription(
    (value: unknown, path: string): Decoded<A> => {
      const result = decoder(value, path);
      if (E.isRight(result)) {
        return decodedOrErrors(
          checks.flatMap((check) => check(result.right, path)),
          result.right,
        );
      }
      const checkErrors = checks.flatMap(
        (check) => withReadablePart(result.left, (readablePart: A) => check(readablePart, path)) ?? [],
      );
      if (checkErrors.length > 0) {
        const previousPart = partOf(result.left);
        result.left.push(...checkErrors);
        storePart(result.left, previousPart);
      }
      return result;
    },
    { type: 'narrowed', decoder, validation: {} },
  );
}

/** `from` is the field's name in the configuration if it differs from the property. */
interface Field<A> {
  readonly decoder: Decoder<A>;
  /** `null` is an error instead of counting as absent. */
  readonly refusesNull?: true;
  readonly from?: string;
  readonly effect?: Effect;
  readonly absent: 'error' | 'left out' | { readonly value: A };
}

export interface RequiredField<A> extends Field<A> {
  readonly absent: 'error' | { readonly value: A };
}

export interface OptionalField<A> extends Field<A> {
  readonly absent: 'left out';
}

export function required<A>(decoder: Decoder<A>, sourceField?: string): RequiredField<A> {
  return { decoder, absent: 'error', ...(sourceField === undefined ? {} : { from: sourceField }) };
}

export function optional<A>(decoder: Decoder<A>, sourceField?: string): OptionalField<A> {
  return { decoder, absent: 'left out', ...(sourceField === undefined ? {} : { from: sourceField }) };
}

export function withDefault<A>(decoder: Decoder<A>, value: A, sourceField?: string): RequiredField<A> {
  return { decoder, absent: { value }, ...(sourceField === undefined ? {} : { from: sourceField }) };
}

/**
 * Declares a field that restricts access or selects the affected workloads. Unknown fields in it are never ignored ({@link decodeIgnoringUnknown}), because
 * that would allow more than intended.
 */
export function restrictingField<F extends Field<never> | Field<unknown>>(field: F): F {
  const decoder = field.decoder as Decoder<unknown>;
  const strictDecoder = (value: unknown, path: string): Decoded<unknown> => {
    const result = decoder(value, path);
    if (E.isRight(result)) return result;
    return decodedOrErrors(
      result.left.map(({ unknown: _, isIgnored: __, ...error }) => error),
      partOf(result.left),
    );
  };
  withDescription(strictDecoder, { type: 'narrowed', decoder, validation: {} });
  return { ...field, decoder: strictDecoder };
}

/**
 * Declares fields that restrict access, for which `null` is an error: in YAML, a list whose items are all commented out is `null`. As an absent field
 * it would allow more than intended.
 */
export function restrictions<F extends Readonly<Record<string, Field<unknown>>>>(fields: F): F {
  const fieldsWithoutNull = Object.entries(fields).map(([property, field]) => [
    property,
    { ...field, refusesNull: true },
  ]);
  return Object.fromEntries(fieldsWithoutNull) as F;
}

export type FieldDecoders<T> = {
  readonly [K in keyof T]-?: Record<never, never> extends Pick<T, K>
    ? OptionalField<Exclude<T[K], undefined>>
    : RequiredField<T[K]>;
};

/** Older names of fields, with the older form of their values. Ignored if the current name is present. */
export type Aliases<T> = {
  readonly [oldName: string]: { readonly [K in keyof T]-?: readonly [K, Decoder<Exclude<T[K], undefined>>] }[keyof T];
};

const emptyFieldViolation = violation.emptyValue('set a value, or remove the field');

/** @param ignoresField ignores unknown fields, which are errors by default */
export function struct<T extends object>(
  fields: FieldDecoders<T>,
  aliases: Aliases<T> = {},
  ignoresField: 'unknown fields' | undefined = undefined,
): Decoder<T> {
  const plan = Object.entries(fields as Record<string, Field<unknown>>).map(([property, field]) => ({
    property,
    name: field.from ?? property,
    field,
  }));
  const oldNames = Object.entries(aliases);
  const refusesNull = new Set(plan.filter(({ field }) => field.refusesNull).map(({ property }) => property));
  const fieldNames = new Set([...plan.map((entry) => entry.name), ...Object.keys(aliases)]);
  return withDescription(
    (value: unknown, path: string): Decoded<T> => {
      if (!isObject(value)) return fail(path, violation.wrongType('an object', value));
      const errors = ignoresField === undefined ? unknownFields(value, fieldNames, path) : [];
      const result: Record<string, unknown> = {};
      const prefix = path === '' ? '' : `${path}.`;
      for (const { property, name, field } of plan) {
        const fieldValue = value[name];
        if (fieldValue !== undefined && fieldValue !== null)
          result[property] = valueOrPart(field.decoder(fieldValue, prefix + name), errors);
        else if (fieldValue === null && field.refusesNull) {
          errors.push(violation.fieldError(prefix + name, emptyFieldViolation));
          result[property] = missingPart;
        }
      }
      for (const [oldName, [property, decoder]] of oldNames) {
        const fieldValue = value[oldName];
        if (fieldValue === null && refusesNull.has(String(property))) {
          errors.push(violation.fieldError(fieldPath(path, oldName), emptyFieldViolation));
          result[String(property)] = missingPart;
        }
        if (fieldValue === undefined || fieldValue === null || Object.hasOwn(result, property)) continue;
        result[String(property)] = valueOrPart(
          (decoder as Decoder<unknown>)(fieldValue, fieldPath(path, oldName)),
          errors,
        );
      }
      for (const { property, name, field } of plan) {
        if (Object.hasOwn(result, property) || field.absent === 'left out') continue;
        if (field.absent !== 'error') result[property] = field.absent.value;
        else {
          errors.push(violation.fieldError(fieldPath(path, name), violation.missingValue()));
          result[property] = missingPart;
        }
      }
      return decodedOrErrors(errors, result as T);
    },
    { type: 'object', fields: fieldDescriptions(fields as Record<string, Field<unknown>>, aliases) },
  );
}

function fieldDescriptions(fields: Readonly<Record<string, Field<unknown>>>, aliases: object): FieldDescription[] {
  const currentFields = Object.entries(fields).map(([property, { decoder, absent, from, refusesNull, effect }]) => ({
    ...{ property, name: from ?? property, decoder, isRequired: absent === 'error', refusesNull: refusesNull === true },
    ...(effect && { effect }),
  }));
  const aliasEntries = Object.entries(aliases as Readonly<Record<string, readonly [string, Decoder<unknown>]>>);
  return [
    ...currentFields.map(({ property, ...field }) => field),
    ...aliasEntries.map(([name, [property, decoder]]) => {
      const aliasOf = currentFields.find((field) => field.property === property);
      if (aliasOf === undefined) throw new TypeError(`${name} is an alias of an unknown field`);
      const { refusesNull, effect } = aliasOf;
      return { name, decoder, isRequired: false, refusesNull, aliasOf: aliasOf.name, ...(effect && { effect }) };
    }),
  ];
}

export function decodeWith<A>(decoder: Decoder<A>, value: unknown): Decoded<A> {
  return decoder(value, '');
}

/**
 * Decodes as if unknown fields were absent. Returns the errors of these fields with the result, or with the other errors.
 * @param ignoredKinds default: all
 */
export function decodeIgnoringUnknown<A>(
  decoder: Decoder<A>,
  ignoredKinds: readonly UnknownField[] = ['misspelt', 'strange'],
): (value: unknown) => Decoded<{ value: A; unknownFields: FieldError[] }> {
  return (value) => {
    const firstResult = decoder(value, '');
    if (E.isRight(firstResult)) return E.right({ value: firstResult.right, unknownFields: [] });
    const ignoredErrors = firstResult.left.filter(
      (error) => error.unknown !== undefined && ignoredKinds.includes(error.unknown),
    );
    if (ignoredErrors.length === 0) return firstResult;
    // Removing the fields once is enough, because structs report all unknown fields regardless of other errors.
    const decodedRest = decoder(omitPaths(value, new Set(ignoredErrors.map((error) => error.path)), ''), '');
    return E.isRight(decodedRest)
      ? E.right({ value: decodedRest.right, unknownFields: ignoredErrors })
      : decodedOrErrors(
          [...decodedRest.left, ...ignoredErrors.map((error) => ({ ...error, isIgnored: true as const }))],
          partOf(decodedRest.left) as never,
        );
  };
}

function omitPaths(value: unknown, paths: ReadonlySet<string>, path: string): unknown {
  if (Array.isArray(value)) return value.map((item, index) => omitPaths(item, paths, `${path}[${index}]`));
  if (!isObject(value)) return value;
  const keptEntries = Object.entries(value).filter(([key]) => !paths.has(fieldPath(path, key)));
  return Object.fromEntries(
    keptEntries.map(([key, element]) => [key, omitPaths(element, paths, fieldPath(path, key))]),
  );
}

export function decodedOrErrors<A>(errors: readonly FieldError[], value: A): Decoded<A> {
  if (errors.length === 0) return E.right(value);
  const [firstError, ...otherErrors] = errors as NonEmptyArray<FieldError>;
  const allErrors: NonEmptyArray<FieldError> = [firstError, ...otherErrors];
  storePart(allErrors, value);
  return E.left(allErrors);
}

function unknownFields(value: object, fieldNames: ReadonlySet<string>, path: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const key in value) {
    if (fieldNames.has(key)) continue;
    if (errors.length === maxUnknownFields) {
      const count = Object.keys(value).filter((field) => !fieldNames.has(field)).length;
      return [...errors, limitError(path, count, maxUnknownFields, 'unknown fields')];
    }
    const nearest = nearestName(key, fieldNames);
    const unknownReason = nearest === undefined ? 'strange' : 'misspelt';
    errors.push({
      ...violation.fieldError(fieldPath(path, key), violation.unknownField(nearest)),
      unknown: unknownReason,
    });
  }
  return errors;
}

/** On failure, adds the errors to the list and returns the readable part. */
function valueOrPart<A>(result: Decoded<A>, errors: FieldError[]): A {
  if (E.isRight(result)) return result.right;
  errors.push(...result.left);
  // Only checks receive a partial value. They do not read its unreadable fields.
  return partOf(result.left) as A;
}
