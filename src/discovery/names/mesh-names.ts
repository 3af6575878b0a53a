/** A namespace may resolve the names in the name table (NDS) of its sidecars. */

import type { NameTable } from '../../gen/istio/networking/nds/v1/nds_pb.ts';
import { emptyProxyFacts, type ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { publicViewNamespace } from '../../model/services/visibility.ts';
import { buildNameTable } from '../../networking/name-table/build.ts';
import { DnsNames } from '../../runtime/dns/dns-names.ts';
import { Turns } from '../../runtime/turns.ts';

export interface MeshNamesOptions {
  readonly context: () => PushContext | undefined;
  readonly domain: string;
  readonly clusterId: string;
  readonly now?: () => number;
}

interface NamesOfNamespace {
  readonly context: PushContext;
  readonly builtAt: number;
  readonly names: Promise<DnsNames>;
}

const maxNamespaces = 64;
/** Building the names for each push would cost more than queries do. */
const maxAgeMs = 1_000;

export class MeshNames {
  readonly #options: MeshNamesOptions;
  readonly #now: () => number;
  readonly #namesByNamespace = new Map<string, NamesOfNamespace>();

  constructor(options: MeshNamesOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
  }

  /**
   * The names are at most a second old.
   *
   * @param namespace `undefined` for unauthenticated clients, which may resolve names that are exported to all namespaces
   * @returns `undefined` before the first push context
   */
  async visibleTo(namespace: string | undefined): Promise<DnsNames | undefined> {
    const context = this.#options.context();
    if (context === undefined) return undefined;
    const key = namespace ?? publicViewNamespace;
    const cachedNames = this.#namesByNamespace.get(key);
    if (cachedNames !== undefined && (cachedNames.context === context || this.#now() - cachedNames.builtAt < maxAgeMs))
      return cachedNames.names;
    const names = this.#build(context, key);
    this.#namesByNamespace.delete(key);
    this.#namesByNamespace.set(key, { context, builtAt: this.#now(), names });
    for (const oldestNamespace of this.#namesByNamespace.keys()) {
      if (this.#namesByNamespace.size <= maxNamespaces) break;
      this.#namesByNamespace.delete(oldestNamespace);
    }
    names.catch(() => this.#namesByNamespace.delete(key));
    return names;
  }

  /**
   * Unknown names in the zone do not exist, because the mesh is authoritative for it.
   *
   * @param name in lower case, with trailing dot
   */
  isInZone(name: string): boolean {
    const zone = `svc.${this.#options.domain}.`;
    return name === zone || name.endsWith(`.${zone}`);
  }

  async #build(context: PushContext, namespace: string): Promise<DnsNames> {
    const { domain } = this.#options;
    const isAnonymous = namespace === publicViewNamespace;
    const serviceDomain = `svc.${domain}`;
    const shape = shapeOfClient(
      namespace,
      isAnonymous ? serviceDomain : `${namespace}.${serviceDomain}`,
      this.#options.clusterId,
    );
    const [table] = buildNameTable(shape, context);
    const { table: hosts } = table!.message as NameTable;
    return new Turns().runSteps(
      DnsNames.of(new Map(Object.entries(hosts)), {
        namespace: isAnonymous ? '' : namespace,
        domain: shape.dnsDomain,
        search: '',
      }),
    );
  }
}

/**
 * Shape of a DNS client without Envoy. Its metadata lacks DNS_AUTO_ALLOCATE, so the name table omits auto-allocated addresses, which only Envoy and
 * the agent's DNS server can resolve.
 */
function shapeOfClient(configNamespace: string, dnsDomain: string, clusterId: string): ProxyShape {
  return {
    ...{ type: 'sidecar', configNamespace, labels: {}, ipFamily: 'dual', ...emptyProxyFacts },
    ...{ dnsDomain, locality: '', network: '', clusterId, interceptionMode: 'REDIRECT', runsWasm: false },
    ...{ metadata: {}, serviceTargets: [] },
  };
}
