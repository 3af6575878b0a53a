import { ChartpilotError } from '../../runtime/errors.ts';

/** Where a running program answers. */
export interface LiveAddress {
  /** `127.0.0.1`, `localhost` or `::1`. */
  readonly host: string;
  readonly port: number;
}

/**
 * Reads `127.0.0.1:15020`, `localhost:15020`, `[::1]:15020`, `15020`, each with or without `http://`.
 *
 * @throws ChartpilotError FLAG_INVALID, also for an address of another host: a program answers its own host only.
 */
export function parseLiveAddress(text: string): LiveAddress {
  const bare = text.replace(/^http:\/\//, '').replace(/\/$/, '');
  const [, bracketed, plain, digits] = /^(?:(?:\[([\da-f:.]+)\]|([^\s:/[\]]+)):)?(\d{1,5})$/i.exec(bare) ?? [];
  const host = bracketed ?? plain ?? '127.0.0.1';
  const port = Number(digits);
  if (digits === undefined || port < 1 || port > 65_535) {
    throw new ChartpilotError('FLAG_INVALID', `--attach ${text} is no address`, {
      hint: 'Give HOST:PORT, or the port alone: that of --statusPort of pilot-agent, of --monitoringAddr of pilot-discovery.',
    });
  }
  if (!/^(localhost|127\.0\.0\.1|::1)$/i.test(host)) {
    throw new ChartpilotError(
      'FLAG_INVALID',
      `--attach ${text} is not on this host: a program shows its trace on loopback only`,
      {
        hint: `Bring its port here: kubectl port-forward POD ${port}, or ssh -L ${port}:127.0.0.1:${port} ${host}; then --attach 127.0.0.1:${port} with its token in --token.`,
      },
    );
  }
  return { host: host.toLowerCase(), port };
}

/** As in a URL. */
export function formatLiveAddress({ host, port }: LiveAddress): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
