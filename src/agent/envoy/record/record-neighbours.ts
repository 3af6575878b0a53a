/** Records of other containers in the same run directory. Removes those whose container has surely exited, and leaves those that may be alive. */
import { lstatSync, readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { isOwnDirectory } from '../../../runtime/files/run-dir.ts';
import { startTimeOf } from '../base-ids/base-ids.ts';
import { removeQuietly } from '../quiet-files.ts';
import { isOfThisBoot, type OwnerLife, ownerOf } from './record-owner.ts';

/** Between two agents of a container, up to 2 s pass without a live process. Within this time a new agent starts. */
const secondLookMs = 10_000;
const mostLooked = 256;
const named = /^live-restore-(\d+)-(\d+)$/;

/** Identifies a container by its PID namespace and first process. The processes of other containers are not visible here. */
export const containerIdentity = (): string => `${pidNamespace()}-${startTimeOf(1) ?? '0'}`;

function pidNamespace(): string {
  const [, namespace = '0'] = /\[(\d+)\]/.exec(readlinkSync('/proc/self/ns/pid')) ?? [];
  return namespace;
}

export class Neighbours {
  /** Records of unknown owners: of another host, or from before a restart of this one. */
  readonly unknown: readonly string[];
  readonly #second: NodeJS.Timeout;

  /** @param own the directory of this container's record */
  constructor(runDir: string, own: string, lookAgainMs = secondLookMs) {
    const others = namesIn(runDir)
      .filter((name) => named.test(name))
      .slice(0, mostLooked)
      .map((name) => join(runDir, name))
      // Directories of other users are not trusted.
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

/**
 * Whether a directory belongs to an earlier PID namespace with this one's number: the kernel reuses the number after the last process has exited.
 */
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
