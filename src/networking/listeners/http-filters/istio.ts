/** Filters of Istio's Envoy builds, see `istio-extensions.ts`. */
import { hasIstioExtensions, istioExtension, istioStats } from '../../messages/istio-extensions.ts';
import { telemetryOf } from '../../telemetry/connection-telemetry.ts';
import { sideOf } from '../../telemetry/mode.ts';
import type { HttpFilterContributor } from './contributor.ts';

function onlyWithIstioExtensions(contributor: HttpFilterContributor): HttpFilterContributor {
  return (context, options) =>
    hasIstioExtensions(context.shape, context.push.mesh) ? contributor(context, options) : [];
}

const peerDiscovery = [{ istio_headers: {} }, { workload_discovery: {} }];

const clientMetadata = istioExtension('istio.metadata_exchange', 'io.istio.http.peer_metadata.Config', {
  downstream_discovery: peerDiscovery,
  downstream_propagation: [{ istio_headers: {} }],
});

const serverMetadata = istioExtension('istio.metadata_exchange', 'io.istio.http.peer_metadata.Config', {
  upstream_discovery: peerDiscovery,
  upstream_propagation: [{ istio_headers: {} }],
});

export const metadataExchange = onlyWithIstioExtensions(({ direction }) => [
  direction === 'inbound' ? clientMetadata : serverMetadata,
]);

/** Sets the ALPN for sidecars with mutual TLS, by the client's protocol. */
const alpnFilter = istioExtension('istio.alpn', 'istio.envoy.config.filter.http.alpn.v2alpha1.FilterConfig', {
  alpn_override: [
    { upstream_protocol: 'HTTP10', alpn_override: ['istio-http/1.0', 'istio', 'http/1.0'] },
    { upstream_protocol: 'HTTP11', alpn_override: ['istio-http/1.1', 'istio', 'http/1.1'] },
    { upstream_protocol: 'HTTP2', alpn_override: ['istio-h2', 'istio', 'h2'] },
  ],
});

export const alpn = onlyWithIstioExtensions(({ direction }) => (direction === 'inbound' ? [] : [alpnFilter]));

export const stats = onlyWithIstioExtensions((context) =>
  telemetryOf(context, sideOf(context.direction)).metrics ? [istioStats[context.direction]] : [],
);
