/** Limits the workloads that one identity can claim, because a peer can claim any workload of its service account. */
import type { PeerClaim } from '../../model/standard-metrics/peer-claim.ts';

/** A service account rarely has more Deployments. */
const maxClaimsOfIdentity = 32;
const maxIdentities = 10_000;

export class ClaimedWorkloads {
  readonly #claims = new Map<string, Set<string>>();

  admit(spiffeId: string, claim: PeerClaim): boolean {
    let claims = this.#claims.get(spiffeId);
    if (claims === undefined) {
      if (this.#claims.size >= maxIdentities) this.clear();
      claims = new Set();
      this.#claims.set(spiffeId, claims);
    }
    const { workload, service, revision, app, version, cluster } = claim;
    const text = [workload, service, revision, app, version, cluster].join(';');
    if (claims.has(text)) return true;
    if (claims.size >= maxClaimsOfIdentity) return false;
    claims.add(text);
    return true;
  }

  /** Called when idle label sets are removed, because workloads are replaced over time. */
  clear(): void {
    this.#claims.clear();
  }
}
