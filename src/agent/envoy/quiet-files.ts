/** Files of the agent that may be gone, unreadable or read-only by now: nobody is helped by an error. */
import { readFileSync, rmSync } from 'node:fs';

/** Empty where there is nothing to read. */
export function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

/** A file, or a folder with all that is in it. */
export function removeQuietly(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch {
    // What is left of it harms nobody.
  }
}
