import { create, type DescMessage, type MessageInitShape } from '@bufbuild/protobuf';
import { type Any, AnySchema } from '@bufbuild/protobuf/wkt';
import { encodeDeterministically } from './wire-form.ts';

export function pack<Desc extends DescMessage>(schema: Desc, init?: MessageInitShape<Desc>): Any {
  const value = encodeDeterministically(schema, create(schema, init));
  return create(AnySchema, { typeUrl: `type.googleapis.com/${schema.typeName}`, value });
}

export interface TypedExtension {
  readonly name: string;
  readonly configType: { readonly case: 'typedConfig'; readonly value: Any };
}

export function typedExtension<Desc extends DescMessage>(
  name: string,
  schema: Desc,
  init?: MessageInitShape<Desc>,
): TypedExtension {
  return { name, configType: { case: 'typedConfig', value: pack(schema, init) } };
}
