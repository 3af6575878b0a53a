/** The programs run sequentially, never through a shell. */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { ChartpilotError } from '../runtime/errors.ts';
import { runForOutput } from '../runtime/run-for-output.ts';
import { type CommandLine, commandText } from './rule-list.ts';

export interface CommandResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Limit of one program run. The wait for the iptables lock has a separate limit. */
const maxCommandMs = 30_000;
const maxLockMs = 10_000;
const firstPauseMs = 100;
const maxPauseMs = 2_000;
/** iptables exits with this code while another process has the lock. */
const lockedExitCode = 4;
/** A shell exits with this code if the program does not exist. */
const absentExitCode = 127;

/** Runs the program of the current mount namespace in the network namespace. */
export function withNetworkNamespace(networkNamespace: string | undefined, command: CommandLine): CommandLine {
  if (networkNamespace === undefined) return command;
  return { program: 'nsenter', args: [`--net=${networkNamespace}`, '--', command.program, ...command.args] };
}

/** nsenter reports a missing program by a message. */
export function isNotInstalled({ exitCode, stderr }: CommandResult): boolean {
  return exitCode === absentExitCode || /failed to execute .*: No such file/.test(stderr);
}

/** @throws ChartpilotError IPTABLES_FAILED unless the command succeeds or its error output matches `harmless` */
export async function runOrThrow(command: CommandLine, { harmless, input }: RunOptions = {}): Promise<CommandResult> {
  const commandResult = await run(command, input);
  if (commandResult.exitCode === 0 || harmless?.test(commandResult.stderr)) return commandResult;
  throw commandError(command, commandResult);
}

interface RunOptions {
  readonly harmless?: RegExp;
  readonly input?: string;
}

/** Resolves with any exit code; waits while another process has the iptables lock. */
export async function run(command: CommandLine, input?: string): Promise<CommandResult> {
  const startedAt = performance.now();
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, maxPauseMs)) {
    const commandResult = await runOnce(command, input);
    const isLocked = commandResult.exitCode === lockedExitCode && commandResult.stderr.includes('xtables lock');
    if (!isLocked || performance.now() - startedAt + pauseMs > maxLockMs) return commandResult;
    await sleep(pauseMs);
  }
}

async function runOnce({ program, args }: CommandLine, input: string | undefined): Promise<CommandResult> {
  const { exitCode, stdout, stderr, shortMessage, code } = await runForOutput(program, args, {
    timeout: maxCommandMs,
    ...(input === undefined ? { stdin: 'ignore' as const } : { input }),
  });
  if (code === 'ENOENT') return { exitCode: absentExitCode, stdout: '', stderr: `${program} not found in PATH` };
  return exitCode === undefined ? { exitCode: 1, stdout, stderr: shortMessage ?? '' } : { exitCode, stdout, stderr };
}

export function commandError(command: CommandLine, commandResult: CommandResult): ChartpilotError {
  const { exitCode, stderr } = commandResult;
  const output = stderr.trim() || 'no error output';
  return new ChartpilotError('IPTABLES_FAILED', `${commandText(command)}: exit code ${exitCode}: ${output}`, {
    hint: isNotInstalled(commandResult)
      ? 'Install it (Debian: apt-get install iptables iproute2, and nftables for --native-nftables).'
      : 'If rules are already present, remove them with `pilot-agent istio-clean-iptables`.',
  });
}

const netAdmin = 1n << 12n;

/** A container may have the capability without being root, and root may lack it. */
export function hasNetAdmin(): boolean {
  const capabilities = /^CapEff:\s*([\da-f]+)$/im.exec(readProcessStatus())?.[1] ?? '0';
  return (BigInt(`0x${capabilities}`) & netAdmin) !== 0n;
}

/** Returns an empty text without /proc, as on macOS. */
function readProcessStatus(): string {
  try {
    return readFileSync('/proc/self/status', 'utf8');
  } catch {
    return '';
  }
}

export function requireNetAdmin(): void {
  if (hasNetAdmin()) return;
  throw new ChartpilotError('IPTABLES_FAILED', `capability NET_ADMIN is missing (uid ${process.getuid?.()})`, {
    hint: 'Run as root; in a container, add the capabilities NET_ADMIN and NET_RAW. --dry-run requires none.',
  });
}
