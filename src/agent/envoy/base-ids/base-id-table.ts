/**
 * The base ids that this process has: outside the charts, as the process table is, so that whatever ends the agent gives them
 * back. A chart says which to give back, by their numbers.
 */
import { areFree, type BaseIdOptions, type ClaimedBaseIds, claimBaseIds, resumeBaseIds } from './base-ids.ts';

export class BaseIdTable {
  readonly #claims = new Set<ClaimedBaseIds>();
  readonly #pending = new Set<Promise<ClaimedBaseIds | undefined>>();

  /** @throws ChartpilotError as `claimBaseIds` */
  async claim(
    options: BaseIdOptions & { readonly withSpare: boolean },
  ): Promise<{ baseIds: number[]; sweptFiles: string[] }> {
    const claim = await this.#awaited(claimBaseIds(options));
    return { baseIds: [...claim.baseIds], sweptFiles: [...claim.sweptFiles] };
  }

  /** Those of an agent that was killed; undefined when they are not to be had. @throws ChartpilotError as `resumeBaseIds` */
  async resume(
    options: BaseIdOptions,
    baseIds: readonly number[],
  ): Promise<{ baseIds: number[]; sweptFiles: string[] } | undefined> {
    const claim = await this.#awaited(resumeBaseIds(options, baseIds));
    return claim && { baseIds: [...claim.baseIds], sweptFiles: [] };
  }

  /** What is being claimed, also by a chart that has ended, is in the table then. Never rejects. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#pending);
  }

  async #awaited<Claim extends ClaimedBaseIds | undefined>(claiming: Promise<Claim>): Promise<Claim> {
    const pending = claiming.then((claim) => {
      if (claim !== undefined) this.#claims.add(claim);
      return claim;
    });
    this.#pending.add(pending);
    try {
      return await pending;
    } finally {
      this.#pending.delete(pending);
    }
  }

  /** Gives back what was claimed together with any of these. Never throws. */
  release(baseIds: readonly number[]): void {
    for (const claim of this.#claims) if (claim.baseIds.some((baseId) => baseIds.includes(baseId))) this.#end(claim);
  }

  /** Likewise, once no Envoy lives under them any more, or seems never to end. */
  async releaseWhenFree(baseIds: readonly number[]): Promise<void> {
    await areFree(baseIds);
    this.release(baseIds);
  }

  /** For another agent to take, with what runs under them. Never throws. */
  letGoAll(): void {
    for (const claim of this.#claims) {
      this.#claims.delete(claim);
      claim.letGo();
    }
  }

  /** Never throws. */
  releaseAll(): void {
    for (const claim of this.#claims) this.#end(claim);
  }

  #end(claim: ClaimedBaseIds): void {
    this.#claims.delete(claim);
    claim.release();
  }
}
