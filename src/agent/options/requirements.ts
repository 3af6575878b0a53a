/** What has to be there before anything is started: folders, shared memory, an Envoy that takes its command line. */
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { askProgram } from '../../runtime/asked-program.ts';
import { ChartpilotError, messageOf } from '../../runtime/errors.ts';
import { makeFolder } from '../../runtime/files/make-folder.ts';
import { ensureRunDir } from '../../runtime/files/run-dir.ts';
import { type EnvoyFlags, envoyArguments } from '../envoy/envoy-args.ts';
import { removeQuietly } from '../envoy/quiet-files.ts';
import { inScratchFolder, unwritable } from '../envoy/scratch-folder.ts';

export interface Requirements {
  readonly runDir: string;
  /** Folder of generated files; undefined where none is generated. */
  readonly configPath: string | undefined;
  readonly hotRestart: boolean;
  readonly sharedMemoryDir?: string;
}

/** @throws ChartpilotError FILE_UNREADABLE, FILE_UNWRITABLE, SHARED_MEMORY_UNUSABLE: each with what to do */
export function requireFolders({ runDir, configPath, hotRestart, sharedMemoryDir = '/dev/shm' }: Requirements): void {
  requireProc();
  ensureRunDir(runDir);
  inScratchFolder([{ path: runDir, flag: '--runDir' }], () => {});
  if (configPath !== undefined) requireConfigPath(resolve(configPath));
  if (hotRestart) requireSharedMemory(sharedMemoryDir);
}

function requireConfigPath(path: string): void {
  try {
    // The folder is for this user only: a bootstrap may hold what others should not read.
    makeFolder(path, 0o700);
  } catch (error) {
    throw unwritable(path, error, '--configPath');
  }
  inScratchFolder([{ path, flag: '--configPath' }], () => {});
}

/** An Envoy takes a page for each base id, and an agent has two of them. Without them Envoy ends with a backtrace. */
const sharedMemoryBytes = 2 * 4096;

function requireSharedMemory(directory: string): void {
  let folder: string | undefined;
  try {
    // Any user may write there: in a folder of its own no link of theirs is followed.
    folder = mkdtempSync(join(directory, '.chartpilot-'));
    writeFileSync(join(folder, 'probe'), Buffer.alloc(sharedMemoryBytes));
  } catch (error) {
    throw new ChartpilotError(
      'SHARED_MEMORY_UNUSABLE',
      `${directory}: ${messageOf(error).replace(/, \w+( '.*)?$/, '')}`,
      {
        hint:
          `Hot restart requires ${sharedMemoryBytes} bytes of shared memory. Mount it (Kubernetes: emptyDir with medium Memory; ` +
          'Docker: --shm-size), or set --hotRestart off.',
        cause: error,
      },
    );
  } finally {
    if (folder !== undefined) removeQuietly(folder);
  }
}

/**
 * It tells who lives and which base ids Envoys have; mkfifo needs it for the pipes to an Envoy, and bin/pilot-agent to pass
 * signals on. Without it no Envoy would ever run.
 */
function requireProc(): void {
  try {
    readFileSync('/proc/net/unix');
    readFileSync('/proc/self/stat');
  } catch (error) {
    throw new ChartpilotError('FILE_UNREADABLE', messageOf(error), {
      hint: 'Mount /proc: the agent and Envoy require it.',
      cause: error,
    });
  }
}

/** Reading flags takes Envoy a tenth of a second. */
const maxAnswerMs = 10_000;

/**
 * Lets Envoy read the command line that it will be started with, all of it: it says its hot restart version and ends, and
 * opens nothing. What it refuses now it would refuse at every try.
 *
 * @param limitMs how long Envoy may take
 * @throws ChartpilotError FLAG_INVALID with Envoy's words. No answer, or none of its own, says nothing.
 */
export async function requireFlags(binary: string, flags: EnvoyFlags, limitMs = maxAnswerMs): Promise<void> {
  const words = envoyArguments(flags, { configFile: '/none', epoch: 0, baseId: 0 });
  const { exitCode, stderr } = await askProgram(binary, [...words, '--hot-restart-version'], {
    stdin: 'ignore',
    stdout: 'ignore',
    timeout: limitMs,
  });
  const refusal = exitCode === 1 ? refusalIn(stderr) : undefined;
  if (refusal !== undefined) throw new ChartpilotError('FLAG_INVALID', `Envoy rejects its command line: ${refusal}`);
}

/** `error: invalid component specified 'foo'`; or the usage, and then `(--concurrency) -- Couldn't read argument …`. */
function refusalIn(said: string): string | undefined {
  const lines = said.split('\n');
  const error = lines.find((line) => line.startsWith('error: '));
  return error?.slice('error: '.length) ?? lines.findLast((line) => /^\(--?\S+\) -- /.test(line));
}
