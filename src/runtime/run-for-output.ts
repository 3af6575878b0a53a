import { execa, type Options } from 'execa';
import { killGroupOnExit } from './process-group.ts';

/**
 * A failure is a result, not an exception. The process group of the program is killed when it exits, times out, or this process ends. execa installs
 * no signal handlers for it, because the launcher would take execa's SIGHUP handler for the agent's.
 */
export function runForOutput<const Chosen extends Options>(
  file: string,
  commandArgs: readonly string[],
  options: Chosen,
) {
  const subprocess = execa(file, commandArgs, { ...options, reject: false, detached: true, killSignal: 'SIGKILL' });
  killGroupOnExit(subprocess.nodeChildProcess);
  return subprocess;
}
