/** Hosts of all services, regardless of visibility. */
import { isWildcard, widerHosts } from '../../../model/fields/hostname.ts';
import { nearestName } from '../../../model/fields/nearest-name.ts';
import type { Service } from '../../../model/services/service.ts';
import type { KnownObjects } from '../known-objects.ts';

export class MeshHosts {
  readonly #servicesByHost: ReadonlyMap<string, readonly Service[]>;
  /**
   * Services by wildcards that match their hosts (`*.test` for `a.test`), in all namespaces (key ` *.test`) and per namespace (key `shop *.test`).
   */
  readonly #servicesByWildcard: ReadonlyMap<string, readonly Service[]>;
  readonly #suffix: string;
  readonly #knownObjects: KnownObjects;

  private constructor(
    servicesByHost: ReadonlyMap<string, readonly Service[]>,
    servicesByWildcard: ReadonlyMap<string, readonly Service[]>,
    domain: string,
    knownObjects: KnownObjects,
  ) {
    this.#servicesByHost = servicesByHost;
    this.#servicesByWildcard = servicesByWildcard;
    this.#suffix = `.svc.${domain}`;
    this.#knownObjects = knownObjects;
  }

  static *build(
    services: readonly Service[],
    domain: string,
    knownObjects: KnownObjects,
  ): Generator<undefined, MeshHosts> {
    const servicesByHost = new Map<string, Service[]>();
    const servicesByWildcard = new Map<string, Service[]>();
    for (const service of services) {
      yield undefined;
      const hostServices = servicesByHost.get(service.hostname);
      if (hostServices !== undefined) hostServices.push(service);
      else servicesByHost.set(service.hostname, [service]);
      for (const host of widerHosts(service.hostname)) {
        for (const key of [` ${host}`, `${service.namespace} ${host}`]) {
          const wildcardServices = servicesByWildcard.get(key);
          if (wildcardServices === undefined) servicesByWildcard.set(key, [service]);
          else wildcardServices.push(service);
        }
      }
    }
    return new MeshHosts(servicesByHost, servicesByWildcard, domain, knownObjects);
  }

  /** Oldest first. */
  servicesOf(host: string): readonly Service[] {
    return this.#servicesByHost.get(host) ?? [];
  }

  get serviceGroups(): Iterable<readonly Service[]> {
    return this.#servicesByHost.values();
  }

  /**
   * Empty for a partial wildcard (`*x.test`).
   *
   * @param namespace absent for all
   */
  servicesWithin(wildcard: string, namespace = ''): readonly Service[] {
    return this.#servicesByWildcard.get(`${namespace} ${wildcard}`) ?? [];
  }

  /** Partial wildcards (`*x.test`) are never missing. */
  isMissingHost(host: string): boolean {
    if (this.#servicesByHost.has(host)) return false;
    if (this.#fullNameOf(host) !== undefined || this.#findSimilarDomain(host) !== undefined) return true;
    if (!this.isKnownHost(host)) return false;
    if (!isWildcard(host)) return true;
    return host === '*' || host.startsWith('*.') ? !this.#servicesByWildcard.has(` ${host}`) : false;
  }

  correctionOf(host: string): string {
    const fullName = this.#fullNameOf(host);
    if (fullName !== undefined) return `write ${fullName}, because names with a dot are not completed`;
    const similarDomain = this.#findSimilarDomain(host);
    return `${similarDomain === undefined ? 'correct the name' : `write ${similarDomain}`}, or create the Service or ServiceEntry`;
  }

  /** Finds the Service that a host with a misspelt domain (`api.shop.svc.cluster.lokal`) probably means. */
  #findSimilarDomain(host: string): string | undefined {
    const [service, namespace, ...domain] = host.split('.');
    const fullName = `${service}.${namespace}${this.#suffix}`;
    const isSimilar = nearestName(`.${domain.join('.')}`, [this.#suffix]) !== undefined;
    return isSimilar && fullName !== host && this.#servicesByHost.has(fullName) ? fullName : undefined;
  }

  /** Completes short names such as `api.shop` and `api.shop.svc`. */
  #fullNameOf(host: string): string | undefined {
    const domain = this.#suffix.slice('.svc'.length);
    return [`${host}${this.#suffix}`, `${host}${domain}`].find((fullName) => this.#servicesByHost.has(fullName));
  }

  /** Whether the configs would contain a service with this host. */
  isKnownHost(host: string): boolean {
    if (this.#servicesByHost.has(host)) return true;
    const namespace = this.namespaceOf(host);
    return namespace === undefined
      ? this.#knownObjects.isComplete('ServiceEntry')
      : this.#knownObjects.isComplete('Service', namespace);
  }

  namespaceOf(host: string): string | undefined {
    if (!host.endsWith(this.#suffix) || isWildcard(host)) return undefined;
    return host.slice(0, -this.#suffix.length).split('.').at(-1);
  }
}
