/** Removes records of containers that have certainly exited from the shared run directory, and leaves those that may be alive. */
import { lstatSync, readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { isOwnedPrivateDir } from '../../../runtime/files/run-dir.ts';
import { startTimeOf } from '../base-ids/base-ids.ts';
import { removeQuietly } from '../quiet-files.ts';
import { isFromCurrentBoot, type OwnerState, ownerStateOf } from './record-owner.ts';

/** Between two agents of a container, up to 2 s pass without a live process. */
const secondCheckMs = 10_000;
const maxRecords = 256;
const recordName = /^live-restore-(\d+)-(\d+)$/;

/** The processes of other containers are not visible here, so the PID namespace and its first process identify a container. */
export const containerIdentity = (): string => `${pidNamespace()}-${startTimeOf(1) ?? '0'}`;

function pidNamespace(): string {
  const [, namespace = '0'] = /\[(\d+)\]/.exec(readlinkSync('/proc/self/ns/pid')) ?? [];
  return namespace;
}

export class OtherRecords {
  /** Records of unknown owners: of another host, or from before a restart of this one. */
  readonly unknownOwners: readonly string[];
  readonly #secondCheckTimer: NodeJS.Timeout;

  constructor(runDir: string, ownDirectory: string, delayMs = secondCheckMs) {
    const directories = namesIn(runDir)
      .filter((name) => recordName.test(name))
      .slice(0, maxRecords)
      .map((name) => join(runDir, name))
      // Directories of other users are not trusted.
      .filter((directory) => directory !== ownDirectory && isOwnedByUser(directory));
    for (const directory of directories) if (isFromEarlierNamespace(directory)) removeQuietly(directory);
    const owners = directories
      .filter((directory) => !isFromEarlierNamespace(directory))
      .map((directory): [string, OwnerState] => [directory, ownerStateOf(directory)]);
    const directoriesInState = (state: OwnerState): string[] =>
      owners.flatMap(([directory, owner]) => (owner === state ? [directory] : []));
    this.unknownOwners = directoriesInState('unknown');
    const exitedDirectories = directoriesInState('exited');
    this.#secondCheckTimer = setTimeout(() => {
      for (const directory of exitedDirectories) if (ownerStateOf(directory) === 'exited') removeQuietly(directory);
    }, delayMs).unref();
  }

  stop(): void {
    clearTimeout(this.#secondCheckTimer);
  }
}

/** The kernel reuses the number of a PID namespace after its last process has exited. */
function isFromEarlierNamespace(directory: string): boolean {
  const [, namespace, start] = recordName.exec(directory.slice(directory.lastIndexOf('/') + 1)) ?? [];
  const ownStart = startTimeOf(1);
  return namespace === pidNamespace() && ownStart !== undefined && start !== ownStart && isFromCurrentBoot(directory);
}

function isOwnedByUser(directory: string): boolean {
  const stats = lstatSync(directory, { throwIfNoEntry: false });
  return stats !== undefined && isOwnedPrivateDir(stats);
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}
