/**
 * Decodes Kubernetes' own objects. Ignores unknown fields, because most are irrelevant to the mesh and newer clusters have more, but reports
 * misspelled ones.
 */
import { anyValue, type Decoded, type Decoder, type FieldDecoders, fail, struct } from '../../fields/decode.ts';
import { descriptionOf, withDescription } from '../../fields/description.ts';
import * as violation from '../../fields/violation.ts';

export function partialStruct<T extends object>(
  fields: FieldDecoders<T>,
  unreadFields: readonly string[] = [],
): Decoder<T> {
  const decoder = struct<T>(fields, {}, 'unknown fields');
  const description = descriptionOf(decoder);
  if (description?.type !== 'object') throw new TypeError('the fields of an object are not described');
  return withDescription((value: unknown, path: string) => decoder(value, path), {
    ...description,
    unread: unreadFields,
  });
}

export const intOrText: Decoder<number | string> = withDescription(
  (value: unknown, path: string): Decoded<number | string> => {
    if (typeof value === 'string' && value !== '') return { _tag: 'Right', right: value };
    if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 65535) {
      return { _tag: 'Right', right: value };
    }
    return fail(path, violation.mustBe('a port number from 0 to 65535 or a port name', value));
  },
  { type: 'narrowed', decoder: anyValue, validation: {} },
);
