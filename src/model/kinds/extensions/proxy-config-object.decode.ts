import { count, type Decoder, dictionary, fieldPath, optional, refine, struct, text } from '../../fields/decode.ts';
import { withoutEffect } from '../../fields/effect.ts';
import * as violation from '../../fields/violation.ts';
import { scopeFields } from '../policies/policy-target.decode.ts';
import type { ProxyConfigObject } from './proxy-config-object.ts';

const notInjected = 'only a sidecar injector applies it, and this control plane has none';

/** A ProxyConfig's `spec`. */
export const proxyConfigObject: Decoder<ProxyConfigObject> = struct<ProxyConfigObject>({
  selector: withoutEffect(scopeFields.selector, notInjected),
  concurrency: withoutEffect(optional(count), notInjected),
  environmentVariables: withoutEffect(
    optional(
      refine(dictionary(text), (variables, path) =>
        Object.keys(variables).flatMap((variable) =>
          violation.errorsAt(
            fieldPath(path, variable),
            /^[^=\0]+$/.test(variable) ? undefined : violation.mustBe('the name of an environment variable', variable),
          ),
        ),
      ),
    ),
    notInjected,
  ),
  // Which images there are, the registry says.
  image: withoutEffect(optional(struct<{ imageType?: string }>({ imageType: optional(text) })), notInjected),
});
