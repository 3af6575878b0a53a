/** What one replica of many has to do in a cluster: all duties, each of which has a Lease of its own. A new one is a line here. */
import type { Signing } from '../authority/signing.ts';
import type { InformerEffects } from '../kubernetes/informer-effects.ts';
import type { Duty } from './duty.ts';
import { RootCertificates } from './root-certificates.ts';
import { type StatusSources, statusDuties } from './status/status-duties.ts';

/** What duties are about. */
export interface DutySources {
  /** What is known of the cluster. They are not started yet: readers may be added. */
  readonly informers: InformerEffects;
  /** Absent: nothing is signed here. */
  readonly signing?: Signing;
  /** REVISION; empty: the default one. */
  readonly revision: string;
  /** Of ConfigMaps with the root of the mesh. */
  readonly rootConfigMap: string;
  /** What becomes of objects. */
  readonly status: Omit<StatusSources, 'informers' | 'revision'>;
}

export function dutiesOf(sources: DutySources): Duty[] {
  const { informers, signing, rootConfigMap, revision, status } = sources;
  return [
    ...(signing === undefined
      ? []
      : [
          new RootCertificates({
            ...{ informers, configMap: rootConfigMap, lease: 'istio-namespace-controller-election' },
            roots: () => signing.trusted?.own.pem,
            onRoots: (changed) => signing.onRoots(changed),
            now: () => performance.now(),
          }),
        ]),
    ...statusDuties({ ...status, informers, revision }, leaseOfRevision('istio-gateway-status-leader', revision)),
  ];
}

/**
 * Of a duty that each revision has for its own objects: as Istio names the lock of such an election. One that is about the whole cluster
 * has the same name for all revisions.
 */
export function leaseOfRevision(name: string, revision: string): string {
  return revision === '' ? name : `${name}-${revision}`;
}
