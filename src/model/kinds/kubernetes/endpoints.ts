/** Kubernetes' Endpoints, which have the name of their Service; replaced by EndpointSlice. */
import {
  type Decoder,
  fieldPath,
  integer,
  list,
  optional,
  refine,
  required,
  text,
  withDefault,
} from '../../fields/decode.ts';
import { limitErrors } from '../../fields/limits.ts';
import { maxSliceEndpoints } from '../object-limits.ts';
import { type EndpointSlice, type SliceEndpoint, type SlicePort, unreadOfSlicePort } from './endpoint-slice.ts';
import { partialStruct } from './lenient.ts';
import { type KubernetesObjectReference, objectReference } from './object-reference.ts';

export interface Endpoints {
  readonly subsets: readonly EndpointSubset[];
}

export interface EndpointSubset {
  readonly addresses: readonly EndpointAddress[];
  readonly notReadyAddresses: readonly EndpointAddress[];
  readonly ports: readonly SlicePort[];
}

export interface EndpointAddress {
  readonly ip: string;
  readonly hostname?: string;
  readonly nodeName?: string;
  readonly targetRef?: KubernetesObjectReference;
}

const address = partialStruct<EndpointAddress>({
  ip: required(text),
  hostname: optional(text),
  nodeName: optional(text),
  targetRef: optional(objectReference),
});

export const endpoints: Decoder<Endpoints> = refine(
  partialStruct<Endpoints>({
    subsets: withDefault(
      list(
        partialStruct<EndpointSubset>({
          addresses: withDefault(list(address), []),
          notReadyAddresses: withDefault(list(address), []),
          ports: withDefault(
            list(
              partialStruct<SlicePort>(
                { name: withDefault(text, ''), port: optional(integer(0, 65535)) },
                unreadOfSlicePort,
              ),
            ),
            [],
          ),
        }),
      ),
      [],
    ),
  }),
  ({ subsets }, path) =>
    limitErrors(
      fieldPath(path, 'subsets'),
      subsets.reduce(
        (sum, subset) => sum + (subset.addresses.length + subset.notReadyAddresses.length) * subset.ports.length,
        0,
      ),
      maxSliceEndpoints,
      'endpoints (addresses x ports)',
    ),
);

export function slicesOf({ subsets }: Endpoints): readonly EndpointSlice[] {
  return subsets.map(({ addresses, notReadyAddresses, ports }) => ({
    addressType: 'IPv4',
    endpoints: [
      ...addresses.map((item) => endpointOf(item, true)),
      ...notReadyAddresses.map((item) => endpointOf(item, false)),
    ],
    ports,
  }));
}

function endpointOf({ ip, ...otherFields }: EndpointAddress, isReady: boolean): SliceEndpoint {
  return { ...otherFields, addresses: [ip], conditions: { ready: isReady } };
}
