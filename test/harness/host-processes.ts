/** What runs on this host, read from /proc: seen from outside, whatever the agents believe. */
import { readdirSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';

export interface HostProcess {
  readonly pid: number;
  readonly parentPid: number;
  readonly command: readonly string[];
  /** The mark of the harness that it, or one of its ancestors, was started with. */
  readonly testRun: string | undefined;
}

export interface EnvoyProcess extends HostProcess {
  readonly baseId: number;
  readonly epoch: number;
}

/** The variable that marks everything a harness starts. */
export const testRunVariable = 'CHARTPILOT_TEST_RUN';

const sharedMemoryPrefix = 'envoy_shared_memory_';

/** All processes that this user may look into. Zombies are left out: they run no more. */
export function hostProcesses(): HostProcess[] {
  return readdirSync('/proc').flatMap((name) => {
    const pid = Number(name);
    if (!Number.isInteger(pid)) return [];
    try {
      return readProcess(pid);
    } catch {
      // It ended while we looked, or is not ours.
      return [];
    }
  });
}

function readProcess(pid: number): HostProcess[] {
  // `pid (name) state parent …`; the name may hold spaces and parentheses.
  const [state, parent] = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
  if (state === 'Z') return [];
  const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1);
  const environment = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
  const testRun = environment.find((entry) => entry.startsWith(`${testRunVariable}=`))?.split('=', 2)[1];
  return [{ pid, parentPid: Number(parent), command, testRun }];
}

/** The Envoys among some processes; not those that only validate a configuration. */
export function envoysAmong(processes: readonly HostProcess[]): EnvoyProcess[] {
  return processes
    .filter(({ command }) => basename(command[0] ?? '') === 'envoy' && !command.includes('validate'))
    .map((process) => ({
      ...process,
      baseId: numberAfter(process.command, '--base-id'),
      epoch: numberAfter(process.command, '--restart-epoch'),
    }));
}

function numberAfter(command: readonly string[], flag: string): number {
  const index = command.indexOf(flag);
  return index < 0 ? 0 : Number(command[index + 1]);
}

/** The Envoys that a process started, oldest epoch first. */
export function envoysOf(parentPid: number): EnvoyProcess[] {
  return envoysAmong(hostProcesses())
    .filter((envoy) => envoy.parentPid === parentPid)
    .sort((a, b) => a.epoch - b.epoch);
}

/** Envoy's shared-memory files: one for each base id that was ever used, and kept after every exit. */
export function sharedMemoryFiles(): string[] {
  try {
    return readdirSync('/dev/shm').filter((name) => name.startsWith(sharedMemoryPrefix));
  } catch {
    return [];
  }
}

/**
 * What a test run has left on the host: its processes, and shared-memory files that were not there before and that no
 * other living Envoy uses. One line each; empty when all is clean.
 */
export function leftovers(testRun: string, filesBefore: readonly string[]): string[] {
  const processes = hostProcesses();
  const ours = processes.filter((process) => process.testRun === testRun);
  const foreign = envoysAmong(processes.filter((process) => process.testRun !== testRun));
  const inUse = new Set(foreign.map(({ baseId }) => `${sharedMemoryPrefix}${baseId * 10}`));
  return [
    ...ours.map(({ pid, command }) => `process ${pid}: ${command.join(' ').slice(0, 120)}`),
    ...sharedMemoryFiles()
      .filter((file) => !filesBefore.includes(file) && !inUse.has(file))
      .map((file) => `file /dev/shm/${file}`),
  ];
}
