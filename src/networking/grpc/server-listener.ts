import { create } from '@bufbuild/protobuf';
import { type Listener, ListenerSchema } from '../../gen/envoy/config/listener/v3/listener_pb.ts';
import { HttpConnectionManagerSchema } from '../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import { type PeerMode, peerModeOf } from '../../model/push-context/mutual-tls-mode.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { ownValue } from '../../runtime/json-object.ts';
import { socketAddress } from '../messages/address.ts';
import { typedExtension } from '../messages/any.ts';
import { inboundClusterName } from '../traffic/resource-names.ts';
import { routerFilter } from './client-listener.ts';
import { type Limitation, objectOrigins, type WithLimitations } from './limitation.ts';
import { grpcAuthorization } from './server-authorization.ts';
import type { ServerAddress } from './target-name.ts';
import { serverTls } from './tls.ts';

/** In mode PERMISSIVE, the value `istio` makes a workload require mutual TLS, because gRPC servers accept either mutual TLS or plaintext. */
const tlsModeLabel = 'security.istio.io/tlsMode';

export function serverListener(
  name: string,
  { address, port }: ServerAddress,
  shape: ProxyShape,
  push: PushContext,
): WithLimitations<Listener | undefined> {
  if (!shape.serviceTargets.some(({ targetPort }) => targetPort === port)) {
    return {
      message: undefined,
      limitations: [{ origins: [], text: `no service has the target port ${port} of this server` }],
    };
  }
  const policies = push.policiesFor(shape);
  const mode = peerModeOf(push.peerModesFor(shape.configNamespace, shape.labels), port);
  const isSecure = mode === 'STRICT' || (mode === 'PERMISSIVE' && ownValue(shape.labels, tlsModeLabel) === 'istio');
  const authorization = grpcAuthorization(policies, push);
  const manager = typedExtension('envoy.filters.network.http_connection_manager', HttpConnectionManagerSchema, {
    statPrefix: `inbound_${address}_${port}`,
    routeSpecifier: {
      case: 'routeConfig',
      value: {
        name: inboundClusterName(port),
        virtualHosts: [
          {
            name: inboundClusterName(port),
            domains: ['*'],
            routes: [
              {
                match: { pathSpecifier: { case: 'prefix', value: '/' } },
                action: { case: 'nonForwardingAction', value: {} },
              },
            ],
          },
        ],
      },
    },
    httpFilters: [...authorization.filters, routerFilter],
  });
  const message = create(ListenerSchema, {
    name,
    address: socketAddress(address, port),
    filterChains: [{ filters: [manager], ...(isSecure && { transportSocket: serverTls }) }],
  });
  const ignoredPolicies = [...policies.requestAuthentications, ...policies.wasmPlugins, ...policies.envoyFilters].map(
    (config): Limitation => ({ origins: objectOrigins(config), text: 'the object has no effect on gRPC servers' }),
  );
  return {
    message,
    limitations: [...modeLimitations(mode, isSecure, port), ...authorization.limitations, ...ignoredPolicies],
  };
}

function modeLimitations(mode: PeerMode, isSecure: boolean, port: number): readonly Limitation[] {
  if (mode !== 'PERMISSIVE') return [];
  const text = isSecure
    ? `port ${port} accepts mutual TLS only: gRPC servers cannot accept plaintext as well (mode PERMISSIVE)`
    : `port ${port} accepts plaintext only: gRPC servers cannot accept mutual TLS as well (mode PERMISSIVE); label the workload ${tlsModeLabel}=istio, or use mode STRICT`;
  return [{ origins: [], text }];
}
