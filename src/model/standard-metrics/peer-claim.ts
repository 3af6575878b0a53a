/**
 * The request header by which a sidecar says which workload it is. A server's agent believes it only if the peer's
 * certificate has the namespace and service account of the claim; Envoy removes it before the application.
 */

/** A workload as labels describe it. */
export interface WorkloadLabels {
  readonly workload: string;
  readonly namespace: string;
  readonly service: string;
  readonly revision: string;
  readonly app: string;
  readonly version: string;
  readonly cluster: string;
}

export interface PeerClaim extends WorkloadLabels {
  readonly account: string;
}

export const peerHeader = 'x-chartpilot-peer';
/** Envoy reads its own claim from this variable, so that configuration is the same for all workloads. */
export const peerVariable = 'CHARTPILOT_PEER';

/** A longer header is no claim. */
const maxClaimLength = 1_024;
const version = '1';

export function peerClaimText(claim: PeerClaim): string {
  const { namespace, account, workload, service, revision, app, version: appVersion, cluster } = claim;
  const fields = [namespace, account, workload, service, revision, app, appVersion, cluster];
  return [version, ...fields.map(plainText)].join(';');
}

/** @returns `undefined` for a text that is no claim */
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

/** Namespace and service account of a SPIFFE ID of the mesh. */
export function accountOf(spiffeId: string): { readonly namespace: string; readonly account: string } | undefined {
  const [, namespace, account] = /^spiffe:\/\/[^/]+\/ns\/([^/]+)\/sa\/([^/]+)$/.exec(spiffeId) ?? [];
  return namespace === undefined || account === undefined ? undefined : { namespace, account };
}

/** Characters of Kubernetes names and labels only: nothing separates fields, and nothing needs escapes. */
function plainText(text: string): string {
  return text.slice(0, 128).replace(/[^\w.:/@-]/g, '_');
}
