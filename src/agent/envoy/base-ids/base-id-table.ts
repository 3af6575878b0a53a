import { areBaseIdsFree, type BaseIdOptions, type ClaimedBaseIds, claimBaseIds, resumeBaseIds } from './base-ids.ts';

export class BaseIdTable {
  readonly #claims = new Set<ClaimedBaseIds>();
  readonly #pendingClaims = new Set<Promise<ClaimedBaseIds | undefined>>();

  /** @throws ChartpilotError as `claimBaseIds` does */
  async claim(
    options: BaseIdOptions & { readonly withSpare: boolean },
  ): Promise<{ baseIds: number[]; sweptFiles: string[] }> {
    const claim = await this.#track(claimBaseIds(options));
    return { baseIds: [...claim.baseIds], sweptFiles: [...claim.sweptFiles] };
  }

  /** `undefined` if the base IDs of the killed agent cannot be taken. */
  async resume(
    options: BaseIdOptions,
    baseIds: readonly number[],
  ): Promise<{ baseIds: number[]; sweptFiles: string[] } | undefined> {
    const claim = await this.#track(resumeBaseIds(options, baseIds));
    return claim && { baseIds: [...claim.baseIds], sweptFiles: [] };
  }

  /** Resolves when the table contains all claims in progress, also those of a chart that has ended. Never rejects. */
  async waitUntilSettled(): Promise<void> {
    await Promise.allSettled(this.#pendingClaims);
  }

  async #track<Claim extends ClaimedBaseIds | undefined>(pendingClaim: Promise<Claim>): Promise<Claim> {
    const trackedClaim = pendingClaim.then((claim) => {
      if (claim !== undefined) this.#claims.add(claim);
      return claim;
    });
    this.#pendingClaims.add(trackedClaim);
    try {
      return await trackedClaim;
    } finally {
      this.#pendingClaims.delete(trackedClaim);
    }
  }

  /** Releases every claim that contains one of these IDs. Never throws. */
  release(baseIds: readonly number[]): void {
    for (const claim of this.#claims)
      if (claim.baseIds.some((baseId) => baseIds.includes(baseId))) this.#releaseClaim(claim);
  }

  /** Waits for a limited time until the Envoys of these IDs have exited. */
  async releaseWhenFree(baseIds: readonly number[]): Promise<void> {
    await areBaseIdsFree(baseIds);
    this.release(baseIds);
  }

  /** Leaves the IDs and their Envoys to another agent. Never throws. */
  handOverAll(): void {
    for (const claim of this.#claims) {
      this.#claims.delete(claim);
      claim.handOver();
    }
  }

  /** Never throws. */
  releaseAll(): void {
    for (const claim of this.#claims) this.#releaseClaim(claim);
  }

  #releaseClaim(claim: ClaimedBaseIds): void {
    this.#claims.delete(claim);
    claim.release();
  }
}
