/**
 * Structural schemas of decoders (`x-kubernetes-*`: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/). Decoders treat `null` as
 * absent, and the API server drops it before validation unless the field is nullable. Fields for which `null` is an error are nullable, so that the
 * decoder rejects the object.
 */
import {
  type Describable,
  descriptionOf,
  type FieldDescription,
  type SchemaValidation,
  type ValueValidation,
} from '../fields/description.ts';

export interface StructuralSchema extends ValueValidation {
  readonly type?: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean';
  readonly description?: string;
  readonly nullable?: true;
  readonly properties?: Readonly<Record<string, StructuralSchema>>;
  readonly items?: StructuralSchema;
  readonly additionalProperties?: StructuralSchema;
  readonly 'x-kubernetes-preserve-unknown-fields'?: true;
  readonly 'x-kubernetes-int-or-string'?: true;
  readonly 'x-kubernetes-list-type'?: 'map' | 'set' | 'atomic';
  readonly 'x-kubernetes-list-map-keys'?: readonly string[];
  readonly 'x-kubernetes-validations'?: readonly CelRule[];
}

export interface CelRule {
  readonly rule: string;
  readonly message: string;
  readonly fieldPath?: string;
}

/** @throws TypeError if a handwritten decoder has no description (`withDescription`) */
export function structuralSchema(decoder: Describable, path = 'spec'): StructuralSchema {
  const description = descriptionOf(decoder);
  if (description === undefined) throw new TypeError(`the decoder of ${path} has no description`);
  switch (description.type) {
    case 'text':
      return { type: 'string' };
    case 'boolean':
      return { type: 'boolean' };
    case 'decimal':
      return { type: 'number' };
    case 'integer':
      return { type: 'integer', format: 'int64', minimum: description.min, maximum: description.max };
    case 'anything':
      return { 'x-kubernetes-preserve-unknown-fields': true };
    case 'any object':
      return { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
    case 'list':
      return { type: 'array', maxItems: description.max, items: structuralSchema(description.item, `${path}[]`) };
    case 'map':
      return {
        type: 'object',
        maxProperties: description.max,
        additionalProperties: structuralSchema(description.item, `${path}{}`),
      };
    case 'object':
      return objectSchema(description.fields, path);
    case 'narrowed':
      return narrowSchema(structuralSchema(description.decoder, path), description.validation);
  }
}

function objectSchema(fields: readonly FieldDescription[], path: string): StructuralSchema {
  const properties = fields.map(({ name, decoder, refusesNull }): [string, StructuralSchema] => {
    const schema = structuralSchema(decoder, `${path}.${name}`);
    return [name, refusesNull ? { ...schema, nullable: true } : schema];
  });
  const aliases = fields.flatMap(({ aliasOf }) => aliasOf ?? []);
  const requiredFields = fields
    .filter((field) => field.isRequired && !aliases.includes(field.name))
    .map(({ name }) => name);
  return {
    type: 'object',
    properties: Object.fromEntries(properties.sort(([one], [other]) => (one < other ? -1 : 1))),
    ...(requiredFields.length > 0 && { required: requiredFields }),
  };
}

function narrowSchema(
  schema: StructuralSchema,
  { rules, allOf = [], required, ...otherRules }: SchemaValidation,
): StructuralSchema {
  const isNestedSchemaKey = (key: string): boolean =>
    key === 'properties' || key === 'items' || key === 'additionalProperties';
  const entries = Object.entries(otherRules);
  const siblingEntries = entries.filter(([key]) => Object.hasOwn(schema, key) || isNestedSchemaKey(key));
  const directEntries = entries.filter((entry) => !siblingEntries.includes(entry));
  const allSchemas = [...(schema.allOf ?? []), ...allOf, ...siblingEntries.map(([key, value]) => ({ [key]: value }))];
  const validations = [...(schema['x-kubernetes-validations'] ?? []), ...(rules ?? [])];
  return {
    ...schema,
    ...Object.fromEntries(directEntries),
    ...(required && { required: [...new Set([...(schema.required ?? []), ...required])] }),
    ...(allSchemas.length > 0 && { allOf: allSchemas }),
    ...(validations.length > 0 && { 'x-kubernetes-validations': validations }),
  };
}
