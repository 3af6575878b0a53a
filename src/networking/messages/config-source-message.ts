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

/** Envoy waits indefinitely for the first response. */
export const adsConfigSource: ConfigSource = create(ConfigSourceSchema, {
  configSourceSpecifier: { case: 'ads', value: create(AggregatedConfigSourceSchema) },
  resourceApiVersion: ApiVersion.V3,
  initialFetchTimeout: duration(0),
});

/** The agent's SDS server, which is a static cluster in the bootstrap. */
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

/** The agent will always provide these secrets, so Envoy waits indefinitely. */
const agentSecretSource = create(ConfigSourceSchema, { ...agentServer, initialFetchTimeout: duration(0) });

/** These secrets may not exist. Envoy waits 15 s for them by default. */
const agentFileSource = create(ConfigSourceSchema, agentServer);

/**
 * A secret of the control plane, such as `kubernetes://web-cert`. If it does not exist, the listener becomes active
 * after Envoy's default of 15 s, so that it can serve its other hosts.
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

export function agentSecret(name: string): SdsSecretConfig {
  return create(SdsSecretConfigSchema, { name, sdsConfig: agentSecretSource });
}

/** Without the files, Envoy activates the listener or cluster without the secret. */
export function agentFileSecret(name: string): SdsSecretConfig {
  return create(SdsSecretConfigSchema, { name, sdsConfig: agentFileSource });
}
