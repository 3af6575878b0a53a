import { execa, type Options } from 'execa';
import { endGroupWith } from './process-group.ts';

/**
 * Starts a program that is asked something and whose failure is an answer, too. It leads a group of its own, so that what it starts ends with
 * it, also when its time is over or this process ends. execa installs no signal handlers for it: while execa handles SIGHUP, the launcher
 * would take that for the agent's own handler.
 */
export function askProgram<const Chosen extends Options>(file: string, words: readonly string[], options: Chosen) {
  const asked = execa(file, words, { ...options, reject: false, detached: true, killSignal: 'SIGKILL' });
  endGroupWith(asked.nodeChildProcess);
  return asked;
}
