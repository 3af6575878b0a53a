/** Where Envoy fetches what a resource refers to. */
import { create } from '@bufbuild/protobuf';
import {
  AggregatedConfigSourceSchema,
  ApiConfigSource_ApiType,
  ApiVersion,
  type ConfigSource,
  ConfigSourceSchema,
} from '../../gen/envoy/config/core/v3/config_source_pb.ts';
import {
  type SdsSecretConfig,
  SdsSecretConfigSchema,
} from '../../gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.ts';
import type { Init } from './init.ts';
import { duration } from './protobuf-duration.ts';

/**
 * The stream that the resource itself came on. Envoy waits for the first answer without limit: a listener or a cluster
 * must not go live empty, least of all in a hot restart whose parent still serves.
 */
export const adsConfigSource: ConfigSource = create(ConfigSourceSchema, {
  configSourceSpecifier: { case: 'ads', value: create(AggregatedConfigSourceSchema) },
  resourceApiVersion: ApiVersion.V3,
  initialFetchTimeout: duration(0),
});

/** The agent's own secret server, a static cluster of the bootstrap. */
const agentServer: Init<typeof ConfigSourceSchema> = {
  configSourceSpecifier: {
    case: 'apiConfigSource',
    value: {
      apiType: ApiConfigSource_ApiType.GRPC,
      transportApiVersion: ApiVersion.V3,
      setNodeOnFirstMessageOnly: true,
      grpcServices: [{ targetSpecifier: { case: 'envoyGrpc', value: { clusterName: 'sds-grpc' } } }],
    },
  },
  resourceApiVersion: ApiVersion.V3,
};

/** Source of secrets that the agent always has, sooner or later: Envoy waits for them without limit. */
const agentSecretSource = create(ConfigSourceSchema, { ...agentServer, initialFetchTimeout: duration(0) });

/** Source of secrets that may not be there: Envoy waits its default of 15 s. */
const agentFileSource = create(ConfigSourceSchema, agentServer);

/**
 * A secret that the control plane serves over ADS: `kubernetes://web-cert`. It may not exist: after Envoy's default
 * of 15 s the listener goes live without it, for its other hosts, instead of never.
 */
export function adsSecret(name: string): SdsSecretConfig {
  return create(SdsSecretConfigSchema, {
    name,
    sdsConfig: {
      configSourceSpecifier: { case: 'ads', value: {} },
      resourceApiVersion: ApiVersion.V3,
    },
  });
}

/** A secret that the agent serves: `default`, `ROOTCA`. */
export function agentSecret(name: string): SdsSecretConfig {
  return create(SdsSecretConfigSchema, { name, sdsConfig: agentSecretSource });
}

/** A secret that the agent makes of files: without them the listener or the cluster goes live without it. */
export function agentFileSecret(name: string): SdsSecretConfig {
  return create(SdsSecretConfigSchema, { name, sdsConfig: agentFileSource });
}
