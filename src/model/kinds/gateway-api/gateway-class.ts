import { anyValue, type Decoder, optional, refine, required, struct, text } from '../../fields/decode.ts';
import { withoutEffect } from '../../fields/effect.ts';
import * as violation from '../../fields/violation.ts';

export interface GatewayClass {
  /** A name such as `istio.io/gateway-controller`. */
  readonly controllerName: string;
  readonly parametersRef?: unknown;
  readonly description?: string;
}

export const gatewayClass: Decoder<GatewayClass> = struct<GatewayClass>({
  controllerName: required(
    refine(text, (value, path) =>
      violation.errorsAt(
        path,
        /^[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?\/[A-Za-z0-9/\-._~%!$&'()*+,;=:]+$/.test(value)
          ? undefined
          : violation.mustBe('a domain and a path such as istio.io/gateway-controller', value),
      ),
    ),
  ),
  parametersRef: withoutEffect(optional(anyValue), 'this control plane does not deploy gateways'),
  description: optional(text),
});
