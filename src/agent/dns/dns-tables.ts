import { DnsNames, type WorkloadNames } from '../../runtime/dns/dns-names.ts';
import { readNameTableInSteps } from '../../runtime/dns/name-table.ts';
import { SerialQueue, type Steps, Turns } from '../../runtime/turns.ts';

export class DnsTables {
  readonly #workload: WorkloadNames;
  readonly #readQueue = new SerialQueue();
  #names: DnsNames | undefined;
  #notify: ((names: DnsNames) => void) | undefined;

  constructor(workload: WorkloadNames) {
    this.#workload = workload;
  }

  get names(): DnsNames | undefined {
    return this.#names;
  }

  /** Rejects if the table is invalid, and keeps the previous one. */
  load(table: Uint8Array): Promise<void> {
    return this.#readQueue.run(async () => {
      this.#names = await new Turns().runSteps(this.#readNames(table));
      this.#notify?.(this.#names);
    });
  }

  *#readNames(table: Uint8Array): Steps<DnsNames> {
    return yield* DnsNames.of(yield* readNameTableInSteps(table), this.#workload);
  }

  subscribe(notify: (names: DnsNames) => void): () => void {
    this.#notify = notify;
    if (this.#names !== undefined) notify(this.#names);
    return () => {
      this.#notify = undefined;
    };
  }
}
