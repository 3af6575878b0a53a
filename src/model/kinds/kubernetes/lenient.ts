/** Decoding of Kubernetes' own objects: what is not read is not looked at, because every cluster has fields of its own. */
import { isObject } from '../../../runtime/json-object.ts';
import { anything, type Decoded, type Decoder, type Fields, fail, struct } from '../../fields/decode.ts';
import { describedAs } from '../../fields/description.ts';

/** An object of which some fields are read. */
export function reading<T extends object>(fields: Fields<T>): Decoder<T> {
  const strict = struct<T>(fields);
  const names = Object.entries<{ readonly from?: string }>(fields as never).map(([name, field]) => field.from ?? name);
  const decoder = (value: unknown, path: string): Decoded<T> => {
    if (!isObject(value)) return strict(value, path);
    return strict(Object.fromEntries(names.flatMap((name) => (name in value ? [[name, value[name]]] : []))), path);
  };
  return describedAs(decoder, { type: 'narrowed', of: strict, by: {} });
}

/** A number or a text: `targetPort: 8080`, `targetPort: http`. */
export const intOrText: Decoder<number | string> = describedAs(
  (value: unknown, path: string): Decoded<number | string> => {
    if (typeof value === 'string' && value !== '') return { _tag: 'Right', right: value };
    if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 65535) {
      return { _tag: 'Right', right: value };
    }
    return fail(path, `must be a port from 0 to 65535 or the name of one, not ${JSON.stringify(value)}`);
  },
  { type: 'narrowed', of: anything, by: {} },
);
