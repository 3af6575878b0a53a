import { isIP } from 'node:net';

export interface ResolvConf {
  /** Addresses in file order; an IPv6 address may have a zone (`fe80::1%eth0`). */
  readonly servers: readonly string[];
  /** Domains of the last `search` or `domain` line, in lower case without a trailing dot. */
  readonly search: readonly string[];
}

/** Invalid lines are ignored, as the resolver of libc does. */
export function parseResolvConf(text: string): ResolvConf {
  const servers: string[] = [];
  let search: string[] = [];
  for (const line of text.split('\n')) {
    const [keyword, ...values] = line
      .replace(/[#;].*$/, '')
      .trim()
      .split(/\s+/);
    if (keyword === 'nameserver' && isIP(values[0] ?? '') !== 0) servers.push(values[0]!);
    else if (keyword === 'search' || keyword === 'domain') {
      search = values.map((domain) => domain.toLowerCase().replace(/\.$/, '')).filter((domain) => domain !== '');
    }
  }
  return { servers, search };
}
