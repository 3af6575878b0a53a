/** Which addresses are of which network, and through which gateways a network is reached (spec/discovery.md §3.3). */
import * as E from 'fp-ts/lib/Either.js';
import type { Problem } from '../config/problem.ts';
import {
  type Decoder,
  dictionary,
  type FieldError,
  fieldPath,
  forgivingUnknown,
  list,
  name,
  optional,
  port,
  refine,
  required,
  struct,
  text,
  withDefault,
} from '../fields/decode.ts';
import { isCidr, isHostname, isIpAddress } from '../fields/names.ts';
import { hostText, mistakeAt } from '../kinds/field-rules.ts';
import { parseYamlDocument } from '../yaml/yaml-document.ts';

export interface MeshNetworks {
  readonly networks: Readonly<Record<string, Network>>;
}

export interface Network {
  readonly endpoints: readonly NetworkEndpoints[];
  readonly gateways: readonly NetworkGateway[];
}

/** Where endpoints of the network are found: one of the two is given. */
export interface NetworkEndpoints {
  readonly fromCidr?: string;
  /** A cluster's id. */
  readonly fromRegistry?: string;
}

/** `address` (an IP or a host name) or `registryServiceName`. */
export interface NetworkGateway {
  readonly address?: string;
  readonly registryServiceName?: string;
  readonly port: number;
  readonly locality?: string;
}

const endpoints: Decoder<NetworkEndpoints> = refine(
  struct<NetworkEndpoints>({ fromCidr: optional(name), fromRegistry: optional(name) }),
  (value, path) => {
    if ((value.fromCidr === undefined) === (value.fromRegistry === undefined)) {
      return [{ path, message: 'must have exactly one of fromCidr and fromRegistry' }];
    }
    const bad = value.fromCidr !== undefined && !isCidr(value.fromCidr);
    return mistakeAt(`${path}.fromCidr`, bad ? `must be a range such as 10.0.0.0/8, not ${value.fromCidr}` : undefined);
  },
);

const gateway: Decoder<NetworkGateway> = refine(
  struct<NetworkGateway>({
    address: optional(
      refine(name, (address, path) =>
        mistakeAt(
          path,
          isIpAddress(address) || isHostname(address) ? undefined : `must be an IP or a host name, not ${address}`,
        ),
      ),
    ),
    registryServiceName: optional(
      hostText((host) => (isHostname(host) ? undefined : `must be a host name, not ${host}`)),
    ),
    port: required(port),
    locality: optional(text),
  }),
  (value, path) => {
    const one = (value.address === undefined) !== (value.registryServiceName === undefined);
    return mistakeAt(path, one ? undefined : 'must have exactly one of address and registryServiceName');
  },
);

const meshNetworks: Decoder<MeshNetworks> = struct<MeshNetworks>({
  networks: withDefault(
    dictionary(
      struct<Network>({ endpoints: withDefault(list(endpoints), []), gateways: withDefault(list(gateway), []) }),
    ),
    {},
  ),
});

export interface MeshNetworksFile {
  readonly networks: MeshNetworks;
  /** What has no effect, or may be a mistake. */
  readonly warnings: readonly Problem[];
}

/**
 * Reads a networks file's text; an empty one says that there are none. On the left every mistake with its place: the
 * previous networks then stay in force.
 */
export function readMeshNetworks(file: string, content: string): E.Either<readonly Problem[], MeshNetworksFile> {
  const document = parseYamlDocument({ text: content, line: 1 });
  const error = { severity: 'error', file } as const;
  if (document.errors.length > 0) {
    return E.left(
      document.errors.map(({ line, column, message }) => ({ ...error, line, column, message: `YAML: ${message}` })),
    );
  }
  const decoded = forgivingUnknown(meshNetworks)(document.value ?? {});
  if (E.isLeft(decoded)) return E.left(decoded.left.map((mistake) => located(mistake)));
  const { value, unknown } = decoded.right;
  const warnings = [
    ...unknown.map(({ path, message }) => ({ path, message: `${message} (it has no effect)` })),
    ...Object.entries(value.networks).flatMap(([network, { endpoints: ends }]) =>
      ends.length > 0
        ? []
        : [{ path: fieldPath('networks', network), message: 'has no endpoints: only labels say who is in it' }],
    ),
  ];
  return E.right({ networks: value, warnings: warnings.map((w) => ({ ...located(w), severity: 'warning' })) });

  function located({ path, message, forgiven }: FieldError): Problem {
    return { ...error, ...document.positionOf(path), field: path, message, ...(forgiven && { severity: 'warning' }) };
  }
}
