import { count, type Decoder, dictionary, fieldPath, optional, refine, struct, text } from '../decode.ts';
import { mistakeAt } from './field-rules.ts';
import { scopeFields } from './policy-target.decode.ts';
import type { ProxyConfigObject } from './proxy-config-object.ts';

const imageTypes = ['default', 'debug', 'distroless'];

/** A ProxyConfig's `spec`. */
export const proxyConfigObject: Decoder<ProxyConfigObject> = struct<ProxyConfigObject>({
  selector: scopeFields.selector,
  concurrency: optional(count),
  environmentVariables: optional(
    refine(dictionary(text), (variables, path) =>
      Object.keys(variables).flatMap((variable) =>
        mistakeAt(fieldPath(path, variable), /^[^=\0]+$/.test(variable) ? undefined : 'is no name of a variable'),
      ),
    ),
  ),
  image: optional(
    struct<{ imageType?: string }>({
      imageType: optional(
        refine(text, (type, path) =>
          mistakeAt(
            path,
            type === '' || imageTypes.includes(type) ? undefined : `must be one of ${imageTypes.join(', ')}`,
          ),
        ),
      ),
    }),
  ),
});
