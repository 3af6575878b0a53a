/** Validation errors as data. The messages are built here, so that their wording is uniform. `errorsAt` adds the path. */
import type { FieldCode } from '../../runtime/error-codes/fields.ts';
import { visibleLine } from '../../runtime/visible-text.ts';
import { nearestName } from './nearest-name.ts';

export interface FieldViolation {
  readonly code: FieldCode;
  /** Does not contain the path, such as `must be a duration such as "5s", got "5"`. */
  readonly message: string;
  readonly expected?: string;
  /** The rejected value, escaped and at most {@link maxShownCharacters} long, such as `"5"`. */
  readonly got?: string;
  readonly near?: string;
  /** Path of a conflicting field. */
  readonly beside?: string;
}

export interface FieldError extends FieldViolation {
  readonly path: string;
  /** A later version may define the field (`decodeIgnoringUnknown` in decode.ts). */
  readonly unknown?: UnknownField;
  /** Decoding succeeded despite the violation. */
  readonly isIgnored?: true;
}

export type UnknownField = 'misspelt' | 'strange';

export function errorsAt(path: string, violation: FieldViolation | undefined): FieldError[] {
  return violation === undefined ? [] : [fieldError(path, violation)];
}

export function fieldError(path: string, violation: FieldViolation): FieldError {
  return { path, ...violation };
}

export const maxShownCharacters = 100;

export function quotedValue(value: unknown): string {
  if (value === null || value === undefined) return 'null';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'an object';
  if (typeof value !== 'string') return String(value);
  const quotedText = visibleLine(JSON.stringify(value.slice(0, maxShownCharacters)));
  return value.length <= maxShownCharacters ? quotedText : `${quotedText.slice(0, -1)}…" (${value.length} characters)`;
}

export function listText(names: readonly string[], conjunction: 'and' | 'or' = 'and'): string {
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} ${conjunction} ${names.at(-1)}`;
}

interface Detail {
  /** The message ends with this reason or suggestion. */
  readonly hint?: string | undefined;
}

function expectation(
  code: FieldCode,
  verb: 'be' | 'have',
  expected: string,
  actual: string,
  hint?: string,
): FieldViolation {
  const message = `must ${verb} ${expected}, got ${actual}${hint === undefined ? '' : `: ${hint}`}`;
  return { code, message, expected, got: actual };
}

/** Right type, wrong form: `must be EXPECTED, got VALUE`. */
export function mustBe(expected: string, value: unknown, { hint }: Detail = {}): FieldViolation {
  return expectation('FIELD_FORMAT_INVALID', 'be', expected, quotedValue(value), hint);
}

/** Like {@link mustBe}, without the value, which may be long or secret. */
export function mustBeHidden(expected: string, { hint }: Detail = {}): FieldViolation {
  const message = `must be ${expected}${hint === undefined ? '' : `: ${hint}`}`;
  return { code: 'FIELD_FORMAT_INVALID', message, expected };
}

export function wrongType(expected: string, value: unknown, { hint }: Detail = {}): FieldViolation {
  return expectation('FIELD_TYPE_INVALID', 'be', expected, quotedValue(value), hint);
}

export function outOfRange(expected: string, value: unknown, { hint }: Detail = {}): FieldViolation {
  return expectation('FIELD_OUT_OF_RANGE', 'be', expected, quotedValue(value), hint);
}

export function unknownValue(names: readonly string[], value: unknown, { hint }: Detail = {}): FieldViolation {
  const nearestValue = typeof value === 'string' ? nearestName(value, names) : undefined;
  const advice = nearestValue === undefined ? hint : `did you mean ${nearestValue}?`;
  const expected = names.length === 1 ? names[0]! : `one of ${names.join(', ')}`;
  const unknownValueViolation = expectation('FIELD_VALUE_UNKNOWN', 'be', expected, quotedValue(value), advice);
  return nearestValue === undefined ? unknownValueViolation : { ...unknownValueViolation, near: nearestValue };
}

export function tooLarge(max: number, count: number, unit = 'characters'): FieldViolation {
  return expectation('FIELD_TOO_LARGE', 'have', `at most ${max} ${unit}`, String(count));
}

export function emptyValue(hint?: string): FieldViolation {
  return { code: 'FIELD_EMPTY', message: `must not be empty${hint === undefined ? '' : `: ${hint}`}` };
}

/** @param condition completes "is required …", such as `with mode MUTUAL` */
export function missingValue(condition?: string): FieldViolation {
  return { code: 'FIELD_REQUIRED', message: condition === undefined ? 'is required' : `is required ${condition}` };
}

export function missingAny(names: readonly string[]): FieldViolation {
  const expected = listText(names, 'or');
  return { code: 'FIELD_REQUIRED', message: `must have ${expected}`, expected, got: 'none' };
}

/** @param condition completes "must not be set …", such as `with mode SIMPLE` or `together with route` */
export function excludedField(condition: string): FieldViolation {
  return { code: 'FIELDS_EXCLUSIVE', message: `must not be set ${condition}` };
}

export function exclusiveFields(names: readonly string[]): FieldViolation {
  return {
    code: 'FIELDS_EXCLUSIVE',
    message: `must have only one of ${listText(names)}`,
    expected: `one of ${listText(names)}`,
  };
}

export function choiceViolation(names: readonly string[], setNames: readonly string[]): FieldViolation {
  const expected = `exactly one of ${listText(names)}`;
  return expectation(
    setNames.length === 0 ? 'FIELD_REQUIRED' : 'FIELDS_EXCLUSIVE',
    'have',
    expected,
    setNames.length === 0 ? 'none' : listText(setNames),
  );
}

export function unknownField(nearestField?: string): FieldViolation {
  if (nearestField === undefined) return { code: 'FIELD_UNKNOWN', message: 'unknown field' };
  return { code: 'FIELD_UNKNOWN', message: `unknown field; did you mean ${nearestField}?`, near: nearestField };
}

export function duplicate(message: string, actual?: string, otherPlace?: string): FieldViolation {
  return {
    ...{ code: 'FIELD_DUPLICATE', message },
    ...(actual !== undefined && { got: quotedValue(actual) }),
    ...(otherPlace !== undefined && { beside: otherPlace }),
  };
}

export function conflict(message: string, actual?: unknown): FieldViolation {
  return { code: 'FIELD_CONFLICT', message, ...(actual !== undefined && { got: quotedValue(actual) }) };
}

export function disallowedValue(message: string, actual?: unknown): FieldViolation {
  return { code: 'FIELD_NOT_ALLOWED', message, ...(actual !== undefined && { got: quotedValue(actual) }) };
}

export function unknownReference(message: string, actual?: unknown): FieldViolation {
  return { code: 'FIELD_REFERENCE_UNKNOWN', message, ...(actual !== undefined && { got: quotedValue(actual) }) };
}

export function unsupportedFeature(message: string): FieldViolation {
  return { code: 'FIELD_UNSUPPORTED', message };
}

export function malformedValue(message: string, actual?: string): FieldViolation {
  return { code: 'FIELD_FORMAT_INVALID', message, ...(actual !== undefined && { got: quotedValue(actual) }) };
}

/** A value on which Envoy crashes or rejects its entire configuration. */
export function unsafeValue(message: string): FieldViolation {
  return { code: 'FIELD_UNSAFE', message };
}

/** A warning for a field that is valid, but has no effect. @param reason completes "has no effect: …" */
export function ineffectiveField(reason: string): FieldViolation {
  return { code: 'FIELD_WITHOUT_EFFECT', message: `has no effect: ${reason}` };
}

/** A warning for a field that is valid, but probably not intended. */
export function doubtfulValue(message: string, actual?: unknown): FieldViolation {
  return { code: 'FIELD_DOUBTFUL', message, ...(actual !== undefined && { got: quotedValue(actual) }) };
}

/** A warning that an earlier route of the object matches all requests. */
export function shadowedMatch(message: string, shadowingPath: string): FieldViolation {
  return { code: 'MATCH_SHADOWED', message, beside: shadowingPath };
}

/** A warning for a field that is supported, but removed in a later version. */
export function deprecatedField(message: string): FieldViolation {
  return { code: 'FIELD_DEPRECATED', message };
}

export function unknownKind(message: string, actual: string, nearestKind?: string): FieldViolation {
  return { code: 'KIND_UNKNOWN', message, got: actual, ...(nearestKind !== undefined && { near: nearestKind }) };
}

export function withConsequence<V extends FieldViolation>(violation: V, consequence: string): V {
  return { ...violation, message: `${violation.message} (${consequence})` };
}
