import { ChartpilotError } from '../../runtime/errors.ts';

export interface LiveAddress {
  /** `127.0.0.1`, `localhost` or `::1`. */
  readonly host: string;
  readonly port: number;
}

/**
 * Parses `127.0.0.1:15020`, `localhost:15020`, `[::1]:15020`, `15020`, each with or without `http://`.
 *
 * @throws ChartpilotError FLAG_INVALID, also for another host, because a program only responds to clients on its own host
 */
export function parseLiveAddress(text: string): LiveAddress {
  const hostAndPort = text.replace(/^http:\/\//, '').replace(/\/$/, '');
  const [, bracketedAddress, plainAddress, digits] =
    /^(?:(?:\[([\da-f:.]+)\]|([^\s:/[\]]+)):)?(\d{1,5})$/i.exec(hostAndPort) ?? [];
  const host = bracketedAddress ?? plainAddress ?? '127.0.0.1';
  const port = Number(digits);
  if (digits === undefined || port < 1 || port > 65_535) {
    throw new ChartpilotError('FLAG_INVALID', `--attach: must be HOST:PORT or PORT, got ${text}`, {
      hint: 'use the port of --statusPort (pilot-agent) or --monitoringAddr (pilot-discovery)',
      fields: { path: '--attach', expected: 'HOST:PORT or PORT', got: text },
    });
  }
  if (!/^(localhost|127\.0\.0\.1|::1)$/i.test(host)) {
    throw new ChartpilotError(
      'FLAG_INVALID',
      `--attach: must be a loopback address, got ${text}; programs serve traces on loopback only`,
      {
        hint: `forward the port with kubectl port-forward POD ${port}, or ssh -L ${port}:127.0.0.1:${port} ${host}; then use --attach 127.0.0.1:${port} and --token`,
        fields: { path: '--attach', expected: 'a loopback address', got: text },
      },
    );
  }
  return { host: host.toLowerCase(), port };
}

export function formatLiveAddress({ host, port }: LiveAddress): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
