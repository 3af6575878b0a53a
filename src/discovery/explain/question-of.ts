/** Converts flags such as `--url http://cart:8080/items --header x-user=anna` to a request. */

import { isIP } from 'node:net';
import { mustBe } from '../../model/fields/violation.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import { virtualAddresses } from '../../model/proxy/service-addresses.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { HttpQuestion, Question } from '../../networking/explain/question.ts';
import { hostOfUrl } from '../../runtime/addresses/url-host.ts';
import { ChartpilotError } from '../../runtime/errors.ts';
import { optionError } from '../../runtime/option-errors.ts';

export interface QuestionFlags {
  /** `http://`, `https://`, `tcp://HOST:PORT` or `tls://HOST:PORT`. */
  readonly url: string;
  readonly method?: string;
  /** `NAME=VALUE` or `NAME: VALUE`. */
  readonly headers?: readonly string[];
  /** Default: address of the URL's service. */
  readonly address?: string;
  /** Default: the URL's host. */
  readonly sni?: string;
  readonly http2?: boolean;
  readonly inbound?: boolean;
  readonly source?: string;
  /** SPIFFE ID in the client's certificate. */
  readonly principal?: string;
}

const defaultPorts: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 };

/** @throws ChartpilotError FLAG_INVALID */
export function questionOf(
  flags: QuestionFlags,
  addressOf: (host: string) => string | undefined = () => undefined,
): Question {
  const url = parseUrl(flags.url);
  const port = Number(url.port) || defaultPorts[url.protocol];
  if (!port) throw new ChartpilotError('FLAG_INVALID', `--url: must have a port, got ${flags.url}`);
  const host = hostOfUrl(url);
  const isEncrypted = url.protocol === 'https:' || url.protocol === 'tls:';
  const isHttp = url.protocol === 'http:' || url.protocol === 'https:';
  const http2 = flags.http2 === true;
  const addressFlag = flags.address === undefined ? undefined : ipAddress('--address', flags.address);
  const address = addressFlag ?? (isIP(host) === 0 ? addressOf(host) : host);
  const sni = (flags.sni ?? (isIP(host) === 0 ? host : undefined))?.toLowerCase();
  return {
    direction: flags.inbound ? 'inbound' : 'outbound',
    destination: { port, ...(address !== undefined && { address }) },
    ...(flags.source !== undefined && { source: { address: ipAddress('--source', flags.source), port: 0 } }),
    ...(isEncrypted && { tls: { ...tlsQuestion(flags, sni), alpn: isHttp ? (http2 ? ['h2'] : ['http/1.1']) : [] } }),
    ...(isHttp && { http: httpQuestion(flags, url, http2) }),
  };
}

function ipAddress(flag: string, text: string): string {
  if (isIP(text) !== 0) return text;
  throw optionError(flag, mustBe('an IP address', text));
}

function tlsQuestion({ principal }: QuestionFlags, sni: string | undefined): { sni?: string; principal?: string } {
  return { ...(sni && { sni }), ...(principal !== undefined && { principal }) };
}

function parseUrl(text: string): URL {
  try {
    const url = new URL(text);
    if (['http:', 'https:', 'tcp:', 'tls:'].includes(url.protocol) && url.hostname !== '') return url;
  } catch {
    // The error is thrown below.
  }
  throw new ChartpilotError(
    'FLAG_INVALID',
    `--url: must be an http://, https://, tcp:// or tls:// URL with a host, got ${text}`,
  );
}

/** Unlike `URL`, keeps dot segments and percent-encoding, because Envoy can match a path before it normalizes them. */
function pathOf(text: string, url: URL): string {
  const [, path] = /^[^:]+:\/\/[^/?#]*(\/[\x21-\x7e]*)$/.exec(text) ?? [];
  return path === undefined ? url.pathname + url.search : path.replace(/#.*$/, '');
}

function httpQuestion(
  { url: text, method = 'GET', headers = [] }: QuestionFlags,
  url: URL,
  http2: boolean,
): HttpQuestion {
  const requestHeaders = headersOf({ headers });
  const { host: authority = url.host, ...otherFlags } = requestHeaders;
  return {
    version: http2 ? 'HTTP/2' : 'HTTP/1.1',
    authority,
    path: pathOf(text, url),
    method,
    headers: otherFlags,
  };
}

/** Headers by lower-case name. */
export function headersOf({ headers = [] }: Pick<QuestionFlags, 'headers'>): Readonly<Record<string, string>> {
  return Object.fromEntries(headers.map(header));
}

function header(text: string): readonly [string, string] {
  const separatorIndex = text.search(/[=:]/);
  if (separatorIndex < 1) throw new ChartpilotError('FLAG_INVALID', `--header: must be NAME=VALUE, got ${text}`);
  return [text.slice(0, separatorIndex).trim().toLowerCase(), text.slice(separatorIndex + 1).trim()];
}

export function addressOfService(host: string, shape: ProxyShape, push: PushContext): string | undefined {
  const scope = push.sidecarScopeFor(shape);
  const names = [host, `${host}.${shape.dnsDomain}`, `${host}.svc.${push.domain}`];
  const service = names.map((name) => scope.serviceByHostname(name)).find((candidate) => candidate !== undefined);
  return service && virtualAddresses(service, shape, push.features).find((address) => isIP(address) !== 0);
}
