/** Unusual requests: methods, targets, hosts, headers and versions at the limits of what Envoy accepts. */
import type { HttpQuestion } from '../../src/networking/explain/question.ts';
import type { Draw } from '../random-config/draw.ts';

/** A value with commas is sent as several header lines with this name. */
export const repeatedHeader = 'x-repeated';

const methods = ['PURGE', 'PROPFIND', 'HEAD', 'PUT', 'PATCH', 'TRACE', 'OPTIONS'] as const;
const pathParts = [
  '/./',
  '/../',
  '//',
  '/%2e%2e/',
  '/%2E/',
  '/%41',
  '/%7euser',
  '/%2F',
  '/%5c',
  '/a%20b',
  '/;v=1',
  '/%',
] as const;

type Change = (http: HttpQuestion, draw: Draw) => Partial<HttpQuestion>;

const changes: readonly Change[] = [
  (_, draw) => ({ method: draw.pick(methods) }),
  (_, draw) => ({ method: draw.pick(['get', 'FOO']) }),
  ({ version, authority = '' }, draw) => ({ method: 'CONNECT', ...connectTarget(version, authority, draw) }),
  ({ path }, draw) => {
    const [pathname = '', ...query] = path.split('?');
    const at = draw.int(0, pathname.length);
    const changedPath = `${pathname.slice(0, at)}${draw.pick(pathParts)}${pathname.slice(at)}`;
    return { path: [changedPath.startsWith('/') ? changedPath : `/${changedPath}`, ...query].join('?') };
  },
  ({ path }, draw) => ({ path: `${path}${'a'.repeat(draw.pick([300, 3_000, 30_000, 70_000]))}` }),
  ({ headers }, draw) => ({ headers: { ...headers, 'x-large': 'a'.repeat(draw.pick([30_000, 61_500, 90_000])) } }),
  ({ authority = '' }, draw) => ({
    authority: draw.pick([authority.toUpperCase(), `${authority.replace(/:\d+$/, '')}:8080`, `${authority}.`]),
  }),
  (_, draw) => ({
    authority: draw.pick(['[2001:db8::1]', '[2001:db8::1]:8080', '192.0.2.1', '192.0.2.1:80', '1.2.3']),
  }),
  ({ version }) => (version === 'HTTP/1.1' ? { authority: '' } : {}),
  ({ version, ...rest }) => (version === 'HTTP/1.1' ? { ...rest, authority: undefined } : {}),
  ({ path, authority = '', version }, draw) =>
    version === 'HTTP/1.1' ? { path: `http://${draw.pick([authority, 'other.test', '[2001:db8::1]:80'])}${path}` } : {},
  ({ headers }, draw) => ({
    headers: {
      ...headers,
      [repeatedHeader]: draw.pick(['a,b', 'a,a', ',']),
      'x-other': draw.pick(['', 'é', 'a\tb', 'x'.repeat(5_000)]),
    },
  }),
  ({ headers, version }) =>
    version === 'HTTP/1.1'
      ? { headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, ` ${value} `])) }
      : {},
  ({ version }) => (version === 'HTTP/1.1' ? { version: 'HTTP/1.0' } : {}),
];

/**
 * Target of a CONNECT request: `HOST:PORT`, or a path, which every server rejects. In HTTP/2 the target is the
 * authority, and there is no path.
 */
function connectTarget(version: HttpQuestion['version'], authority: string, draw: Draw): Partial<HttpQuestion> {
  const target = `${authority.replace(/:\d+$/, '')}:443`;
  if (version === 'HTTP/2') return { authority: target, path: '' };
  return draw.chance(0.7) ? { path: target } : {};
}

export function withUnusualProperty(http: HttpQuestion, draw: Draw): HttpQuestion {
  return { ...http, ...draw.pick(changes)(http, draw) };
}
