/** SPIFFE IDs (SPIFFE-ID standard §2), and Istio's form for workloads. */

export interface SpiffeId {
  readonly trustDomain: string;
  /** Starts with a slash; empty for the trust domain itself. */
  readonly path: string;
}

export interface WorkloadIdentity {
  readonly trustDomain: string;
  readonly namespace: string;
  readonly serviceAccount: string;
}

const scheme = 'spiffe://';
const maxIdBytes = 2048;
const maxTrustDomainBytes = 255;

/** Parses as go-spiffe does: without percent-encoding, port, query, user or normalization. */
export function parseSpiffeId(text: string): SpiffeId | { readonly problem: string } {
  if (!text.startsWith(scheme)) return { problem: 'must start with spiffe://' };
  if (Buffer.byteLength(text) > maxIdBytes) return { problem: `must have at most ${maxIdBytes} bytes` };
  const textAfterScheme = text.slice(scheme.length);
  const slash = textAfterScheme.indexOf('/');
  const trustDomain = slash < 0 ? textAfterScheme : textAfterScheme.slice(0, slash);
  const path = slash < 0 ? '' : textAfterScheme.slice(slash);
  const problem = trustDomainProblem(trustDomain) ?? pathProblem(path);
  return problem === undefined ? { trustDomain, path } : { problem };
}

export function trustDomainProblem(text: string): string | undefined {
  if (text === '') return 'trust domain must not be empty';
  if (text.length > maxTrustDomainBytes) return `trust domain must have at most ${maxTrustDomainBytes} bytes`;
  return /^[a-z0-9._-]+$/.test(text)
    ? undefined
    : 'trust domain must contain only lower-case letters, digits, dots, dashes and underscores';
}

function pathProblem(path: string): string | undefined {
  if (path === '') return undefined;
  for (const segment of path.slice(1).split('/')) {
    if (segment === '') return 'path must not have an empty segment';
    if (segment === '.' || segment === '..') return 'path must not have a segment . or ..';
    if (!/^[a-zA-Z0-9._-]+$/.test(segment)) {
      return 'path must contain only letters, digits, dots, dashes and underscores';
    }
  }
  return undefined;
}

/** Returns `undefined` for a URI that does not identify a workload. */
export function workloadIdentityOf(uri: string): WorkloadIdentity | undefined {
  const id = parseSpiffeId(uri);
  if ('problem' in id) return undefined;
  const [, namespace, serviceAccount] = /^\/ns\/([^/]+)\/sa\/([^/]+)$/.exec(id.path) ?? [];
  if (namespace === undefined || serviceAccount === undefined) return undefined;
  return { trustDomain: id.trustDomain, namespace, serviceAccount };
}

/** Returns the workload identity of a caller; `undefined` unless exactly one URI identifies a workload. */
export function singleWorkloadOf(uris: readonly string[]): WorkloadIdentity | undefined {
  const identities = uris.flatMap((uri) => workloadIdentityOf(uri) ?? []);
  return identities.length === 1 ? identities[0] : undefined;
}

/** @throws RangeError for names that no SPIFFE ID can contain */
export function spiffeUriOf({ trustDomain, namespace, serviceAccount }: WorkloadIdentity): string {
  const uri = `${scheme}${trustDomain}/ns/${namespace}/sa/${serviceAccount}`;
  const parsedIdentity = workloadIdentityOf(uri);
  // A slash in a name would change the identity.
  if (
    parsedIdentity?.trustDomain === trustDomain &&
    parsedIdentity.namespace === namespace &&
    parsedIdentity.serviceAccount === serviceAccount
  ) {
    return uri;
  }
  throw new RangeError(`${JSON.stringify(uri)} is not a valid SPIFFE ID`);
}

/**
 * Returns the URI of a workload in its mesh, with the mesh's trust domain instead of an alias.
 *
 * @param trustDomains of the mesh, followed by its aliases
 * @returns `undefined` for a workload of another mesh
 */
export function uriInMesh(identity: WorkloadIdentity, trustDomains: readonly string[]): string | undefined {
  const [meshTrustDomain] = trustDomains;
  if (meshTrustDomain === undefined || !trustDomains.includes(identity.trustDomain)) return undefined;
  return spiffeUriOf({ ...identity, trustDomain: meshTrustDomain });
}
