import { spawn } from 'node:child_process';
import { findExecutable } from '../../runtime/files/executable.ts';

/** @returns whether a program was found that opens an address */
export function openInBrowser(address: string, env: NodeJS.ProcessEnv = process.env): boolean {
  const opener = process.platform === 'darwin' ? 'open' : 'xdg-open';
  const program = findExecutable(opener, env);
  if (program === undefined) return false;
  const child = spawn(program, [address], { env, stdio: 'ignore', detached: true });
  child.on('error', () => {});
  child.unref();
  return true;
}
