/** The control plane's name table as it is now, for the server; whatever comes in its place is told. */

import { DnsNames, type WorkloadNames } from '../../runtime/dns/dns-names.ts';
import { readingNameTable } from '../../runtime/dns/name-table.ts';
import { OneByOne, type Steps, Turns } from '../../runtime/turns.ts';

export class DnsTables {
  readonly #workload: WorkloadNames;
  readonly #reading = new OneByOne();
  #names: DnsNames | undefined;
  #tell: ((names: DnsNames) => void) | undefined;

  constructor(workload: WorkloadNames) {
    this.#workload = workload;
  }

  /** Undefined before the first table. */
  get names(): DnsNames | undefined {
    return this.#names;
  }

  /** Takes a `NameTable` as it came. Rejects one that cannot be read: the one before stays. */
  take(table: Uint8Array): Promise<void> {
    return this.#reading.do(async () => {
      this.#names = await new Turns().through(this.#namesIn(table));
      this.#tell?.(this.#names);
    });
  }

  *#namesIn(table: Uint8Array): Steps<DnsNames> {
    return yield* DnsNames.of(yield* readingNameTable(table), this.#workload);
  }

  /** Tells of the table that is there, and of each one that comes. @returns ends it */
  follow(tell: (names: DnsNames) => void): () => void {
    this.#tell = tell;
    if (this.#names !== undefined) tell(this.#names);
    return () => {
      this.#tell = undefined;
    };
  }
}
