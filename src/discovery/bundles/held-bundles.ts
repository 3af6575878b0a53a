/** Last fetched and active bundle of each endpoint. Immutable, so that the explorer can restore it (test/simulation/bundles-world.ts). */

interface EndpointBundles<Bundle> {
  readonly candidate?: Bundle;
  readonly active?: Bundle;
}

export class HeldBundles<Bundle extends { readonly version: string }> {
  readonly #held: ReadonlyMap<string, EndpointBundles<Bundle>>;

  constructor(held: ReadonlyMap<string, EndpointBundles<Bundle>> = new Map()) {
    this.#held = held;
  }

  /** `undefined` until a bundle was adopted. */
  inForce(endpoint: string): Bundle | undefined {
    return this.#held.get(endpoint)?.active;
  }

  candidate(endpoint: string): Bundle | undefined {
    return this.#held.get(endpoint)?.candidate;
  }

  isFollowed(endpoint: string): boolean {
    return this.#held.has(endpoint);
  }

  /** A copy with exactly these endpoints. */
  following(endpoints: Iterable<string>): HeldBundles<Bundle> {
    return new HeldBundles(new Map([...endpoints].map((endpoint) => [endpoint, this.#held.get(endpoint) ?? {}])));
  }

  offered(endpoint: string, candidate: Bundle): HeldBundles<Bundle> {
    const held = this.#held.get(endpoint);
    return held === undefined ? this : this.#with(endpoint, { ...held, candidate });
  }

  /** Activates the fetched bundle. Returns the same state if its version differs or the endpoint is unknown. */
  adopted(endpoint: string, version: string): HeldBundles<Bundle> {
    const candidate = this.candidate(endpoint);
    return candidate?.version === version ? this.#with(endpoint, { candidate, active: candidate }) : this;
  }

  #with(endpoint: string, held: EndpointBundles<Bundle>): HeldBundles<Bundle> {
    return new HeldBundles(new Map(this.#held).set(endpoint, held));
  }
}
