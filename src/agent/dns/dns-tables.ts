import { DnsNames, type WorkloadNames } from '../../runtime/dns/dns-names.ts';
import { readingNameTable } from '../../runtime/dns/name-table.ts';
import { SerialQueue, type Steps, Turns } from '../../runtime/turns.ts';

export class DnsTables {
  readonly #workload: WorkloadNames;
  readonly #reads = new SerialQueue();
  #names: DnsNames | undefined;
  #notify: ((names: DnsNames) => void) | undefined;

  constructor(workload: WorkloadNames) {
    this.#workload = workload;
  }

  get names(): DnsNames | undefined {
    return this.#names;
  }

  /** Rejects an invalid table and keeps the previous one. */
  take(table: Uint8Array): Promise<void> {
    return this.#reads.do(async () => {
      this.#names = await new Turns().through(this.#namesIn(table));
      this.#notify?.(this.#names);
    });
  }

  *#namesIn(table: Uint8Array): Steps<DnsNames> {
    return yield* DnsNames.of(yield* readingNameTable(table), this.#workload);
  }

  subscribe(notify: (names: DnsNames) => void): () => void {
    this.#notify = notify;
    if (this.#names !== undefined) notify(this.#names);
    return () => {
      this.#notify = undefined;
    };
  }
}
