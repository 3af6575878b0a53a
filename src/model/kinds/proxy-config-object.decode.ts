import { count, type Decoder, dictionary, fieldPath, optional, refine, struct, text } from '../fields/decode.ts';
import { mistakeAt } from './field-rules.ts';
import { scopeFields } from './policies/policy-target.decode.ts';
import type { ProxyConfigObject } from './proxy-config-object.ts';

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
  // Which images there are, the registry says.
  image: optional(struct<{ imageType?: string }>({ imageType: optional(text) })),
});
