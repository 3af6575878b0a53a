/**
 * Records that other containers have left in the same run directory: removed where their owner is surely gone, and never touched where it may
 * live.
 */
import { lstatSync, readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { isOwnDirectory } from '../../../runtime/files/run-dir.ts';
import { startTimeOf } from '../base-ids/base-ids.ts';
import { removeQuietly } from '../quiet-files.ts';
import { isOfThisBoot, type OwnerLife, ownerOf } from './record-owner.ts';

/** Between two agents of a container nobody may live for 2 s; one that is about to begin has the time until then. */
const secondLookMs = 10_000;
const mostLooked = 256;
const named = /^live-restore-(\d+)-(\d+)$/;

/** Tells containers apart, by the first process and its pid namespace: no process of another one can be found here. */
export const containerIdentity = (): string => `${pidNamespace()}-${startTimeOf(1) ?? '0'}`;

function pidNamespace(): string {
  const [, namespace = '0'] = /\[(\d+)\]/.exec(readlinkSync('/proc/self/ns/pid')) ?? [];
  return namespace;
}

export class Neighbours {
  /** Nobody here can tell whether their owners live: another host's, or of another start of this one. */
  readonly unknown: readonly string[];
  readonly #second: NodeJS.Timeout;

  /** @param own the directory of this container's record */
  constructor(runDir: string, own: string, lookAgainMs = secondLookMs) {
    const others = namesIn(runDir)
      .filter((name) => named.test(name))
      .slice(0, mostLooked)
      .map((name) => join(runDir, name))
      // Those of other users say nothing that counts here.
      .filter((directory) => directory !== own && isOfThisUser(directory));
    for (const directory of others) if (isForerunner(directory)) removeQuietly(directory);
    const owners = others
      .filter((directory) => !isForerunner(directory))
      .map((directory): [string, OwnerLife] => [directory, ownerOf(directory)]);
    const ofLife = (life: OwnerLife): string[] => owners.flatMap(([directory, of]) => (of === life ? [directory] : []));
    this.unknown = ofLife('unknown');
    const gone = ofLife('gone');
    this.#second = setTimeout(() => {
      for (const directory of gone) if (ownerOf(directory) === 'gone') removeQuietly(directory);
    }, lookAgainMs).unref();
  }

  stop(): void {
    clearTimeout(this.#second);
  }
}

/** Whether a directory is of a namespace that had this one's number before: the kernel gives the number away again when the last process is gone. */
function isForerunner(directory: string): boolean {
  const [, namespace, start] = named.exec(directory.slice(directory.lastIndexOf('/') + 1)) ?? [];
  const ownStart = startTimeOf(1);
  return namespace === pidNamespace() && ownStart !== undefined && start !== ownStart && isOfThisBoot(directory);
}

function isOfThisUser(directory: string): boolean {
  const stats = lstatSync(directory, { throwIfNoEntry: false });
  return stats !== undefined && isOwnDirectory(stats);
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}
