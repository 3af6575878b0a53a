/**
 * What is known of bundle endpoints: what came last from each, and what of it is in force. A record that is replaced and never changed, so
 * that the explorer can bring it back (test/simulation/bundles-world.ts).
 */

interface Held<Bundle> {
  /** What came last, in force or not yet. */
  readonly candidate?: Bundle;
  readonly inForce?: Bundle;
}

export class HeldBundles<Bundle extends { readonly version: string }> {
  readonly #held: ReadonlyMap<string, Held<Bundle>>;

  constructor(held: ReadonlyMap<string, Held<Bundle>> = new Map()) {
    this.#held = held;
  }

  /** The last good ones of an endpoint; undefined as long as nothing good has come from it. */
  inForce(endpoint: string): Bundle | undefined {
    return this.#held.get(endpoint)?.inForce;
  }

  candidate(endpoint: string): Bundle | undefined {
    return this.#held.get(endpoint)?.candidate;
  }

  isFollowed(endpoint: string): boolean {
    return this.#held.has(endpoint);
  }

  /** These endpoints are followed and no others: what others have said is forgotten. */
  following(endpoints: Iterable<string>): HeldBundles<Bundle> {
    return new HeldBundles(new Map([...endpoints].map((endpoint) => [endpoint, this.#held.get(endpoint) ?? {}])));
  }

  /** Something good came; it counts when it is adopted. */
  offered(endpoint: string, candidate: Bundle): HeldBundles<Bundle> {
    const held = this.#held.get(endpoint);
    return held === undefined ? this : this.#with(endpoint, { ...held, candidate });
  }

  /** In force from now on. The same record where this is not what came last, or comes from nobody who is followed. */
  adopted(endpoint: string, version: string): HeldBundles<Bundle> {
    const candidate = this.candidate(endpoint);
    return candidate?.version === version ? this.#with(endpoint, { candidate, inForce: candidate }) : this;
  }

  #with(endpoint: string, held: Held<Bundle>): HeldBundles<Bundle> {
    return new HeldBundles(new Map(this.#held).set(endpoint, held));
  }
}
