/** The Chromium that the tests of the debugger's page run in: the machine's own, never a downloaded one. */
import { delimiter, join } from 'node:path';
import { ChartpilotError } from '../../src/runtime/errors.ts';
import { isExecutable } from '../../src/runtime/files/executable.ts';

/** The one without a window first: it costs a third less, as nothing draws tabs and menus that nobody sees. */
const names = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome'];

/** Of Debian and its kin. Without a font a page's texts have no width. */
export const chromiumPackages = ['chromium-headless-shell', 'fonts-dejavu-core'];

/** What a person runs where we may not. */
export const installCommand = `sudo apt-get update && sudo apt-get install -y --no-install-recommends ${chromiumPackages.join(' ')}`;

/** `$CHROMIUM`, or the first of {@link names} in PATH; undefined: there is none. */
export function findChromium(env: NodeJS.ProcessEnv): string | undefined {
  return findBrowser(env, 'CHROMIUM', names);
}

/** The one that a variable names, or the first of some names in PATH. @throws ChartpilotError when it cannot be run */
export function findBrowser(env: NodeJS.ProcessEnv, variable: string, known: readonly string[]): string | undefined {
  const { [variable]: named, PATH = '' } = env;
  if (named !== undefined && named !== '') {
    if (isExecutable(named)) return named;
    throw new ChartpilotError('FLAG_INVALID', `${variable}=${named} is no program that can be run`, {
      hint: `Name a browser's binary, or unset ${variable} to take the one in PATH.`,
    });
  }
  const places = PATH.split(delimiter).filter((folder) => folder !== '');
  return known.flatMap((name) => places.map((folder) => join(folder, name))).find(isExecutable);
}

/** The same, for a test: one that finds no Chromium fails, it is not skipped. */
export function requireChromium(env: NodeJS.ProcessEnv = process.env): string {
  const found = findChromium(env);
  if (found !== undefined) return found;
  throw new ChartpilotError('FILE_UNREADABLE', 'no Chromium: not in $CHROMIUM, and not in PATH', {
    hint: `Run: npm run chromium (or: ${installCommand})`,
  });
}
