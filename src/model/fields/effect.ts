/**
 * Whether a field that is accepted changes anything. The declaration of a field says so: a field without a mark is used. Warnings and the
 * tables of docs/compatibility.md are derived from the marks; `test/fields/` compares them with what the generators make of a field.
 */
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
 * Marks a field as accepted without effect.
 *
 * @param reason completes "has no effect: …"
 * @param harmless values that ask for what happens anyway: they have no warning, nor have empty texts, lists and maps
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
 * Marks a field as used but for some values.
 *
 * @param reason completes "has no effect: …"
 * @param warns whether a value, as it is written, has no effect
 */
export function withoutEffectWhere<F extends AnyField>(
  field: F,
  reason: string,
  warns: (value: unknown) => boolean,
): F {
  return { ...field, effect: { type: 'some values', reason, warns } };
}

/**
 * Marks a field as used but beside some values of other fields.
 *
 * @param reason completes "has no effect: …"
 * @param warns whether it has none beside the fields of its object, as they are written
 * @param harmless values that ask for what happens anyway
 */
export function withoutEffectBeside<F extends AnyField>(
  field: F,
  reason: string,
  warns: (beside: Readonly<Record<string, unknown>>) => boolean,
  harmless: readonly unknown[] = [],
): F {
  const effect: Effect = {
    type: 'some objects',
    reason,
    warns: (value, beside) => !isUnset(value, field.decoder) && !harmless.includes(value) && warns(beside),
  };
  return { ...field, effect };
}

/** Says as much as a field that is left out. An empty message may say more: which of several it is. */
function isUnset(value: unknown, decoder: Describable): boolean {
  if (value === '' || (Array.isArray(value) && value.length === 0)) return true;
  const description = descriptionOf(decoder);
  const isMap = description?.type === 'map' && descriptionOf(description.item)?.type !== 'anything';
  return isMap && isObject(value) && Object.keys(value).length === 0;
}

/** Marks a field that the API has, and that a check of the decoder refuses whatever its value is. */
export function refused<F extends AnyField>(field: F, reason: string): F {
  return { ...field, effect: { type: 'refused', reason } };
}

const effectless = new WeakMap<Describable, boolean>();

/** Whether any field within can warn: nothing else is looked at a second time. */
function canWarn(decoder: Describable): boolean {
  const known = effectless.get(decoder);
  if (known !== undefined) return known;
  const description = descriptionOf(decoder);
  const can =
    description?.type === 'object'
      ? description.unread !== undefined ||
        description.fields.some((field) => isWarning(field) || canWarn(field.decoder))
      : description?.type === 'list' || description?.type === 'map'
        ? canWarn(description.item)
        : description?.type === 'narrowed' && canWarn(description.of);
  effectless.set(decoder, can);
  return can;
}

function isWarning({ effect }: FieldDescription): boolean {
  return effect !== undefined && effect.type !== 'refused';
}

/** Fields of one object of which each is reported. */
export const maxEffectWarnings = 100;

/**
 * A warning for each field of a value, as it is written, that has no effect; beyond {@link maxEffectWarnings} one for all others.
 *
 * @param value one that the decoder accepts
 */
export function effectWarnings(decoder: Describable, value: unknown, path = ''): FieldError[] {
  const all = warningsWithin(decoder, value, path);
  if (all.length <= maxEffectWarnings) return all;
  const message = `has ${all.length - maxEffectWarnings} more fields without effect`;
  return [...all.slice(0, maxEffectWarnings), { path, message, code: 'FIELD_WITHOUT_EFFECT' }];
}

function warningsWithin(decoder: Describable, value: unknown, path: string): FieldError[] {
  if (!canWarn(decoder) || value === undefined || value === null) return [];
  const description = descriptionOf(decoder);
  switch (description?.type) {
    case 'narrowed':
      return warningsWithin(description.of, value, path);
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

/** Fields that are passed over and nearly have the name of one that is read. */
function misspeltFields(
  { fields, unread }: Extract<Description, { type: 'object' }>,
  value: Readonly<Record<string, unknown>>,
  path: string,
): FieldError[] {
  if (unread === undefined) return [];
  const found: FieldError[] = [];
  for (const key in value) {
    if (unread.includes(key) || fields.some(({ name }) => name === key)) continue;
    const near = nearestName(
      key,
      fields.map(({ name }) => name),
    );
    if (near === undefined) continue;
    const message = `has no effect: there is no such field; did you mean ${near}?`;
    found.push({ path: fieldPath(path, key), message, code: 'FIELD_WITHOUT_EFFECT' });
  }
  return found;
}

function fieldWarnings(field: FieldDescription, value: Readonly<Record<string, unknown>>, path: string): FieldError[] {
  const { name, effect, decoder } = field;
  const written = value[name];
  if (written === undefined || written === null) return [];
  const at = fieldPath(path, name);
  if (effect === undefined || effect.type === 'refused' || !effect.warns(written, value)) {
    return effect?.type === 'none' ? [] : warningsWithin(decoder, written, at);
  }
  return [violation.fieldError(at, violation.ineffective(effect.reason))];
}
