import * as E from 'fp-ts/lib/Either.js';
import { type Problem, violationIn } from '../config/problem.ts';
import {
  type Decoder,
  decodeIgnoringUnknown,
  dictionary,
  type FieldError,
  fieldPath,
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
import * as violation from '../fields/violation.ts';
import { hostText } from '../kinds/field-rules.ts';
import { parseYamlDocument } from '../yaml/yaml-document.ts';

export interface MeshNetworks {
  readonly networks: Readonly<Record<string, Network>>;
}

export interface Network {
  readonly endpoints: readonly NetworkEndpoints[];
  readonly gateways: readonly ConfiguredNetworkGateway[];
}

/** Exactly one of the two fields is set. */
export interface NetworkEndpoints {
  readonly fromCidr?: string;
  /** A cluster ID. */
  readonly fromRegistry?: string;
}

export interface ConfiguredNetworkGateway {
  readonly address?: string;
  readonly registryServiceName?: string;
  readonly port: number;
  readonly locality?: string;
}

const endpoints: Decoder<NetworkEndpoints> = refine(
  struct<NetworkEndpoints>({ fromCidr: optional(name), fromRegistry: optional(name) }),
  (value, path) => {
    if ((value.fromCidr === undefined) === (value.fromRegistry === undefined)) {
      return [
        violation.fieldError(
          path,
          violation.choiceViolation(
            ['fromCidr', 'fromRegistry'],
            value.fromCidr === undefined ? [] : ['fromCidr', 'fromRegistry'],
          ),
        ),
      ];
    }
    const isInvalid = value.fromCidr !== undefined && !isCidr(value.fromCidr);
    return violation.errorsAt(
      `${path}.fromCidr`,
      isInvalid ? violation.mustBe('a CIDR such as 10.0.0.0/8', value.fromCidr) : undefined,
    );
  },
);

const gateway: Decoder<ConfiguredNetworkGateway> = refine(
  struct<ConfiguredNetworkGateway>({
    address: optional(
      refine(name, (address, path) =>
        violation.errorsAt(
          path,
          isIpAddress(address) || isHostname(address)
            ? undefined
            : violation.mustBe('an IP address or a host name', address),
        ),
      ),
    ),
    registryServiceName: optional(
      hostText((host) => (isHostname(host) ? undefined : violation.mustBe('a host name', host))),
    ),
    port: required(port),
    locality: optional(text),
  }),
  (value, path) => {
    const hasOneAddressSource = (value.address === undefined) !== (value.registryServiceName === undefined);
    return violation.errorsAt(
      path,
      hasOneAddressSource
        ? undefined
        : violation.choiceViolation(
            ['address', 'registryServiceName'],
            value.address === undefined ? [] : ['address', 'registryServiceName'],
          ),
    );
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
  readonly warnings: readonly Problem[];
}

/** An empty text means no networks. */
export function readMeshNetworks(file: string, content: string): E.Either<readonly Problem[], MeshNetworksFile> {
  const document = parseYamlDocument({ text: content, line: 1 });
  const error = { severity: 'error', file } as const;
  if (document.errors.length > 0) {
    return E.left(
      document.errors.map(({ line, column, message }) => ({
        ...{ ...error, line, column, code: 'YAML_INVALID' },
        message: `YAML: ${message}`,
      })),
    );
  }
  const decodedNetworks = decodeIgnoringUnknown(meshNetworks)(document.value ?? {});
  if (E.isLeft(decodedNetworks)) return E.left(decodedNetworks.left.map((fieldError) => toProblem(fieldError)));
  const { value, unknownFields } = decodedNetworks.right;
  const warnings = [
    ...unknownFields.map((error) => violation.withConsequence(error, 'it has no effect')),
    ...Object.entries(value.networks).flatMap(([network, { endpoints: networkEndpoints }]) =>
      networkEndpoints.length > 0
        ? []
        : [
            violation.fieldError(
              fieldPath('networks', network),
              violation.doubtfulValue('has no endpoints: only labels assign workloads to the network'),
            ),
          ],
    ),
  ];
  return E.right({
    networks: value,
    warnings: warnings.map((warning) => ({ ...toProblem(warning), severity: 'warning' })),
  });

  function toProblem(fieldError: FieldError): Problem {
    const { path, isIgnored } = fieldError;
    return {
      ...{ ...error, ...document.positionOf(path), field: path, ...violationIn(fieldError) },
      ...(isIgnored && { severity: 'warning' }),
    };
  }
}
