/** Another user of this host: an attacker with only a shell. Tests that use it run as root. */
import { spawn } from 'node:child_process';
import { execa } from 'execa';
import { onTestFinished } from 'vitest';

/** The user `nobody`. */
export const otherUid = 65_534;

/**
 * Runs a shell script as the other user, without this process's environment.
 * @returns its output on both streams
 */
export async function asOtherUser(script: string): Promise<string> {
  const { all } = await execa('/bin/sh', ['-c', script], { ...otherUser, extendEnv: false, reject: false, all: true });
  return all;
}

/** Starts a Python program as the other user; it is killed after the test. Resolves when it has printed its first line. */
export async function programOfOtherUser(script: string): Promise<{ firstLine: string; output: () => string }> {
  const child = spawn('python3', ['-I', '-u', '-c', script], { ...otherUser, stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  let output = '';
  const firstLine = await new Promise<string>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', () => reject(new Error(`the program of the other user ended: ${output}`)));
    child.stdout!.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      if (output.includes('\n')) resolve(output.split('\n', 1)[0]!);
    });
  });
  return { firstLine, output: () => output };
}

const otherUser = {
  uid: otherUid,
  gid: otherUid,
  cwd: '/',
  env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' },
};
