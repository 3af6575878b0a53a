/** The control plane's name table as it is now, for the server; whatever comes in its place is told. */
import { DnsNames, type WorkloadNames } from './dns-names.ts';
import { readNameTable } from './name-table.ts';

export class DnsTables {
  readonly #workload: WorkloadNames;
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
  async take(table: Uint8Array): Promise<void> {
    this.#names = new DnsNames(readNameTable(table), this.#workload);
    this.#tell?.(this.#names);
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
