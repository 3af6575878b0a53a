/**
 * Request header in which a sidecar claims its workload. The server's agent accepts it only if namespace and service account match the peer's
 * certificate.
 */

export interface WorkloadLabelValues {
  readonly workload: string;
  readonly namespace: string;
  readonly service: string;
  readonly revision: string;
  readonly app: string;
  readonly version: string;
  readonly cluster: string;
}

export interface PeerClaim extends WorkloadLabelValues {
  readonly account: string;
}

export const peerHeader = 'x-chartpilot-peer';
/** Envoy reads its own claim from this environment variable, so that its configuration is the same for all workloads. */
export const peerVariable = 'CHARTPILOT_PEER';

/** Longer headers are ignored. */
const maxClaimLength = 1_024;
const version = '1';

export function peerClaimText(claim: PeerClaim): string {
  const { namespace, account, workload, service, revision, app, version: appVersion, cluster } = claim;
  const fields = [namespace, account, workload, service, revision, app, appVersion, cluster];
  return [version, ...fields.map(plainText)].join(';');
}

export function peerClaimIn(text: string): PeerClaim | undefined {
  if (text.length > maxClaimLength) return undefined;
  const fields = text.split(';');
  if (fields.length !== 9 || fields[0] !== version || fields.some((field) => field !== plainText(field))) {
    return undefined;
  }
  const [, namespace, account, workload, service, revision, app, appVersion, cluster] = fields as [string, ...string[]];
  return {
    namespace: namespace!,
    account: account!,
    workload: workload!,
    service: service!,
    revision: revision!,
    app: app!,
    version: appVersion!,
    cluster: cluster!,
  };
}

export function accountOf(spiffeId: string): { readonly namespace: string; readonly account: string } | undefined {
  const [, namespace, account] = /^spiffe:\/\/[^/]+\/ns\/([^/]+)\/sa\/([^/]+)$/.exec(spiffeId) ?? [];
  return namespace === undefined || account === undefined ? undefined : { namespace, account };
}

/** Fields with only the characters of Kubernetes names and labels need no escaping. */
function plainText(text: string): string {
  return text.slice(0, 128).replace(/[^\w.:/@-]/g, '_');
}
