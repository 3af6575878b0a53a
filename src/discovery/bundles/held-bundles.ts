/** This state is immutable, so that the explorer can restore it (test/simulation/bundles-world.ts). */

interface EndpointBundles<Bundle> {
  readonly candidate?: Bundle;
  readonly active?: Bundle;
}

export class HeldBundles<Bundle extends { readonly version: string }> {
  readonly #bundlesByEndpoint: ReadonlyMap<string, EndpointBundles<Bundle>>;

  constructor(bundlesByEndpoint: ReadonlyMap<string, EndpointBundles<Bundle>> = new Map()) {
    this.#bundlesByEndpoint = bundlesByEndpoint;
  }

  activeBundle(endpoint: string): Bundle | undefined {
    return this.#bundlesByEndpoint.get(endpoint)?.active;
  }

  candidateBundle(endpoint: string): Bundle | undefined {
    return this.#bundlesByEndpoint.get(endpoint)?.candidate;
  }

  isFollowed(endpoint: string): boolean {
    return this.#bundlesByEndpoint.has(endpoint);
  }

  withEndpoints(endpoints: Iterable<string>): HeldBundles<Bundle> {
    return new HeldBundles(
      new Map([...endpoints].map((endpoint) => [endpoint, this.#bundlesByEndpoint.get(endpoint) ?? {}])),
    );
  }

  withOffered(endpoint: string, candidate: Bundle): HeldBundles<Bundle> {
    const endpointBundles = this.#bundlesByEndpoint.get(endpoint);
    return endpointBundles === undefined ? this : this.#withEndpoint(endpoint, { ...endpointBundles, candidate });
  }

  /** Returns the same state if the candidate has another version or the endpoint is unknown. */
  withAdopted(endpoint: string, version: string): HeldBundles<Bundle> {
    const candidate = this.candidateBundle(endpoint);
    return candidate?.version === version ? this.#withEndpoint(endpoint, { candidate, active: candidate }) : this;
  }

  #withEndpoint(endpoint: string, endpointBundles: EndpointBundles<Bundle>): HeldBundles<Bundle> {
    return new HeldBundles(new Map(this.#bundlesByEndpoint).set(endpoint, endpointBundles));
  }
}
