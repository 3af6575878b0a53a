import type { CommandOutput } from '../command-output.ts';
import { openInBrowser } from './browser.ts';
import { type PageServerOptions, startPageServer } from './page-server.ts';

export interface ServePageOptions extends PageServerOptions {
  /** Open it in the person's browser too. */
  readonly open?: boolean;
  /** Resolves when the person has seen enough. Ctrl-C unless given. */
  readonly enough?: Promise<unknown>;
}

/**
 * Serves the page and prints its address, the only line on standard output, until the person ends it.
 *
 * @throws ChartpilotError as {@link startPageServer}.
 */
export async function servePage(options: ServePageOptions, { out, error }: CommandOutput): Promise<void> {
  const server = await startPageServer(options);
  out(`${server.address}\n`);
  error(
    'Ctrl-C ends it. The address is a key: whoever on this host has it sees the traces. Links that are copied from the page hold none.\n',
  );
  if (options.open === true && !openInBrowser(server.openingAddress())) {
    error('no xdg-open in PATH: open the address in a browser of this host\n');
  }
  await (options.enough ?? interrupted());
  await server.close();
}

function interrupted(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => resolve());
  });
}
