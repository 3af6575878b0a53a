import { create } from '@bufbuild/protobuf';
import { RouteSchema, type VirtualHost } from '../../../gen/envoy/config/route/v3/route_components_pb.ts';
import type { SidecarScope } from '../../../model/push-context/sidecar-scope.ts';
import { peerHeader } from '../../../model/standard-metrics/peer-claim.ts';
import { duration } from '../../messages/protobuf-duration.ts';
import { requestFallbackCluster } from '../../traffic/outbound-fallback.ts';
import type { ProxyReach } from '../../traffic/reach.ts';
import { virtualHost } from './route-configuration.ts';

export function fallbackHost({ outboundTrafficPolicy }: SidecarScope, reach: ProxyReach): VirtualHost {
  if (outboundTrafficPolicy.mode === 'REGISTRY_ONLY') {
    const route = create(RouteSchema, {
      name: 'block_all',
      match: { pathSpecifier: { case: 'prefix', value: '/' } },
      action: { case: 'directResponse', value: { status: 502 } },
    });
    return virtualHost('block_all', ['*'], [route]);
  }
  const route = create(RouteSchema, {
    name: 'allow_any',
    match: { pathSpecifier: { case: 'prefix', value: '/' } },
    action: {
      case: 'route',
      value: {
        clusterSpecifier: { case: 'cluster', value: requestFallbackCluster(outboundTrafficPolicy, reach) },
        timeout: duration(0),
        maxGrpcTimeout: duration(0),
      },
    },
  });
  // Servers outside the mesh must not receive workload identities.
  return { ...virtualHost('allow_any', ['*'], [route]), requestHeadersToRemove: [peerHeader] };
}
