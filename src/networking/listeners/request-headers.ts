import {
  HttpConnectionManager_ForwardClientCertDetails as ForwardClientCert,
  type HttpConnectionManagerSchema,
  HttpConnectionManager_ServerHeaderTransformation as ServerHeader,
} from '../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts';
import type { ForwardedCertificate, ProxyHeaders } from '../../model/mesh/proxy-messages.ts';
import { proxySettingsOf } from '../../model/mesh/proxy-settings.ts';
import type { ConnectionContext } from '../inputs/connection-context.ts';
import type { Init } from '../messages/init.ts';

type ManagerInit = Init<typeof HttpConnectionManagerSchema>;

export function requestHeaders({ direction, shape, push }: ConnectionContext): ManagerInit {
  const { gatewayTopology, proxyHeaders } = proxySettingsOf(shape, push.mesh);
  const { server, requestId, xForwardedPort } = proxyHeaders;
  const trustedProxyCount = direction === 'gateway' ? (gatewayTopology.numTrustedProxies ?? 0) : 0;
  return {
    useRemoteAddress: direction === 'gateway',
    ...(trustedProxyCount > 0 && { xffNumTrustedHops: trustedProxyCount }),
    generateRequestId: requestId?.disabled !== true,
    ...serverHeader(direction, server),
    ...(xForwardedPort?.enabled && { appendXForwardedPort: true }),
    ...certificateDetails(direction, proxyHeaders, gatewayTopology.forwardClientCertDetails),
  };
}

function serverHeader(direction: ConnectionContext['direction'], server: ProxyHeaders['server']): ManagerInit {
  if (server?.disabled) return { serverHeaderTransformation: ServerHeader.PASS_THROUGH };
  return {
    serverName: server?.value || 'istio-envoy',
    // A client's proxy sets the `server` header. A server's sidecar keeps the application's header.
    ...(direction === 'inbound' && { serverHeaderTransformation: ServerHeader.PASS_THROUGH }),
  };
}

function certificateDetails(
  direction: ConnectionContext['direction'],
  { forwardedClientCert, setCurrentClientCertDetails }: ProxyHeaders,
  forwardedCertificate: ForwardedCertificate | undefined,
): ManagerInit {
  if (direction === 'outbound') return {};
  const gateway = direction === 'gateway';
  const mode = gateway
    ? (withoutUndefined(forwardedCertificate) ?? withoutUndefined(forwardedClientCert))
    : withoutUndefined(forwardedClientCert);
  return {
    forwardClientCertDetails: ForwardClientCert[mode ?? (gateway ? 'SANITIZE_SET' : 'APPEND_FORWARD')],
    setCurrentClientCertDetails: {
      subject: true,
      ...(gateway && { cert: true }),
      dns: true,
      uri: true,
      ...setCurrentClientCertDetails,
    },
  };
}

function withoutUndefined(
  mode: ForwardedCertificate | undefined,
): Exclude<ForwardedCertificate, 'UNDEFINED'> | undefined {
  return mode === 'UNDEFINED' ? undefined : mode;
}
