/** All hosts of services, regardless of their visibility. */
import { isWildcard, widerHosts } from '../../model/fields/hostname.ts';
import type { Service } from '../../model/services/service.ts';
import type { KnownObjects } from './known-objects.ts';

export class MeshHosts {
  readonly #byHost: ReadonlyMap<string, readonly Service[]>;
  /** Wildcards that a service's host lies within: `*.test` for `a.test`. */
  readonly #around: ReadonlySet<string>;
  readonly #suffix: string;
  readonly #known: KnownObjects;

  private constructor(
    byHost: ReadonlyMap<string, readonly Service[]>,
    around: ReadonlySet<string>,
    domain: string,
    known: KnownObjects,
  ) {
    this.#byHost = byHost;
    this.#around = around;
    this.#suffix = `.svc.${domain}`;
    this.#known = known;
  }

  static *of(services: readonly Service[], domain: string, known: KnownObjects): Generator<undefined, MeshHosts> {
    const byHost = new Map<string, Service[]>();
    const around = new Set<string>();
    for (const service of services) {
      yield undefined;
      const same = byHost.get(service.hostname);
      if (same !== undefined) same.push(service);
      else {
        byHost.set(service.hostname, [service]);
        for (const host of widerHosts(service.hostname)) around.add(host);
      }
    }
    return new MeshHosts(byHost, around, domain, known);
  }

  /** Of all namespaces, oldest first. */
  of(host: string): readonly Service[] {
    return this.#byHost.get(host) ?? [];
  }

  get all(): Iterable<readonly Service[]> {
    return this.#byHost.values();
  }

  /** Whether no service has the host, or for a wildcard a host within it. Partial wildcards (`*x.test`) always may have one. */
  isMissing(host: string): boolean {
    if (this.#byHost.has(host) || !this.isKnown(host)) return false;
    if (!isWildcard(host)) return true;
    return host === '*' || host.startsWith('*.') ? !this.#around.has(host) : false;
  }

  /** Whether a service of the host would be among the configs. */
  isKnown(host: string): boolean {
    if (this.#byHost.has(host)) return true;
    const namespace = this.namespaceOf(host);
    return namespace === undefined
      ? this.#known.isComplete('ServiceEntry')
      : this.#known.isComplete('Service', namespace);
  }

  /** Namespace of the Kubernetes Service that has the host. */
  namespaceOf(host: string): string | undefined {
    if (!host.endsWith(this.#suffix) || isWildcard(host)) return undefined;
    return host.slice(0, -this.#suffix.length).split('.').at(-1);
  }
}
