/** `npm run chromium`, `npm run firefox`: installs the browser unless it exists on this machine. */
import { ChartpilotError, explainError } from '../../src/runtime/errors.ts';
import { installPackages } from '../harness/install-packages.ts';
import { chromiumPackages, findChromium, installCommand } from './chromium.ts';
import { findFirefox, installFirefox } from './firefox.ts';

interface Browser {
  readonly name: string;
  /** Packages of Debian and its derivatives. */
  readonly packages: readonly string[];
  /** Variable with the path of an installed browser. */
  readonly variable: string;
  /** Command for the user if the script lacks permission. */
  readonly command: string;
  find(env: NodeJS.ProcessEnv): string | undefined;
}

// Without recommended packages, an installation is 300 MB smaller.
const browsers: readonly Browser[] = [
  {
    name: 'Chromium',
    packages: chromiumPackages,
    variable: 'CHROMIUM',
    command: installCommand,
    find: findChromium,
  },
  {
    name: 'Firefox',
    packages: ['firefox-esr', 'fonts-dejavu-core'],
    variable: 'FIREFOX',
    command: installFirefox,
    find: findFirefox,
  },
];

try {
  const browser = browsers.find(({ name }) => name.toLowerCase() === process.argv[2]);
  if (browser === undefined) {
    throw new ChartpilotError('FLAG_INVALID', `${process.argv[2] ?? 'nothing'} is no browser that can be installed`, {
      hint: `Name one of: ${browsers.map(({ name }) => name.toLowerCase()).join(', ')}.`,
    });
  }
  const foundPath = browser.find(process.env);
  if (foundPath !== undefined) console.error(`${browser.name} is there: ${foundPath}`);
  else {
    const { name, packages, variable, command, find } = browser;
    const hint = `Run: ${command}\n    or name one that is there: ${variable}=/path/to/${name.toLowerCase()}`;
    installPackages({ name, packages, hint, find: () => find(process.env) });
  }
} catch (error) {
  console.error(explainError(error));
  process.exitCode = 1;
}
