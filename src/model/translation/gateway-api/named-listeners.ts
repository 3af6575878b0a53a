/** A route references listeners by section, port and hostname (ParentReference of the Gateway API). */
import { HostIndex } from '../../fields/host-index.ts';
import { hostIntersection } from '../../fields/hostname.ts';
import type { KnownListener } from './gateway-listeners.ts';

export interface SharedHosts {
  readonly listener: KnownListener;
  /** Hosts that match both listener and route; at least one. */
  readonly hosts: ReadonlySet<string>;
}

class NamedListeners {
  readonly listeners: readonly KnownListener[];
  readonly #listenersByHost: HostIndex<KnownListener>;

  constructor(listeners: readonly KnownListener[]) {
    this.listeners = listeners;
    this.#listenersByHost = new HostIndex(listeners, ({ hostname }) => [hostname]);
  }

  listenersSharing(hostnames: readonly string[]): readonly SharedHosts[] {
    if (hostnames.length === 0) {
      return this.listeners.map((listener) => ({ listener, hosts: new Set([listener.hostname]) }));
    }
    const sharedHosts = new Map<KnownListener, Set<string>>();
    for (const hostname of hostnames) {
      for (const { item, host } of this.#listenersByHost.overlappingEntries(hostname)) {
        const sharedHost = hostIntersection(hostname, host)!;
        const hosts = sharedHosts.get(item);
        if (hosts === undefined) sharedHosts.set(item, new Set([sharedHost]));
        else hosts.add(sharedHost);
      }
    }
    return [...sharedHosts]
      .map(([listener, hosts]) => ({ listener, hosts }))
      .sort((a, b) => a.listener.index - b.listener.index);
  }
}

interface ListenersOfGateway {
  readonly listenersBySection: ReadonlyMap<string, readonly KnownListener[]>;
  readonly cachedByName: Map<string, NamedListeners>;
}

const cachedListeners = new WeakMap<readonly KnownListener[], ListenersOfGateway>();

export function namedListeners(
  knownListeners: readonly KnownListener[],
  sectionName: string | undefined,
  port: number | undefined,
): NamedListeners {
  const gatewayListeners = cachedListeners.get(knownListeners) ?? {
    listenersBySection: Map.groupBy(knownListeners, ({ listener }) => listener.name),
    cachedByName: new Map<string, NamedListeners>(),
  };
  cachedListeners.set(knownListeners, gatewayListeners);
  const key = JSON.stringify([sectionName, port]);
  let namedByReference = gatewayListeners.cachedByName.get(key);
  if (namedByReference === undefined) {
    const sectionListeners =
      sectionName === undefined ? knownListeners : (gatewayListeners.listenersBySection.get(sectionName) ?? []);
    namedByReference = new NamedListeners(
      port === undefined ? sectionListeners : sectionListeners.filter(({ listener }) => listener.port === port),
    );
    gatewayListeners.cachedByName.set(key, namedByReference);
  }
  return namedByReference;
}
