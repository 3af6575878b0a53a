/** `gateway.networking.k8s.io` GatewayClass: which control plane carries out the Gateways that name it. */
import { anything, type Decoder, optional, refine, required, struct, text } from '../../fields/decode.ts';
import { withoutEffect } from '../../fields/effect.ts';
import { mistakeAt } from '../field-rules.ts';

export interface GatewayClass {
  /** `istio.io/gateway-controller`. */
  readonly controllerName: string;
  readonly parametersRef?: unknown;
  readonly description?: string;
}

export const gatewayClass: Decoder<GatewayClass> = struct<GatewayClass>({
  controllerName: required(
    refine(text, (value, path) =>
      mistakeAt(
        path,
        /^[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?\/[A-Za-z0-9/\-._~%!$&'()*+,;=:]+$/.test(value)
          ? undefined
          : `must be a domain and a path such as istio.io/gateway-controller, not ${JSON.stringify(value)}`,
      ),
    ),
  ),
  parametersRef: withoutEffect(
    optional(anything),
    'it is for a deployer of gateways, which is not part of this control plane',
  ),
  description: optional(text),
});
