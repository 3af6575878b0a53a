import { create } from '@bufbuild/protobuf';
import { type RouteConfiguration, RouteConfigurationSchema } from '../../../gen/envoy/config/route/v3/route_pb.ts';
import { duration } from '../../messages/protobuf-duration.ts';
import type { InboundTarget } from '../../traffic/inbound-target.ts';
import { inboundClusterName, inboundPassthroughCluster } from '../../traffic/resource-names.ts';

export function inboundRoutes(target: InboundTarget): RouteConfiguration {
  const host = target.services[0]?.hostname ?? '';
  const operation = `${host}:${target.servicePort?.number ?? target.port}/*`;
  const virtualHost = `inbound|http|${target.servicePort?.number ?? target.port}`;
  return singleRoute(inboundClusterName(target.port), virtualHost, operation, !target.protocol.startsWith('GRPC'));
}

/** Forwards requests to ports that no service defines. */
export function passthroughRoutes(): RouteConfiguration {
  return singleRoute(inboundPassthroughCluster, 'inbound|http|0', ':0/*', true);
}

function singleRoute(cluster: string, virtualHost: string, operation: string, retry: boolean): RouteConfiguration {
  return create(RouteConfigurationSchema, {
    name: cluster,
    validateClusters: false,
    virtualHosts: [
      {
        name: virtualHost,
        domains: ['*'],
        routes: [
          {
            name: 'default',
            match: { pathSpecifier: { case: 'prefix', value: '/' } },
            decorator: { operation },
            action: {
              case: 'route',
              value: {
                clusterSpecifier: { case: 'cluster', value: cluster },
                timeout: duration(0),
                maxStreamDuration: { maxStreamDuration: duration(0), grpcTimeoutHeaderMax: duration(0) },
                // An application may close an idle connection while a request is being sent. A retry is safe, because the application has not
                // processed the request.
                ...(retry && { retryPolicy: { retryOn: 'reset-before-request', numRetries: 2 } }),
              },
            },
          },
        ],
      },
    ],
  });
}
