/** Finds the installed Chromium for tests of the debugger's page; never downloads one. */
import { delimiter, join } from 'node:path';
import { ChartpilotError } from '../../src/runtime/errors.ts';
import { isExecutable } from '../../src/runtime/files/executable.ts';

/** The headless build is first, because it needs a third less CPU time. */
const names = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome'];

/** Packages of Debian and its derivatives. Without a font, text on a page has no width. */
export const chromiumPackages = ['chromium-headless-shell', 'fonts-dejavu-core'];

/** Command for the user if the script lacks permission. */
export const installCommand = `sudo apt-get update && sudo apt-get install -y --no-install-recommends ${chromiumPackages.join(' ')}`;

/** Returns `$CHROMIUM`, else the first of {@link names} in PATH, else `undefined`. */
export function findChromium(env: NodeJS.ProcessEnv): string | undefined {
  return findBrowser(env, 'CHROMIUM', names);
}

/** Returns the browser set in a variable, else the first of some names in PATH. @throws ChartpilotError if it cannot be executed */
export function findBrowser(
  env: NodeJS.ProcessEnv,
  variable: string,
  knownPrograms: readonly string[],
): string | undefined {
  const { [variable]: namedPath, PATH = '' } = env;
  if (namedPath !== undefined && namedPath !== '') {
    if (isExecutable(namedPath)) return namedPath;
    throw new ChartpilotError('FLAG_INVALID', `${variable}=${namedPath} is no program that can be run`, {
      hint: `Name a browser's binary, or unset ${variable} to take the one in PATH.`,
    });
  }
  const pathFolders = PATH.split(delimiter).filter((folder) => folder !== '');
  return knownPrograms.flatMap((name) => pathFolders.map((folder) => join(folder, name))).find(isExecutable);
}

/** Like {@link findChromium}, but a test without Chromium fails instead of being skipped. */
export function requireChromium(env: NodeJS.ProcessEnv = process.env): string {
  const chromiumPath = findChromium(env);
  if (chromiumPath !== undefined) return chromiumPath;
  throw new ChartpilotError('FILE_UNREADABLE', 'no Chromium: not in $CHROMIUM, and not in PATH', {
    hint: `Run: npm run chromium (or: ${installCommand})`,
  });
}
