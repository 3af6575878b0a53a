/** Processes of this host, read from /proc, independent of the agents' state. */
import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { basename } from 'node:path';
import { isSystemError } from '../../src/runtime/errors.ts';

export interface HostProcess {
  readonly pid: number;
  readonly parentPid: number;
  readonly command: readonly string[];
  /** The harness mark in its environment, or in that of one of its ancestors. */
  readonly testRun: string | undefined;
}

export interface EnvoyProcess extends HostProcess {
  readonly baseId: number;
  readonly epoch: number;
}

/** The environment variable that marks every process of a harness. */
export const testRunVariable = 'CHARTPILOT_TEST_RUN';

/** All processes that this user may inspect, without zombies. */
export function hostProcesses(): HostProcess[] {
  return processesWhere(() => true);
}

/** Sends a signal to a process, which may have exited since it was found. */
export function signalIfAlive(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (!isSystemError(error, 'ESRCH')) throw error;
  }
}

/** The Envoys that a test run started, whatever their parent is. Cheap enough to poll. */
export function envoysOfRun(testRun: string): EnvoyProcess[] {
  return envoysAmong(processesWhere(isEnvoy)).filter((envoy) => envoy.testRun === testRun);
}

/** The Envoys that a process started, oldest epoch first. */
export function envoysOf(parentPid: number): EnvoyProcess[] {
  return envoysAmong(processesWhere(isEnvoy))
    .filter((envoy) => envoy.parentPid === parentPid)
    .sort((a, b) => a.epoch - b.epoch);
}

/** The Envoys in the PID namespace of a process, oldest epoch first: all of a container. */
export function envoysInNamespaceOf(pid: number): EnvoyProcess[] {
  const namespace = pidNamespaceOf(pid);
  if (namespace === undefined) return [];
  return envoysAmong(processesWhere(isEnvoy))
    .filter((envoy) => pidNamespaceOf(envoy.pid) === namespace)
    .sort((a, b) => a.epoch - b.epoch);
}

/** @returns `undefined` if it has exited */
function pidNamespaceOf(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`);
  } catch {
    return undefined;
  }
}

function processesWhere(interesting: (command: readonly string[]) => boolean): HostProcess[] {
  return readdirSync('/proc').flatMap((name) => {
    const pid = Number(name);
    if (!Number.isInteger(pid)) return [];
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1);
      return interesting(command) ? readProcess(pid, command) : [];
    } catch {
      // The process exited during the check, or belongs to another user.
      return [];
    }
  });
}

function readProcess(pid: number, command: readonly string[]): HostProcess[] {
  // The format is `pid (name) state parent …`; the name may contain spaces and parentheses.
  const [state, parent] = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
  if (state === 'Z') return [];
  const environment = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
  const testRun = environment.find((entry) => entry.startsWith(`${testRunVariable}=`))?.split('=', 2)[1];
  return [{ pid, parentPid: Number(parent), command, testRun }];
}

const isEnvoy = (command: readonly string[]): boolean => basename(command[0] ?? '') === 'envoy';

/** Whether the command line is of an Envoy that only validates a configuration or prints a version. Its base ID and epoch are meaningless. */
const isNonServing = (command: readonly string[]): boolean =>
  ['validate', '--version', '--hot-restart-version'].some((nonServingFlag) => command.includes(nonServingFlag));

/** Filters processes for Envoys that serve or are about to. */
export function envoysAmong(processes: readonly HostProcess[]): EnvoyProcess[] {
  return processes
    .filter(({ command }) => isEnvoy(command) && !isNonServing(command))
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

/**
 * Finds leftovers of a test run on the host: its processes, and the shared memory of its Envoys, which outlives them. One line each.
 * @param baseIds base IDs of the run's Envoys
 */
export function leftovers(testRun: string, baseIds: ReadonlySet<number>): string[] {
  const ownProcesses = hostProcesses().filter((process) => process.testRun === testRun);
  // Envoy multiplies its base ID by ten.
  const files = [...baseIds].map((baseId) => `/dev/shm/envoy_shared_memory_${baseId * 10}`);
  return [
    ...ownProcesses.map(({ pid, command }) => `process ${pid}: ${command.join(' ').slice(0, 120)}`),
    ...files.flatMap((file) => {
      const stats = statSync(file, { throwIfNoEntry: false });
      return stats === undefined ? [] : [`file ${file}, created ${stats.birthtime.toISOString()}`];
    }),
  ];
}
