import type { CommandOutput } from '../command-output.ts';
import { openInBrowser } from './browser.ts';
import { type PageServerOptions, startPageServer } from './page-server.ts';

export interface ServePageOptions extends PageServerOptions {
  readonly open?: boolean;
  /** The server is closed when this resolves (default: on Ctrl-C). */
  readonly enough?: Promise<unknown>;
}

/**
 * The address of the page is the only line on standard output.
 *
 * @throws ChartpilotError as {@link startPageServer}
 */
export async function servePage(options: ServePageOptions, { out, error }: CommandOutput): Promise<void> {
  const server = await startPageServer(options);
  out(`${server.address}\n`);
  error(
    'Press Ctrl-C to stop. The address contains a key that gives any user of this host access to the traces; links copied from the page do not.\n',
  );
  if (options.open === true && !openInBrowser(server.openingAddress())) {
    error('xdg-open not found in PATH; open the address in a browser on this host\n');
  }
  await (options.enough ?? awaitSignal());
  await server.close();
}

function awaitSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => resolve());
  });
}
