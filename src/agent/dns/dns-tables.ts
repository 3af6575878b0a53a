/** The control plane's name table as it is now, for the server; whatever comes in its place is told. */
import { fromBinary } from '@bufbuild/protobuf';
import { NameTableSchema } from '../../gen/istio/networking/nds/v1/nds_pb.ts';
import { DnsNames, type WorkloadNames } from './dns-names.ts';

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
    this.#names = new DnsNames(fromBinary(NameTableSchema, table), this.#workload);
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
