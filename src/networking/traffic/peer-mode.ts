/** What connections a sidecar takes, and which objects say so (spec/discovery.md §8.10, PeerAuthentication). */
import { configKeyOf } from '../../model/config/config.ts';
import type { MutualTlsMode } from '../../model/kinds/policies/peer-authentication.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import { type PeerModes, peerModeOf } from '../../model/push-context/mutual-tls-mode.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { WorkloadPolicies } from '../../model/push-context/workload-policies.ts';
import type { Origin } from '../inputs/message-origin.ts';
import { hasWorkloadCertificates } from './shape-keys.ts';

const plaintextOnly: PeerModes = { mode: 'DISABLE', ports: new Map() };

/**
 * The modes in force, by port of the workload. Without certificates there is plaintext alone, whatever the objects say:
 * {@link unenforcedMutualTls} tells where they say more.
 */
export function peerModesInForce(shape: ProxyShape, push: PushContext): PeerModes {
  return hasWorkloadCertificates(shape) ? push.peerModesFor(shape.configNamespace, shape.labels) : plaintextOnly;
}

/** What a sidecar is told to refuse and cannot, as a sentence for people; undefined when there is no such thing. */
export function unenforcedMutualTls(shape: ProxyShape, push: PushContext): string | undefined {
  if (shape.type !== 'sidecar' || hasWorkloadCertificates(shape)) return undefined;
  const modes = push.peerModesFor(shape.configNamespace, shape.labels);
  const strict = [...modes.ports.keys()].filter((port) => peerModeOf(modes, port) === 'STRICT');
  if (modes.mode !== 'STRICT' && strict.length === 0) return undefined;
  const [where, port] = modes.mode === 'STRICT' ? ['', 0] : [` on port ${strict.join(', ')}`, strict[0]!];
  const [origin] = peerOrigins(push.policiesFor(shape), port);
  return (
    `PeerAuthentication ${origin!.key.namespace}/${origin!.key.name} requires mutual TLS${where}, but the ` +
    'proxy has no workload certificates, so it accepts plaintext (its metadata has neither ISTIO_VERSION nor ' +
    'WORKLOAD_CERTIFICATES=true)'
  );
}

/**
 * The object that says which mode a port has, and where it does; nothing when none says it.
 *
 * @param port of the workload; 0 for the ports that have no mode of their own.
 */
export function peerOrigins({ peerAuthentications }: WorkloadPolicies, port: number): readonly Origin[] {
  const ofPort = peerAuthentications.at(-1);
  if (ofPort !== undefined && isSaid(ofPort.spec.portLevelMtls?.[port])) {
    return [{ key: configKeyOf(ofPort), path: ['spec', 'portLevelMtls', port] }];
  }
  const narrowest = peerAuthentications.findLast(({ spec }) => isSaid(spec.mtls));
  return narrowest === undefined ? [] : [{ key: configKeyOf(narrowest), path: ['spec', 'mtls'] }];
}

function isSaid(mode: MutualTlsMode | undefined): boolean {
  return mode !== undefined && mode !== 'UNSET';
}
