/**
 * Kills the processes of a test run when the run itself is killed (SIGKILL, out of memory). One shell per run reads a list of process groups from a
 * pipe; the run has the other end, so the pipe closes however the run ends. A child that is started with `detached` leads a process group, so its
 * children are killed, too.
 */
import { type ChildProcess, spawn } from 'node:child_process';

/** Lines of `+ PID` and `- PID`; at the end of the input, all remaining groups are killed. */
const script = `
trap '' HUP INT TERM
left=' '
while read -r sign pid; do
  case $sign in
    +) left="$left$pid " ;;
    -) left="\${left%% $pid *} \${left#* $pid }" ;;
  esac
done
for pid in $left; do kill -9 "-$pid" 2>/dev/null; done
`;

let shell: ChildProcess | undefined;

/** @param child a process that was started with `detached` */
export function endWithRunner(child: ChildProcess): void {
  const { pid } = child;
  if (pid === undefined) return;
  const input = runningShell().stdin!;
  input.write(`+ ${pid}\n`);
  child.once('exit', () => input.write(`- ${pid}\n`));
}

function runningShell(): ChildProcess {
  if (shell === undefined) {
    // A worker of a killed test run would continue, although no process reads its results.
    if (process.connected) process.once('disconnect', () => process.kill(process.pid, 'SIGKILL'));
    shell = spawn('/bin/sh', ['-c', script], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
    // The run neither waits for the shell nor fails with it.
    shell.unref();
    const input = shell.stdin!;
    input.on('error', () => {});
    if ('unref' in input) (input as unknown as { unref(): void }).unref();
  }
  return shell;
}
