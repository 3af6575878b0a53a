import { ChartpilotError } from '../runtime/errors.ts';

export interface ListenAddress {
  /** Empty means all interfaces. */
  readonly host: string;
  /** 0 selects any free port. */
  readonly port: number;
}

/**
 * `undefined` for an empty text, which opens no port.
 *
 * @throws ChartpilotError FLAG_INVALID
 */
export function parseListenAddress(flag: string, text: string): ListenAddress | undefined {
  if (text === '') return undefined;
  const match = /^(?:\[([^\]]+)\]|([^:]*)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port > 65_535) {
    throw new ChartpilotError('FLAG_INVALID', `${flag}: must be HOST:PORT or :PORT, got ${JSON.stringify(text)}`, {
      hint: `use ${flag} HOST:PORT, ${flag} :PORT for all interfaces, or ${flag}= to disable the port`,
    });
  }
  return { host: match[1] ?? match[2] ?? '', port };
}

export function formatAddress({ host, port }: ListenAddress): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}
