/** ServiceEntry hosts have automatically allocated addresses (PILOT_ENABLE_IP_AUTOALLOCATE), which apply even if the status does not contain them. */
import { isDeepStrictEqual } from 'node:util';
import { listDiff } from '../../../model/collections/list-diff.ts';
import { type Config, compareAge } from '../../../model/config/config.ts';
import type { ConfigSet } from '../../../model/config/config-set.ts';
import type { ServiceEntry } from '../../../model/kinds/workloads/service-entry.ts';
import { AddressAllocation } from '../../../model/services/auto-allocate.ts';
import { allocationNames } from '../../../model/services/service-entry-services.ts';
import { isObject } from '../../../runtime/json-object.ts';
import type { Turns } from '../../../runtime/turns.ts';
import { type DerivedStatus, objectRef, type StatusDerivation } from './derived-status.ts';
import type { StatusFields } from './status-writer.ts';

export interface AddressDerivationOptions {
  readonly objects: () => Pick<ConfigSet, 'ServiceEntry'>;
  readonly onChanged: (onChanged: () => void) => () => void;
  readonly isWritten: (object: Config) => boolean;
}

interface HostAddress {
  readonly value: string;
  readonly host: string;
}

export class AddressDerivation implements StatusDerivation {
  readonly #options: AddressDerivationOptions;
  readonly onChanged: AddressDerivationOptions['onChanged'];
  readonly #allocation = new AddressAllocation();
  #entries: readonly Config<ServiceEntry>[] = [];
  /** Addresses, cached by entry and allocation version. */
  readonly #addressesByEntry = new WeakMap<
    Config,
    { readonly version: number; readonly addresses: readonly HostAddress[] }
  >();

  constructor(options: AddressDerivationOptions) {
    this.#options = options;
    this.onChanged = options.onChanged;
  }

  inputs(): readonly unknown[] {
    const { ServiceEntry } = this.#options.objects();
    return [ServiceEntry.length === 0 ? 'nothing' : ServiceEntry];
  }

  async derive(workTurns: Turns): Promise<ReadonlyMap<string, DerivedStatus>> {
    const entries = this.#options.objects().ServiceEntry.toSorted(compareAge);
    if (!this.#changesOwnAddressesOnly(entries)) {
      await workTurns.runSteps(this.#allocation.allocateInSteps(entries.flatMap(allocationNames)));
    }
    this.#entries = entries;
    const derivedStatuses = new Map<string, DerivedStatus>();
    for (const entry of entries.filter(this.#options.isWritten)) {
      const { namespace, name, generation } = entry;
      const addresses = this.#addressesOf(entry);
      derivedStatuses.set(`ServiceEntry/${namespace}/${name}`, {
        ...objectRef(entry),
        ...(generation !== undefined && { generation }),
        facts: addresses,
        next: (currentStatus) => statusAfter(currentStatus, addresses),
      });
      await workTurns.waitIfTurnEnded();
    }
    return derivedStatuses;
  }

  /** Updates the addresses of changed entries. Returns `false` if that could change addresses of other entries. */
  #changesOwnAddressesOnly(entries: readonly Config<ServiceEntry>[]): boolean {
    const { removed, added } = listDiff(this.#entries, entries);
    const names = added.flatMap(allocationNames);
    const [removedNames, addedNames] = [new Set(removed.flatMap(allocationNames)), new Set(names)];
    if (addedNames.size < names.length) return false;
    // The allocation serves older entries first.
    const isAgeUnchanged = added.every((addedEntry) =>
      removed.some((removedEntry) => compareAge(addedEntry, removedEntry) === 0),
    );
    if (!isAgeUnchanged && names.some((name) => removedNames.has(name))) return false;
    return this.#allocation.change(removedNames, addedNames);
  }

  #addressesOf(entry: Config<ServiceEntry>): readonly HostAddress[] {
    const { version } = this.#allocation;
    let cachedAddresses = this.#addressesByEntry.get(entry);
    if (cachedAddresses?.version !== version) {
      const addresses = addressesOf(entry, (name) => this.#allocation.get(name));
      cachedAddresses = {
        version,
        addresses: isDeepStrictEqual(addresses, cachedAddresses?.addresses) ? cachedAddresses!.addresses : addresses,
      };
      this.#addressesByEntry.set(entry, cachedAddresses);
    }
    return cachedAddresses.addresses;
  }
}

type AllocatedAddresses = { readonly ipv4: string; readonly ipv6: string } | undefined;

function addressesOf(
  entry: Config<ServiceEntry>,
  allocatedAddressesOf: (name: string) => AllocatedAddresses,
): readonly HostAddress[] {
  const allocatedNames = new Set(allocationNames(entry));
  return entry.spec.hosts.flatMap((host) => {
    const name = `${entry.namespace}/${host}`;
    const { ipv4, ipv6 } = (allocatedNames.has(name) ? allocatedAddressesOf(name) : undefined) ?? {};
    return [ipv4, ipv6].flatMap((value) => (value === undefined ? [] : [{ value, host }]));
  });
}

/** `undefined` if the entry has and had no allocated address. */
function statusAfter(currentStatus: StatusFields, addresses: readonly HostAddress[]): StatusFields | undefined {
  const presentAddresses: readonly unknown[] = Array.isArray(currentStatus.addresses) ? currentStatus.addresses : [];
  if (addresses.length === 0 && !presentAddresses.some(isAllocatedAddress)) return undefined;
  const isUnchanged =
    presentAddresses.length === addresses.length &&
    presentAddresses.every(
      (presentAddress, i) =>
        isObject(presentAddress) &&
        presentAddress.value === addresses[i]!.value &&
        presentAddress.host === addresses[i]!.host,
    );
  if (isUnchanged) return undefined;
  const { addresses: _, ...otherFields } = currentStatus;
  return { ...otherFields, ...(addresses.length > 0 && { addresses }) };
}

function isAllocatedAddress(address: unknown): boolean {
  return isObject(address) && typeof address.value === 'string' && /^(240\.240\.|2001:2::)/.test(address.value);
}
