/**
 * What the control plane has told this agent itself, and Envoy does not ask for again: files beside the record, as they came, for the next
 * agent of this container to begin with. Whole or not there: an old one is worse than none.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { replaceFile } from '../../../runtime/files/replace-file.ts';
import { removeQuietly } from '../quiet-files.ts';

export type ToldName = 'name-table' | 'trust-bundle' | 'bootstrap-patches';

export class ToldFiles {
  readonly #directory: string;
  /** What is to be written next; one write at a time. */
  readonly #due = new Map<ToldName, Uint8Array>();
  #writing: Promise<void> | undefined;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Undefined: it is not there. */
  read(name: ToldName): Uint8Array | undefined {
    try {
      return readFileSync(this.#fileOf(name));
    } catch {
      return undefined;
    }
  }

  /** Takes the place of what was told before. Never throws. */
  keep(name: ToldName, bytes: Uint8Array): void {
    this.#due.set(name, bytes);
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined;
    });
  }

  /** Everything that was to be kept is written, or could not be. */
  async settled(): Promise<void> {
    await this.#writing;
  }

  async #write(): Promise<void> {
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      const [name, bytes] = next;
      const file = this.#fileOf(name);
      try {
        await replaceFile(file, bytes);
      } catch {
        removeQuietly(file);
      }
    }
  }

  #next(): [ToldName, Uint8Array] | undefined {
    const [first] = this.#due;
    if (first !== undefined) this.#due.delete(first[0]);
    return first;
  }

  #fileOf(name: ToldName): string {
    return join(this.#directory, name);
  }
}
