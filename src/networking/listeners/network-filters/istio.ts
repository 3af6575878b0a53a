/** These filters exist in Istio's Envoy builds, see `istio-extensions.ts`. */
import { hasIstioExtensions, istioStats, peerExchange } from '../../messages/istio-extensions.ts';
import { telemetryOf } from '../../telemetry/connection-telemetry.ts';
import { sideOf } from '../../telemetry/mode.ts';
import type { NetworkFilterContributor } from './contributor.ts';

function onlyForTcp(contributor: NetworkFilterContributor): NetworkFilterContributor {
  return (context, use) =>
    use.kind === 'tcp' && hasIstioExtensions(context.shape, context.push.mesh) ? contributor(context, use) : [];
}

export const metadataExchange = onlyForTcp(() => [peerExchange()]);

export const stats = onlyForTcp((context) =>
  telemetryOf(context, sideOf(context.direction)).metrics ? [istioStats[context.direction]] : [],
);
