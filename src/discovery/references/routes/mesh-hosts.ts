/** Hosts of all services, regardless of visibility. */
import { isWildcard, widerHosts } from '../../../model/fields/hostname.ts';
import { nearestName } from '../../../model/fields/nearest-name.ts';
import type { Service } from '../../../model/services/service.ts';
import type { KnownObjects } from '../known-objects.ts';

export class MeshHosts {
  readonly #byHost: ReadonlyMap<string, readonly Service[]>;
  /**
   * Services by wildcards that match their hosts (`*.test` for `a.test`), in all namespaces (key ` *.test`) and per namespace (key `shop *.test`).
   */
  readonly #byWildcard: ReadonlyMap<string, readonly Service[]>;
  readonly #suffix: string;
  readonly #knownObjects: KnownObjects;

  private constructor(
    byHost: ReadonlyMap<string, readonly Service[]>,
    byWildcard: ReadonlyMap<string, readonly Service[]>,
    domain: string,
    knownObjects: KnownObjects,
  ) {
    this.#byHost = byHost;
    this.#byWildcard = byWildcard;
    this.#suffix = `.svc.${domain}`;
    this.#knownObjects = knownObjects;
  }

  static *of(
    services: readonly Service[],
    domain: string,
    knownObjects: KnownObjects,
  ): Generator<undefined, MeshHosts> {
    const byHost = new Map<string, Service[]>();
    const byWildcard = new Map<string, Service[]>();
    for (const service of services) {
      yield undefined;
      const same = byHost.get(service.hostname);
      if (same !== undefined) same.push(service);
      else byHost.set(service.hostname, [service]);
      for (const host of widerHosts(service.hostname)) {
        for (const key of [` ${host}`, `${service.namespace} ${host}`]) {
          const within = byWildcard.get(key);
          if (within === undefined) byWildcard.set(key, [service]);
          else within.push(service);
        }
      }
    }
    return new MeshHosts(byHost, byWildcard, domain, knownObjects);
  }

  /** Services in all namespaces, oldest first. */
  of(host: string): readonly Service[] {
    return this.#byHost.get(host) ?? [];
  }

  get all(): Iterable<readonly Service[]> {
    return this.#byHost.values();
  }

  /**
   * Services whose hosts match a wildcard; empty for a partial one (`*x.test`).
   *
   * @param namespace absent for all
   */
  within(wildcard: string, namespace = ''): readonly Service[] {
    return this.#byWildcard.get(`${namespace} ${wildcard}`) ?? [];
  }

  /** Whether no service has the host or matches the wildcard. Partial wildcards (`*x.test`) are never missing. */
  isMissing(host: string): boolean {
    if (this.#byHost.has(host)) return false;
    if (this.#fullNameOf(host) !== undefined || this.#nearDomainOf(host) !== undefined) return true;
    if (!this.isKnown(host)) return false;
    if (!isWildcard(host)) return true;
    return host === '*' || host.startsWith('*.') ? !this.#byWildcard.has(` ${host}`) : false;
  }

  correctionOf(host: string): string {
    const full = this.#fullNameOf(host);
    if (full !== undefined) return `write ${full}, because names with a dot are not completed`;
    const near = this.#nearDomainOf(host);
    return `${near === undefined ? 'correct the name' : `write ${near}`}, or create the Service or ServiceEntry`;
  }

  /** Finds the Kubernetes Service that a host with a misspelt domain (`api.shop.svc.cluster.lokal`) probably means. Returns its host. */
  #nearDomainOf(host: string): string | undefined {
    const [service, namespace, ...domain] = host.split('.');
    const full = `${service}.${namespace}${this.#suffix}`;
    const isNear = nearestName(`.${domain.join('.')}`, [this.#suffix]) !== undefined;
    return isNear && full !== host && this.#byHost.has(full) ? full : undefined;
  }

  /** Host of the Kubernetes Service for the short names `api.shop` and `api.shop.svc`. */
  #fullNameOf(host: string): string | undefined {
    const domain = this.#suffix.slice('.svc'.length);
    return [`${host}${this.#suffix}`, `${host}${domain}`].find((full) => this.#byHost.has(full));
  }

  /** Whether the configs would contain a service with this host. */
  isKnown(host: string): boolean {
    if (this.#byHost.has(host)) return true;
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
