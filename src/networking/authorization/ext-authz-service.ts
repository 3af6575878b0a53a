import type { GrpcServiceSchema } from '../../gen/envoy/config/core/v3/grpc_service_pb.ts';
import type {
  ExtAuthzSchema,
  HttpServiceSchema,
} from '../../gen/envoy/extensions/filters/http/ext_authz/v3/ext_authz_pb.ts';
import type { ListStringMatcherSchema } from '../../gen/envoy/type/matcher/v3/string_pb.ts';
import { compareText } from '../../model/config/config.ts';
import type { HttpExtAuthz } from '../../model/mesh/ext-authz-provider.ts';
import type { Init } from '../messages/init.ts';
import { duration } from '../messages/protobuf-duration.ts';
import type { CustomCheck } from './custom.ts';
import { caselessMatcher } from './text-matcher.ts';

/** Default of Istio's API reference. It exceeds any real response time of an authorizer. */
const defaultTimeoutMs = 600_000;

export function authorizationService({ provider, cluster, host }: CustomCheck): Init<typeof GrpcServiceSchema> {
  return {
    targetSpecifier: { case: 'envoyGrpc', value: { clusterName: cluster, authority: host } },
    timeout: duration(provider.timeoutMs ?? defaultTimeoutMs),
  };
}

export function authorizationServiceFields(check: CustomCheck): Init<typeof ExtAuthzSchema> {
  const { provider } = check;
  if (provider.protocol === 'grpc') return { services: { case: 'grpcService', value: authorizationService(check) } };
  const allowedHeaders = headers(provider.includeRequestHeadersInCheck);
  return {
    services: { case: 'httpService', value: httpService(provider, check) },
    ...(allowedHeaders && { allowedHeaders }),
  };
}

function httpService(provider: HttpExtAuthz, { cluster, host }: CustomCheck): Init<typeof HttpServiceSchema> {
  const addedHeaders = Object.entries(provider.includeAdditionalHeadersInCheck ?? {}).sort(([a], [b]) =>
    compareText(a, b),
  );
  const upstream = headers(provider.headersToUpstreamOnAllow);
  const onDeny = headers(provider.headersToDownstreamOnDeny);
  const onAllow = headers(provider.headersToDownstreamOnAllow);
  return {
    serverUri: {
      // Envoy only reads the host from the URI; the connection uses the cluster.
      uri: `http://${host}:${provider.port}`,
      httpUpstreamType: { case: 'cluster', value: cluster },
      timeout: duration(provider.timeoutMs ?? defaultTimeoutMs),
    },
    ...(provider.pathPrefix && { pathPrefix: provider.pathPrefix }),
    ...(addedHeaders.length > 0 && {
      authorizationRequest: { headersToAdd: addedHeaders.map(([key, value]) => ({ key, value })) },
    }),
    ...((upstream || onDeny || onAllow) && {
      authorizationResponse: {
        ...(upstream && { allowedUpstreamHeaders: upstream }),
        ...(onDeny && { allowedClientHeaders: onDeny }),
        ...(onAllow && { allowedClientHeadersOnSuccess: onAllow }),
      },
    }),
  };
}

function headers(names: readonly string[] = []): Init<typeof ListStringMatcherSchema> | undefined {
  return names.length === 0 ? undefined : { patterns: names.map(caselessMatcher) };
}
