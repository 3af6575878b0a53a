/** Finds security settings that a sidecar cannot enforce, for the log. */

import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import { peerModeOf } from '../../model/push-context/mutual-tls-mode.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { activePeerModes, unenforcedMutualTls } from './peer-mode.ts';

export function unenforcedSettings(shape: ProxyShape, push: PushContext): string | undefined {
  const reasons = [unenforcedMutualTls(shape, push), unenforcedIngressTls(shape, push)].filter(
    (reason) => reason !== undefined,
  );
  return reasons.length === 0 ? undefined : reasons.join('; ');
}

/** TLS settings of a Sidecar object apply only to ports without mutual TLS of the mesh. */
function unenforcedIngressTls(shape: ProxyShape, push: PushContext): string | undefined {
  if (shape.type !== 'sidecar') return undefined;
  const { ingressListeners = [] } = push.sidecarScopeFor(shape);
  const tlsListeners = ingressListeners.filter(({ tls }) => tls !== undefined);
  if (tlsListeners.length === 0) return undefined;
  const modes = activePeerModes(shape, push);
  const ports = tlsListeners
    .filter(({ port }) => peerModeOf(modes, port.number) !== 'DISABLE')
    .map(({ port }) => `${port.number} (${peerModeOf(modes, port.number)})`);
  if (ports.length === 0) return undefined;
  return (
    `tls of ingress in the Sidecar object does not apply to port ${ports.join(', ')}: it applies if a PeerAuthentication ` +
    'has mode DISABLE for the port'
  );
}
