import { checksClients } from '../../model/kinds/destinations/client-authority.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { isUnixSocket } from '../messages/address.ts';
import { isPrivilegedPort } from '../traffic/reserved-ports.ts';
import type { GatewayServer } from './merge-gateways.ts';

export type Http3Offer =
  | { readonly ports: readonly number[]; readonly reason?: undefined }
  | { readonly ports?: undefined; readonly reason: string };

/**
 * As in Istio, an HTTPS server that terminates TLS offers HTTP/3 if a Service of the gateway has a UDP port with the same number. Returns `undefined`
 * for other servers, and if HTTP/3 is disabled.
 */
export function http3Offer(
  { server, routeName }: GatewayServer,
  shape: Pick<ProxyShape, 'serviceTargets' | 'metadata'>,
  { features }: Pick<PushContext, 'features'>,
): Http3Offer | undefined {
  const { tls, port, bind = '' } = server;
  const isHttps = port.protocol === 'HTTPS' && tls !== undefined && routeName !== undefined;
  if (!features.quicListeners || !isHttps || isUnixSocket(bind)) return undefined;
  const targets = shape.serviceTargets.filter(
    (target) => target.port.number === port.number && target.port.protocol === 'UDP',
  );
  const ports = [...new Set(targets.map(({ targetPort }) => targetPort))];
  if (ports.length === 0) return { reason: `no Service of the gateway has a UDP port ${port.number}` };
  if (checksClients(tls) || tls.mode === 'ISTIO_MUTUAL') {
    return { reason: `mode ${tls.mode} requests client certificates, which is not supported with QUIC` };
  }
  const maxVersion = tls.maxProtocolVersion ?? 'TLS_AUTO';
  if (maxVersion !== 'TLS_AUTO' && maxVersion !== 'TLSV1_3')
    return { reason: `QUIC requires TLS 1.3, maxProtocolVersion is ${maxVersion}` };
  const privilegedPort = ports.find((candidatePort) => isPrivilegedPort(candidatePort, shape as ProxyShape));
  return privilegedPort === undefined
    ? { ports }
    : { reason: `the pod may not bind ports below 1024, such as ${privilegedPort}` };
}

/** Time in seconds for which a client may cache the offer, as in Istio. */
const advertisedSeconds = 86_400;

export function http3Advertisement(port: number): string {
  return `h3=":${port}"; ma=${advertisedSeconds}`;
}
