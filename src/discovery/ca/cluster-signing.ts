import { sharedOrders } from '../../../machines/discovery/ca/shared-rotation.ts';
import type { Certificate } from '../../identity/certificate.ts';
import { ChartpilotError } from '../../runtime/errors.ts';
import type { Logger } from '../../runtime/output/log.ts';
import type { Recorder } from '../../runtime/trace/recorder.ts';
import type { ApiServer } from '../kubernetes/api-server.ts';
import { type AuthoritySettings, isSharedAuthority } from './authority-settings.ts';
import { KubernetesSigner } from './cluster-signer/kubernetes-signer.ts';
import { type AuthoritySecrets, SharedAuthority } from './shared-authority.effects.ts';
import { orderAnnotation } from './shared-root/authority-secret.ts';

export interface SigningCluster {
  readonly server: ApiServer;
  /** `undefined` if replicas share no authority. */
  readonly authoritySecrets?: AuthoritySecrets;
}

export interface ClusterSigningOptions {
  /** `undefined` if this program signs no certificates. */
  readonly settings: AuthoritySettings | undefined;
  readonly cluster: SigningCluster | undefined;
  readonly trustDomain: () => string;
  /** Certificates of a Kubernetes signer must chain to one of these. */
  readonly roots: () => readonly Certificate[];
  readonly recorder: Recorder;
  readonly log: Pick<Logger, 'warn'>;
}

export interface ClusterSigning {
  /** `undefined` if replicas share no authority. */
  readonly shared: SharedAuthority | undefined;
  readonly signer: KubernetesSigner | undefined;
}

export function clusterSigning(options: ClusterSigningOptions): ClusterSigning {
  const { settings, cluster, trustDomain, roots, recorder, log } = options;
  if (cluster === undefined || settings === undefined) return { shared: undefined, signer: undefined };
  const { server, authoritySecrets: secrets } = cluster;
  const { kubernetesSigner: signerName, approvesRequests, rootTtlMs: ttlMs, rsaBits, leaves } = settings;
  const now = (): Date => new Date();
  return {
    shared:
      secrets && new SharedAuthority({ secrets, server, root: { ttlMs, rsaBits }, trustDomain, leaves, now, log }),
    signer:
      signerName === ''
        ? undefined
        : new KubernetesSigner({ server, signerName, approvesRequests, roots, now, recorder }),
  };
}

/**
 * Roots in memory would differ between replicas.
 *
 * @throws ChartpilotError FLAG_INVALID if the settings require a cluster and none exists
 */
export function requireCluster(settings: AuthoritySettings, { shared, signer }: ClusterSigning): void {
  const hint = 'run the control plane in a pod, or set --kubeconfig';
  const rejectSetting = (setting: string): never => {
    throw new ChartpilotError('FLAG_INVALID', `${setting} needs a Kubernetes cluster`, { hint });
  };
  if (isSharedAuthority(settings) && shared === undefined) rejectSetting(`SELF_SIGNED_CA_SECRET=${settings.secret}`);
  if (settings.usesExternalCa && signer === undefined)
    rejectSetting(`EXTERNAL_CA, K8S_SIGNER=${settings.kubernetesSigner}`);
}

export function orderedBy(cluster: SigningCluster | undefined): { readonly orderedBy?: string } {
  if (cluster?.authoritySecrets === undefined) return {};
  const { namespace, name } = cluster.authoritySecrets;
  const orderText = `${orderAnnotation}=${sharedOrders.join('|')}`;
  return {
    orderedBy: `the replicas share the root, so rotate it with: kubectl -n ${namespace} annotate secret ${name} ${orderText}`,
  };
}
