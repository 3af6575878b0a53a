/** Describes the values that a decoder accepts as a schema, for CustomResourceDefinitions (`src/model/schemas/`). */

// biome-ignore lint/suspicious/noExplicitAny: callers never pass arguments of an unchecked type
export type Describable = (...args: any[]) => unknown;

export type Description =
  | { readonly type: 'text' | 'boolean' | 'decimal' | 'anything' | 'any object' }
  | { readonly type: 'integer'; readonly min: number; readonly max: number }
  | { readonly type: 'list' | 'map'; readonly item: Describable; readonly max: number }
  /** `unread` lists ignored fields; it is absent if unknown fields are errors. */
  | { readonly type: 'object'; readonly fields: readonly FieldDescription[]; readonly unread?: readonly string[] }
  | { readonly type: 'narrowed'; readonly decoder: Describable; readonly validation: SchemaValidation };

export interface FieldDescription {
  readonly name: string;
  readonly decoder: Describable;
  readonly isRequired: boolean;
  readonly refusesNull: boolean;
  /** The field of which this one is an alias; the alias satisfies `required`. */
  readonly aliasOf?: string;
  readonly effect?: Effect;
}

export type Effect =
  | {
      readonly type: 'none' | 'some values' | 'some objects';
      /** Completes "has no effect: …". */
      readonly reason: string;
      /** @param siblings the object that contains the field, before decoding */
      readonly warns: (value: unknown, siblings: Readonly<Record<string, unknown>>) => boolean;
    }
  | { readonly type: 'refused'; readonly reason: string };

/** Checked by the API server in addition to the type (structural schemas). */
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

export interface SchemaValidation extends ValueValidation {
  readonly rules?: readonly SchemaRule[];
}

export interface SchemaRule {
  readonly rule: string;
  readonly message: string;
  readonly fieldPath?: string;
}

const descriptions = new WeakMap<Describable, Description>();

export function withDescription<D extends Describable>(decoder: D, description: Description): D {
  descriptions.set(decoder, description);
  return decoder;
}

export function descriptionOf(decoder: Describable): Description | undefined {
  return descriptions.get(decoder);
}

/**
 * The validation must accept all values that the decoder accepts (tested in `src/model/schemas/resource-definition.test.ts`, and with a real API
 * server in `test/cluster/definitions.test.ts`).
 * @returns a new decoder with the same behaviour
 */
export function withSchemaValidation<D extends Describable>(decoder: D, validation: SchemaValidation): D {
  const narrowedDecoder = ((value: unknown, path: unknown): unknown => decoder(value, path)) as unknown as D;
  return withDescription(narrowedDecoder, { type: 'narrowed', decoder, validation });
}

export function atMostOneOf(fields: readonly string[]): SchemaValidation {
  const requiredPairs = fields.flatMap((fieldName, index) =>
    fields.slice(index + 1).map((otherField) => ({ required: [fieldName, otherField] })),
  );
  return { not: requiredPairs.length === 1 ? requiredPairs[0]! : { anyOf: requiredPairs } };
}

export function exactlyOneOf(fields: readonly string[]): SchemaValidation {
  return { oneOf: fields.map((field) => ({ required: [field] })) };
}

export function atLeastOneOf(fields: readonly string[]): SchemaValidation {
  return { anyOf: fields.map((field) => ({ required: [field] })) };
}
