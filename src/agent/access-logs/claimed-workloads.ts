/** How many workloads an identity claims: a peer can claim any workload of its service account, but not thousands. */
import type { PeerClaim } from '../../model/standard-metrics/peer-claim.ts';

/** Workloads of one service account that have labels of their own. Deployments of one account are rarely more. */
const maxClaimsOfIdentity = 32;
const maxIdentities = 10_000;

export class ClaimedWorkloads {
  readonly #claims = new Map<string, Set<string>>();

  admit(spiffeId: string, claim: PeerClaim): boolean {
    let claims = this.#claims.get(spiffeId);
    if (claims === undefined) {
      if (this.#claims.size >= maxIdentities) this.forget();
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

  /** Called when idle label sets are removed: workloads come and go. */
  forget(): void {
    this.#claims.clear();
  }
}
