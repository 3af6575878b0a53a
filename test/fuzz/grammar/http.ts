/** HTTP/1 requests: mostly well-formed, with odd parts. */
import type { Draw } from '../../random-config/draw.ts';
import { oddText, randomText } from './breaking-words.ts';
import { mutatedBytes, randomBytes } from './bytes.ts';

const methods = [
  'GET',
  'HEAD',
  'PUT',
  'DELETE',
  'OPTIONS',
  'PATCH',
  'TRACE',
  'CONNECT',
  'PRI',
  'get',
  '',
  'X'.repeat(300),
];
const versions = ['HTTP/1.1', 'HTTP/1.0', 'HTTP/0.9', 'HTTP/2.0', 'HTTP/1.1 ', 'HTPP/1.1', ''];
const headerNames = [
  'Host',
  'Content-Length',
  'Transfer-Encoding',
  'Connection',
  'Upgrade',
  'Expect',
  'Accept',
  'Authorization',
  'Origin',
  'Cookie',
  'Range',
  'Content-Type',
  'X-Forwarded-For',
  '__proto__',
  'Sec-WebSocket-Key',
];
const headerValues = [
  '127.0.0.1',
  '0',
  '-1',
  '5',
  '18446744073709551616',
  'chunked',
  'close',
  'keep-alive',
  'upgrade',
  'websocket',
  'h2c',
  '100-continue',
  '*/*',
  'Bearer x',
  'null',
];

export interface HttpGrammar {
  /** Served paths. */
  readonly paths: readonly string[];
  /** Methods in addition to safe ones. */
  readonly methods?: readonly string[];
}

export function httpRequest(draw: Draw, grammar: HttpGrammar): Buffer {
  if (draw.chance(0.08)) return randomBytes(draw, draw.int(1, 400));
  const requests = draw.list(1, draw.chance(0.1) ? 8 : 1, () => oneRequest(draw, grammar));
  const bytes = Buffer.from(requests.join(''), 'latin1');
  return draw.chance(0.2) ? mutatedBytes(draw, bytes) : bytes;
}

function oneRequest(draw: Draw, { paths, methods: extraMethods = [] }: HttpGrammar): string {
  const end = draw.chance(0.95) ? '\r\n' : draw.pick(['\n', '\r', '']);
  const method = draw.chance(0.6) ? 'GET' : draw.pick([...methods, 'POST', ...extraMethods]);
  const headers = draw.list(0, draw.chance(0.02) ? 300 : 6, () => header(draw));
  const body = draw.chance(0.2) ? randomText(draw, draw.int(0, 200)) : '';
  const target =
    method === 'POST'
      ? oddTarget(
          draw,
          paths.filter((path) => extraMethods.includes('POST') || !path.includes('quit')),
        )
      : oddTarget(draw, paths);
  return [`${method} ${target} ${draw.chance(0.9) ? 'HTTP/1.1' : draw.pick(versions)}`, ...headers, '', body].join(end);
}

function header(draw: Draw): string {
  const name = draw.chance(0.8) ? draw.pick(headerNames) : oddText(draw).slice(0, 60);
  const value = draw.chance(0.7) ? draw.pick(headerValues) : oddText(draw);
  return `${name}${draw.chance(0.95) ? ': ' : draw.pick([':', ' : ', ''])}${value}`;
}

function oddTarget(draw: Draw, paths: readonly string[]): string {
  const path = draw.one(
    () => draw.pick(paths),
    () => draw.pick(paths),
    () => `${draw.pick(paths)}${draw.pick(['/', '//', '/..', '%2e%2e', ';', '#', '?', '??', '%', '\\'])}`,
    () =>
      draw.pick([
        '//',
        '///',
        '/\\',
        '*',
        'http://',
        'http://[',
        'http://a:99999999/',
        'https://%/',
        '?',
        '#',
        '/%',
        '//[',
        '//:0',
        '/'.repeat(9_000),
      ]),
    () => `/${encodeURIComponent(randomText(draw, draw.int(0, 30)).replace(/[\ud800-\udfff]/g, ''))}`,
    () => `/${oddText(draw)}`,
  );
  if (!draw.chance(0.4)) return path;
  const names = [
    'proxyID',
    'config',
    'resource',
    'type',
    'name',
    'ns',
    'seconds',
    'debug',
    'since',
    'level',
    'push',
    'sinceSeq',
    'token',
    '__proto__',
  ];
  const pairs = draw.list(
    1,
    5,
    () => `${draw.pick(names)}=${draw.chance(0.5) ? draw.int(0, 3) : oddText(draw).slice(0, 200)}`,
  );
  return `${path}?${pairs.join('&')}`;
}
