/** What runs on this host, read from /proc: seen from outside, whatever the agents believe. */
import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { basename } from 'node:path';
import { isSystemError } from '../../src/runtime/errors.ts';

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

/** All processes that this user may look into. Zombies are left out: they run no more. */
export function hostProcesses(): HostProcess[] {
  return processesWhere(() => true);
}

/** It may have ended since somebody saw it. */
export function signalIfAlive(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (!isSystemError(error, 'ESRCH')) throw error;
  }
}

/** The Envoys that a test run started, whoever their parent is. Cheap enough to ask often. */
export function envoysOfRun(testRun: string): EnvoyProcess[] {
  return envoysAmong(processesWhere(isEnvoy)).filter((envoy) => envoy.testRun === testRun);
}

/** The Envoys that a process started, oldest epoch first. */
export function envoysOf(parentPid: number): EnvoyProcess[] {
  return envoysAmong(processesWhere(isEnvoy))
    .filter((envoy) => envoy.parentPid === parentPid)
    .sort((a, b) => a.epoch - b.epoch);
}

/** The Envoys in the pid namespace that this process is in, oldest epoch first: of a container, whoever of it started them. */
export function envoysBeside(pid: number): EnvoyProcess[] {
  const namespace = pidNamespaceOf(pid);
  if (namespace === undefined) return [];
  return envoysAmong(processesWhere(isEnvoy))
    .filter((envoy) => pidNamespaceOf(envoy.pid) === namespace)
    .sort((a, b) => a.epoch - b.epoch);
}

/** @returns undefined when it has ended */
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
      // It ended while we looked, or is not ours.
      return [];
    }
  });
}

function readProcess(pid: number, command: readonly string[]): HostProcess[] {
  // `pid (name) state parent …`; the name may hold spaces and parentheses.
  const [state, parent] = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
  if (state === 'Z') return [];
  const environment = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
  const testRun = environment.find((entry) => entry.startsWith(`${testRunVariable}=`))?.split('=', 2)[1];
  return [{ pid, parentPid: Number(parent), command, testRun }];
}

const isEnvoy = (command: readonly string[]): boolean => basename(command[0] ?? '') === 'envoy';

/** What an Envoy that serves nothing has in its command line: it validates a configuration, or prints a version. Base ID and epoch say nothing then. */
const isAsked = (command: readonly string[]): boolean =>
  ['validate', '--version', '--hot-restart-version'].some((word) => command.includes(word));

/** The Envoys among some processes that serve, or are about to. */
export function envoysAmong(processes: readonly HostProcess[]): EnvoyProcess[] {
  return processes
    .filter(({ command }) => isEnvoy(command) && !isAsked(command))
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
 * What a test run has left on the host: its processes, and the shared memory of its Envoys, which the kernel keeps after
 * every exit. One line each; empty when all is clean.
 *
 * @param baseIds those that Envoys of the run were seen with
 */
export function leftovers(testRun: string, baseIds: ReadonlySet<number>): string[] {
  const ours = hostProcesses().filter((process) => process.testRun === testRun);
  // Envoy multiplies its base id by ten.
  const files = [...baseIds].map((baseId) => `/dev/shm/envoy_shared_memory_${baseId * 10}`);
  return [
    ...ours.map(({ pid, command }) => `process ${pid}: ${command.join(' ').slice(0, 120)}`),
    ...files.flatMap((file) => {
      const stats = statSync(file, { throwIfNoEntry: false });
      return stats === undefined ? [] : [`file ${file}, created ${stats.birthtime.toISOString()}`];
    }),
  ];
}
