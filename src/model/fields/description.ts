/**
 * What a decoder takes, as a schema can say it: CustomResourceDefinitions are made of it (`src/model/schemas/`). Every combinator
 * describes what it makes; a decoder that is written by hand, or a check that a schema can make as well, says so with
 * {@link inSchema}.
 */

/** A decoder, whatever it makes. */
// biome-ignore lint/suspicious/noExplicitAny: a function that takes anything is given to nobody who calls it here
export type Describable = (...args: any[]) => unknown;

export type Description =
  | { readonly type: 'text' | 'boolean' | 'decimal' | 'anything' | 'any object' }
  | { readonly type: 'integer'; readonly min: number; readonly max: number }
  /** `max`: the most items or entries. */
  | { readonly type: 'list' | 'map'; readonly item: Describable; readonly max: number }
  /** `unread`: other fields that the API has, where unknown fields are passed over; absent: unknown fields are errors. */
  | { readonly type: 'object'; readonly fields: readonly FieldDescription[]; readonly unread?: readonly string[] }
  /** Takes nothing that the other does not take. */
  | { readonly type: 'narrowed'; readonly of: Describable; readonly by: Validation };

export interface FieldDescription {
  /** Name of the field, as it is written. */
  readonly name: string;
  readonly decoder: Describable;
  readonly isRequired: boolean;
  /** `null` is a mistake, and not the same as nothing. */
  readonly refusesNull: boolean;
  /** The field that this is another name of; where that one is required, this one will do. */
  readonly aliasOf?: string;
  /** Absent: the field is used, or what is within it. */
  readonly effect?: Effect;
}

/** What is said of a field that is not simply used (`effect.ts`). */
export type Effect =
  | {
      readonly type: 'none' | 'some values' | 'some objects';
      /** Completes "has no effect: …". */
      readonly reason: string;
      /**
       * @param value as it is written
       * @param beside the object that the field is in, as it is written
       */
      readonly warns: (value: unknown, beside: Readonly<Record<string, unknown>>) => boolean;
    }
  | { readonly type: 'refused'; readonly reason: string };

/** What the API server checks of a value besides its type: value validations of structural schemas. */
export interface ValueValidation {
  readonly enum?: readonly (string | number | boolean | null)[];
  readonly format?: string;
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, ValueValidation>>;
  readonly items?: ValueValidation;
  readonly additionalProperties?: ValueValidation;
  readonly allOf?: readonly ValueValidation[];
  readonly anyOf?: readonly ValueValidation[];
  readonly oneOf?: readonly ValueValidation[];
  readonly not?: ValueValidation;
}

/** And rules of CEL. */
export interface Validation extends ValueValidation {
  readonly rules?: readonly Rule[];
}

export interface Rule {
  readonly rule: string;
  readonly message: string;
  /** Path to the field that is wrong, from where the rule stands: `.provider`. */
  readonly fieldPath?: string;
}

const descriptions = new WeakMap<Describable, Description>();

/** @returns the decoder */
export function describedAs<D extends Describable>(decoder: D, description: Description): D {
  descriptions.set(decoder, description);
  return decoder;
}

/** Undefined: nobody has said what it takes. */
export function descriptionOf(decoder: Describable): Description | undefined {
  return descriptions.get(decoder);
}

/**
 * Says to schemas what a decoder refuses, beside what is known of it already. It must not refuse what the decoder takes:
 * `src/model/schemas/resource-definition.test.ts` holds that, and so does a real API server (`test/cluster/definitions.test.ts`).
 *
 * @returns a decoder that does the same
 */
export function inSchema<D extends Describable>(decoder: D, by: Validation): D {
  // A decoder of its own: the other one may stand in other places.
  const narrowed = ((value: unknown, path: unknown): unknown => decoder(value, path)) as unknown as D;
  return describedAs(narrowed, { type: 'narrowed', of: decoder, by });
}

/** The rule that fields exclude each other. */
export function atMostOneOf(fields: readonly string[]): Validation {
  const pairs = fields.flatMap((one, index) => fields.slice(index + 1).map((other) => ({ required: [one, other] })));
  return { not: pairs.length === 1 ? pairs[0]! : { anyOf: pairs } };
}

/** The rule that one of several fields is there, and no more. */
export function exactlyOneOf(fields: readonly string[]): Validation {
  return { oneOf: fields.map((field) => ({ required: [field] })) };
}

/** The rule that at least one of several fields is there. */
export function someOf(fields: readonly string[]): Validation {
  return { anyOf: fields.map((field) => ({ required: [field] })) };
}
