/** What of a cluster the control plane signs with: the authority that replicas share, and a signer of the cluster. */

import { sharedOrders } from '../../../machines/discovery/ca/shared-rotation.ts';
import type { Certificate } from '../../identity/certificate.ts';
import { ChartpilotError } from '../../runtime/errors.ts';
import type { Logger } from '../../runtime/output/log.ts';
import type { Recorder } from '../../runtime/trace/recorder.ts';
import type { ApiServer } from '../kubernetes/api-server.ts';
import { type AuthoritySettings, isAuthorityShared } from './authority-settings.ts';
import { KubernetesSigner } from './cluster-signer/kubernetes-signer.ts';
import { type AuthoritySecrets, SharedAuthority } from './shared-authority.effects.ts';
import { orderAnnotation } from './shared-root/authority-secret.ts';

/** The parts of a cluster that signing uses. */
export interface SigningCluster {
  readonly server: ApiServer;
  /** `undefined` if replicas do not share a root. */
  readonly authoritySecrets?: AuthoritySecrets;
}

export interface ClusterSigningOptions {
  /** Absent: nothing is signed here. */
  readonly settings: AuthoritySettings | undefined;
  /** `undefined` if no cluster is configured. */
  readonly cluster: SigningCluster | undefined;
  /** Trust domain of the mesh, now. */
  readonly trustDomain: () => string;
  /** Roots of the mesh, now: what a signer of the cluster signs must lead to one of them. */
  readonly roots: () => readonly Certificate[];
  readonly recorder: Recorder;
  readonly log: Pick<Logger, 'warn'>;
}

export interface ClusterSigning {
  /** Absent: replicas share none. */
  readonly shared: SharedAuthority | undefined;
  /** Absent: none is asked. */
  readonly signer: KubernetesSigner | undefined;
}

export function clusterSigning(options: ClusterSigningOptions): ClusterSigning {
  const { settings, cluster, trustDomain, roots, recorder, log } = options;
  if (cluster === undefined || settings === undefined) return { shared: undefined, signer: undefined };
  const { server, authoritySecrets: secrets } = cluster;
  const { kubernetesSigner: signerName, approves, rootTtlMs: ttlMs, rsaBits, leaves } = settings;
  const now = (): Date => new Date();
  return {
    shared:
      secrets && new SharedAuthority({ secrets, server, root: { ttlMs, rsaBits }, trustDomain, leaves, now, log }),
    signer:
      signerName === '' ? undefined : new KubernetesSigner({ server, signerName, approves, roots, now, recorder }),
  };
}

/**
 * A root in memory that nobody asked for would be another one in each replica.
 *
 * @throws ChartpilotError FLAG_INVALID
 */
export function refuseWithoutCluster(settings: AuthoritySettings, { shared, signer }: ClusterSigning): void {
  const hint = 'run the control plane in a pod, or set --kubeconfig';
  const refuse = (what: string): never => {
    throw new ChartpilotError('FLAG_INVALID', `${what} needs a Kubernetes cluster`, { hint });
  };
  if (isAuthorityShared(settings) && shared === undefined) refuse(`SELF_SIGNED_CA_SECRET=${settings.secret}`);
  if (settings.registers && signer === undefined) refuse(`EXTERNAL_CA, K8S_SIGNER=${settings.kubernetesSigner}`);
}

/** For the page of the authority: how a rotation is ordered where replicas share the root. */
export function orderedBy(cluster: SigningCluster | undefined): { readonly orderedBy?: string } {
  if (cluster?.authoritySecrets === undefined) return {};
  const { namespace, name } = cluster.authoritySecrets;
  const order = `${orderAnnotation}=${sharedOrders.join('|')}`;
  return {
    orderedBy: `the replicas share the root, so rotate it with: kubectl -n ${namespace} annotate secret ${name} ${order}`,
  };
}
