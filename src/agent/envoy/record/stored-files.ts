/**
 * Data that only the agent receives from the control plane. It is stored beside the record, so that the next agent of this container starts with it.
 * A file that cannot be replaced is removed.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { replaceFile } from '../../../runtime/files/replace-file.ts';
import { removeQuietly } from '../quiet-files.ts';

export type StoredName = 'name-table' | 'trust-bundle' | 'bootstrap-patches';

export class StoredFiles {
  readonly #directory: string;
  readonly #pendingWrites = new Map<StoredName, Uint8Array>();
  #pendingWrite: Promise<void> | undefined;

  constructor(directory: string) {
    this.#directory = directory;
  }

  read(name: StoredName): Uint8Array | undefined {
    try {
      return readFileSync(this.#fileOf(name));
    } catch {
      return undefined;
    }
  }

  /** Never throws. */
  store(name: StoredName, bytes: Uint8Array): void {
    this.#pendingWrites.set(name, bytes);
    this.#pendingWrite ??= this.#write().finally(() => {
      this.#pendingWrite = undefined;
    });
  }

  async waitUntilSettled(): Promise<void> {
    await this.#pendingWrite;
  }

  async #write(): Promise<void> {
    for (let nextWrite = this.#takeNextWrite(); nextWrite !== undefined; nextWrite = this.#takeNextWrite()) {
      const [name, bytes] = nextWrite;
      const file = this.#fileOf(name);
      try {
        await replaceFile(file, bytes);
      } catch {
        removeQuietly(file);
      }
    }
  }

  #takeNextWrite(): [StoredName, Uint8Array] | undefined {
    const [firstWrite] = this.#pendingWrites;
    if (firstWrite !== undefined) this.#pendingWrites.delete(firstWrite[0]);
    return firstWrite;
  }

  #fileOf(name: StoredName): string {
    return join(this.#directory, name);
  }
}
