import {
  boolean,
  type Decoder,
  fieldPath,
  integer,
  list,
  oneOf,
  optional,
  refine,
  required,
  text,
  withDefault,
} from '../../fields/decode.ts';
import { limitErrors } from '../../fields/limits.ts';
import { maxSliceEndpoints } from '../object-limits.ts';
import { partialStruct } from './lenient.ts';
import { type KubernetesObjectReference, objectReference } from './object-reference.ts';

export interface EndpointSlice {
  readonly addressType: 'IPv4' | 'IPv6' | 'FQDN';
  readonly endpoints: readonly SliceEndpoint[];
  readonly ports: readonly SlicePort[];
}

export interface SliceEndpoint {
  readonly addresses: readonly string[];
  readonly conditions: SliceConditions;
  readonly hostname?: string;
  readonly nodeName?: string;
  readonly targetRef?: KubernetesObjectReference;
}

export interface SliceConditions {
  /** Absent means true. */
  readonly ready?: boolean;
  readonly serving?: boolean;
  readonly terminating?: boolean;
}

export interface SlicePort {
  readonly name: string;
  /** Absent for all ports, which is not supported. */
  readonly port?: number;
}

export const unreadOfSlicePort = ['appProtocol', 'protocol'];

export const endpointSlice: Decoder<EndpointSlice> = refine(
  partialStruct<EndpointSlice>({
    addressType: withDefault(oneOf(['IPv4', 'IPv6', 'FQDN']), 'IPv4'),
    endpoints: withDefault(
      list(
        partialStruct<SliceEndpoint>(
          {
            addresses: required(list(text)),
            conditions: withDefault(
              partialStruct<SliceConditions>({
                ready: optional(boolean),
                serving: optional(boolean),
                terminating: optional(boolean),
              }),
              {},
            ),
            hostname: optional(text),
            nodeName: optional(text),

            targetRef: optional(objectReference),
          },
          ['deprecatedTopology', 'hints', 'topology', 'zone'],
        ),
      ),
      [],
    ),
    ports: withDefault(
      list(
        partialStruct<SlicePort>({ name: withDefault(text, ''), port: optional(integer(0, 65535)) }, unreadOfSlicePort),
      ),
      [],
    ),
  }),
  ({ endpoints, ports }, path) => {
    const addresses = endpoints.reduce((sum, endpoint) => sum + endpoint.addresses.length, 0);
    return limitErrors(
      fieldPath(path, 'endpoints'),
      addresses * ports.length,
      maxSliceEndpoints,
      'endpoints (addresses x ports)',
    );
  },
);
