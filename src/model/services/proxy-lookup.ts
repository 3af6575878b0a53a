import { runToEnd, type Steps } from '../../runtime/turns.ts';
import { PersistentMap } from '../collections/persistent-map.ts';
import { sameItems } from '../collections/same-items.ts';
import { compareText } from '../config/config.ts';
import type { Proxy } from '../node/proxy.ts';
import type { ServiceName } from './endpoint-shards.ts';
import { addressIn } from './namespaced-address.ts';
import type { Endpoint } from './service.ts';

/** A port of a service in the proxy's own namespace. Without a namespace field, no registry can return a service of another namespace. */
export interface TargetRef {
  readonly hostname: string;
  readonly portName: string;
  readonly targetPort: number;
}

export type LookupSubject = Pick<
  Proxy,
  'type' | 'ipAddresses' | 'configNamespace' | 'labels' | 'clusterId' | 'name' | 'metadata'
>;

/** Immutable. Considers only objects of the proxy's `configNamespace`. */
export interface ProxyLookup {
  targetsOf(proxy: LookupSubject): readonly TargetRef[];
  workloadOf(proxy: LookupSubject): KnownWorkload | undefined;
}

export interface KnownWorkload {
  readonly labels: Readonly<Record<string, string>>;
  /** `region/zone/subzone`; empty if unknown. */
  readonly locality: string;
}

export const noLookup: ProxyLookup = { targetsOf: () => [], workloadOf: () => undefined };

/** Combines registries: the services of all registries, and the workload of the first registry that knows it. */
export function combinedLookup(lookups: readonly ProxyLookup[]): ProxyLookup {
  if (lookups.length === 1) return lookups[0]!;
  return {
    targetsOf: (proxy) => lookups.flatMap((lookup) => lookup.targetsOf(proxy)),
    workloadOf: (proxy) => {
      for (const lookup of lookups) {
        const workload = lookup.workloadOf(proxy);
        if (workload !== undefined) return workload;
      }
      return undefined;
    },
  };
}

interface EndpointsChange extends ServiceName {
  readonly previous: readonly Endpoint[];
  readonly current: readonly Endpoint[];
}

type TargetsByService = PersistentMap<readonly TargetRef[]>;

/**
 * Service ports by namespace and address. Immutable: each change returns a new book, at a cost independent of how many services share an
 * address.
 */
export class AddressBook {
  private readonly targetsByAddress: PersistentMap<TargetsByService>;

  constructor(targetsByAddress: PersistentMap<TargetsByService> = PersistentMap.empty()) {
    this.targetsByAddress = targetsByAddress;
  }

  /** Ignores other namespaces, because any tenant can claim any address. */
  targetsAt(namespace: string, addresses: readonly string[]): readonly TargetRef[] {
    return addresses.flatMap((address) => {
      const servedTargets = this.targetsByAddress.get(addressIn(namespace, address));
      return servedTargets === undefined ? [] : sortedRefs(servedTargets);
    });
  }

  withService(service: ServiceName, previous: readonly Endpoint[], next: readonly Endpoint[]): AddressBook {
    const { hostname, namespace } = service;
    return runToEnd(this.changeInSteps([{ hostname, namespace, previous, current: next }]));
  }

  *changeInSteps(changes: readonly EndpointsChange[]): Steps<AddressBook> {
    const changedTargets = new Map<string, TargetsByService>();
    for (const change of changes) {
      this.moveService(change, changedTargets);
      yield;
    }
    const addedTargets = [...changedTargets].filter(([, servedTargets]) => servedTargets.size > 0);
    let book = yield* this.targetsByAddress.addAllInSteps(addedTargets);
    for (const [key, servedTargets] of changedTargets) {
      if (servedTargets.size > 0) continue;
      book = book.withoutKey(key);
      yield;
    }
    return changedTargets.size === 0 ? this : new AddressBook(book);
  }

  private moveService(
    { hostname, namespace, previous: previousEndpoints, current }: EndpointsChange,
    changedTargets: Map<string, TargetsByService>,
  ): void {
    const refs = Map.groupBy(current, ({ address }) => address);
    const previousByAddress = Map.groupBy(previousEndpoints, ({ address }) => address);
    for (const address of new Set([...previousByAddress.keys(), ...refs.keys()])) {
      const [previous, currentRef] = [previousByAddress.get(address), refs.get(address)];
      if (previous !== undefined && currentRef !== undefined && sameItems(previous, currentRef)) continue;
      const key = addressIn(namespace, address);
      const servedTargets = changedTargets.get(key) ?? this.targetsByAddress.get(key) ?? PersistentMap.empty();
      const targets = currentRef?.map(({ servicePortName, port }) => ({
        hostname,
        portName: servicePortName,
        targetPort: port,
      }));
      changedTargets.set(
        key,
        targets === undefined ? servedTargets.withoutKey(hostname) : servedTargets.with(hostname, targets),
      );
    }
  }
}

const cachedTargets = new WeakMap<TargetsByService, readonly TargetRef[]>();

function sortedRefs(servedTargets: TargetsByService): readonly TargetRef[] {
  const sortedTargets = cachedTargets.get(servedTargets);
  if (sortedTargets !== undefined) return sortedTargets;
  const refs = [...servedTargets.values()].flat().sort(compareByName);
  cachedTargets.set(servedTargets, refs);
  return refs;
}

function compareByName(a: TargetRef, b: TargetRef): number {
  return compareText(a.hostname, b.hostname) || compareText(a.portName, b.portName) || a.targetPort - b.targetPort;
}
