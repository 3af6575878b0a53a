/** Marks accepted fields that have limited or no effect. Warnings and the tables of docs/compatibility.md are derived from these marks. */
import { isObject } from '../../runtime/json-object.ts';
import { type FieldError, fieldPath, type OptionalField, type RequiredField } from './decode.ts';
import {
  type Describable,
  type Description,
  descriptionOf,
  type Effect,
  type FieldDescription,
} from './description.ts';
import { nearestName } from './nearest-name.ts';
import * as violation from './violation.ts';

type AnyField = RequiredField<unknown> | OptionalField<unknown> | RequiredField<never> | OptionalField<never>;

/**
 * @param reason completes "has no effect: …"
 * @param harmless values that request the default behaviour; like empty strings, lists and maps, they cause no warning
 */
export function withoutEffect<F extends AnyField>(field: F, reason: string, harmless: readonly unknown[] = []): F {
  const effect: Effect = {
    type: 'none',
    reason,
    warns: (value) => !isUnset(value, field.decoder) && !harmless.includes(value),
  };
  return { ...field, effect };
}

/**
 * @param reason completes "has no effect: …"
 * @param warns receives the value before decoding
 */
export function withoutEffectWhere<F extends AnyField>(
  field: F,
  reason: string,
  warns: (value: unknown) => boolean,
): F {
  return { ...field, effect: { type: 'some values', reason, warns } };
}

/**
 * Marks a field that has no effect with some values of other fields.
 * @param reason completes "has no effect: …"
 * @param warns receives the fields of the containing object before decoding
 */
export function withoutEffectBeside<F extends AnyField>(
  field: F,
  reason: string,
  warns: (siblings: Readonly<Record<string, unknown>>) => boolean,
  harmless: readonly unknown[] = [],
): F {
  const effect: Effect = {
    type: 'some objects',
    reason,
    warns: (value, siblings) => !isUnset(value, field.decoder) && !harmless.includes(value) && warns(siblings),
  };
  return { ...field, effect };
}

/** Whether a value is equivalent to an absent field. An empty message is not, because its presence may select a variant. */
function isUnset(value: unknown, decoder: Describable): boolean {
  if (value === '' || (Array.isArray(value) && value.length === 0)) return true;
  const description = descriptionOf(decoder);
  const isMap = description?.type === 'map' && descriptionOf(description.item)?.type !== 'anything';
  return isMap && isObject(value) && Object.keys(value).length === 0;
}

export function withRejection<F extends AnyField>(field: F, reason: string): F {
  return { ...field, effect: { type: 'refused', reason } };
}

const canWarnByDecoder = new WeakMap<Describable, boolean>();

function canWarn(decoder: Describable): boolean {
  const cachedDecoder = canWarnByDecoder.get(decoder);
  if (cachedDecoder !== undefined) return cachedDecoder;
  const description = descriptionOf(decoder);
  const result =
    description?.type === 'object'
      ? description.unread !== undefined ||
        description.fields.some((field) => isWarning(field) || canWarn(field.decoder))
      : description?.type === 'list' || description?.type === 'map'
        ? canWarn(description.item)
        : description?.type === 'narrowed' && canWarn(description.decoder);
  canWarnByDecoder.set(decoder, result);
  return result;
}

function isWarning({ effect }: FieldDescription): boolean {
  return effect !== undefined && effect.type !== 'refused';
}

export const maxEffectWarnings = 100;

/**
 * Beyond {@link maxEffectWarnings}, one warning covers all remaining fields.
 * @param value before decoding; accepted by the decoder
 */
export function effectWarnings(decoder: Describable, value: unknown, path = ''): FieldError[] {
  const allWarnings = warningsWithin(decoder, value, path);
  if (allWarnings.length <= maxEffectWarnings) return allWarnings;
  const message = `has ${allWarnings.length - maxEffectWarnings} more fields without effect`;
  return [...allWarnings.slice(0, maxEffectWarnings), { path, message, code: 'FIELD_WITHOUT_EFFECT' }];
}

function warningsWithin(decoder: Describable, value: unknown, path: string): FieldError[] {
  if (!canWarn(decoder) || value === undefined || value === null) return [];
  const description = descriptionOf(decoder);
  switch (description?.type) {
    case 'narrowed':
      return warningsWithin(description.decoder, value, path);
    case 'list':
      if (!Array.isArray(value)) return [];
      return value.flatMap((item, index) => warningsWithin(description.item, item, `${path}[${index}]`));
    case 'map':
      if (!isObject(value)) return [];
      return Object.keys(value).flatMap((key) => warningsWithin(description.item, value[key], fieldPath(path, key)));
    case 'object':
      if (!isObject(value)) return [];
      return [
        ...misspeltFields(description, value, path),
        ...description.fields.flatMap((field) => fieldWarnings(field, value, path)),
      ];
    default:
      return [];
  }
}

function misspeltFields(
  { fields, unread }: Extract<Description, { type: 'object' }>,
  value: Readonly<Record<string, unknown>>,
  path: string,
): FieldError[] {
  if (unread === undefined) return [];
  const fieldErrors: FieldError[] = [];
  for (const key in value) {
    if (unread.includes(key) || fields.some(({ name }) => name === key)) continue;
    const nearestField = nearestName(
      key,
      fields.map(({ name }) => name),
    );
    if (nearestField === undefined) continue;
    const message = `has no effect: there is no such field; did you mean ${nearestField}?`;
    fieldErrors.push({ path: fieldPath(path, key), message, code: 'FIELD_WITHOUT_EFFECT' });
  }
  return fieldErrors;
}

function fieldWarnings(field: FieldDescription, value: Readonly<Record<string, unknown>>, path: string): FieldError[] {
  const { name, effect, decoder } = field;
  const writtenValue = value[name];
  if (writtenValue === undefined || writtenValue === null) return [];
  const fieldAt = fieldPath(path, name);
  if (effect === undefined || effect.type === 'refused' || !effect.warns(writtenValue, value)) {
    return effect?.type === 'none' ? [] : warningsWithin(decoder, writtenValue, fieldAt);
  }
  return [violation.fieldError(fieldAt, violation.ineffectiveField(effect.reason))];
}
