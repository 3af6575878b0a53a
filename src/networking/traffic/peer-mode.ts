import { configKeyOf } from '../../model/config/config.ts';
import type { MutualTlsMode } from '../../model/kinds/policies/peer-authentication.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import { type PeerModes, peerModeOf } from '../../model/push-context/mutual-tls-mode.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { WorkloadPolicies } from '../../model/push-context/workload-policies.ts';
import type { Origin } from '../inputs/message-origin.ts';
import { hasWorkloadCertificates } from './shape-keys.ts';

const plaintextOnly: PeerModes = { mode: 'DISABLE', ports: new Map() };

/** Returns modes by port of the workload. Without certificates, all ports accept only plaintext, see {@link unenforcedMutualTls}. */
export function activePeerModes(shape: ProxyShape, push: PushContext): PeerModes {
  return hasWorkloadCertificates(shape) ? push.peerModesFor(shape.configNamespace, shape.labels) : plaintextOnly;
}

export function unenforcedMutualTls(shape: ProxyShape, push: PushContext): string | undefined {
  if (shape.type !== 'sidecar' || hasWorkloadCertificates(shape)) return undefined;
  const modes = push.peerModesFor(shape.configNamespace, shape.labels);
  const strictPorts = [...modes.ports.keys()].filter((port) => peerModeOf(modes, port) === 'STRICT');
  if (modes.mode !== 'STRICT' && strictPorts.length === 0) return undefined;
  const [portText, port] = modes.mode === 'STRICT' ? ['', 0] : [` on port ${strictPorts.join(', ')}`, strictPorts[0]!];
  const [origin] = peerOrigins(push.policiesFor(shape), port);
  return (
    `PeerAuthentication ${origin!.key.namespace}/${origin!.key.name} requires mutual TLS${portText}, but the ` +
    'proxy has no workload certificates, so it accepts plaintext (its metadata has neither ISTIO_VERSION nor ' +
    'WORKLOAD_CERTIFICATES=true)'
  );
}

/** @param port port of the workload; 0 for ports without their own mode */
export function peerOrigins({ peerAuthentications }: WorkloadPolicies, port: number): readonly Origin[] {
  const portPolicy = peerAuthentications.at(-1);
  if (portPolicy !== undefined && isModeSet(portPolicy.spec.portLevelMtls?.[port])) {
    return [{ key: configKeyOf(portPolicy), path: ['spec', 'portLevelMtls', port] }];
  }
  const narrowestPolicy = peerAuthentications.findLast(({ spec }) => isModeSet(spec.mtls));
  return narrowestPolicy === undefined ? [] : [{ key: configKeyOf(narrowestPolicy), path: ['spec', 'mtls'] }];
}

function isModeSet(mode: MutualTlsMode | undefined): boolean {
  return mode !== undefined && mode !== 'UNSET';
}
