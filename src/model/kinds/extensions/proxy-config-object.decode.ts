import { count, type Decoder, dictionary, fieldPath, optional, refine, struct, text } from '../../fields/decode.ts';
import * as violation from '../../fields/violation.ts';
import { scopeFields } from '../policies/policy-target.decode.ts';
import type { ProxyConfigObject } from './proxy-config-object.ts';

export const proxyConfigObject: Decoder<ProxyConfigObject> = struct<ProxyConfigObject>({
  selector: scopeFields.selector,
  concurrency: optional(count),
  environmentVariables: optional(
    refine(dictionary(text), (variables, path) =>
      Object.keys(variables).flatMap((variable) =>
        violation.errorsAt(
          fieldPath(path, variable),
          /^[^=\0]+$/.test(variable) ? undefined : violation.mustBe('the name of an environment variable', variable),
        ),
      ),
    ),
  ),
  // Accepts any image type, because the registry determines which images exist.
  image: optional(struct<{ imageType?: string }>({ imageType: optional(text) })),
});
