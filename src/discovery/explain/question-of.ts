/** From what a person writes to what is asked: `--url http://cart:8080/items --header x-user=anna`. */
import { isIP } from 'node:net';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import { virtualAddresses } from '../../model/proxy/service-addresses.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { HttpQuestion, Question } from '../../networking/explain/question.ts';
import { ChartpilotError } from '../../runtime/errors.ts';

export interface AskedFor {
  /** `http://`, `https://`, `tcp://HOST:PORT` or `tls://HOST:PORT`. */
  readonly url: string;
  readonly method?: string;
  /** `NAME=VALUE` or `NAME: VALUE`. */
  readonly headers?: readonly string[];
  /** Where the connection really goes; absent: to the address of the service that the URL names. */
  readonly address?: string;
  /** Absent: the URL's host. */
  readonly sni?: string;
  readonly http2?: boolean;
  readonly inbound?: boolean;
  /** IP of the client; absent: not known. */
  readonly source?: string;
  /** The SPIFFE ID in the client's certificate; absent: it has none. */
  readonly principal?: string;
}

const defaultPorts: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 };

/** @throws ChartpilotError FLAG_INVALID */
export function questionOf(
  asked: AskedFor,
  addressOf: (host: string) => string | undefined = () => undefined,
): Question {
  const url = parsed(asked.url);
  const port = Number(url.port) || defaultPorts[url.protocol];
  if (!port) throw new ChartpilotError('FLAG_INVALID', `--url ${asked.url} names no port`);
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const encrypted = url.protocol === 'https:' || url.protocol === 'tls:';
  const isHttp = url.protocol === 'http:' || url.protocol === 'https:';
  const http2 = asked.http2 === true;
  const address = asked.address ?? (isIP(host) === 0 ? addressOf(host) : host);
  const sni = (asked.sni ?? (isIP(host) === 0 ? host : undefined))?.toLowerCase();
  return {
    direction: asked.inbound ? 'inbound' : 'outbound',
    destination: { port, ...(address !== undefined && { address }) },
    ...(asked.source !== undefined && { source: { address: clientAddress(asked.source), port: 0 } }),
    ...(encrypted && { tls: { ...tlsQuestion(asked, sni), alpn: isHttp ? (http2 ? ['h2'] : ['http/1.1']) : [] } }),
    ...(isHttp && { http: httpQuestion(asked, url, http2) }),
  };
}

function clientAddress(source: string): string {
  if (isIP(source) !== 0) return source;
  throw new ChartpilotError('FLAG_INVALID', `--source ${source} must be an IP address`);
}

function tlsQuestion({ principal }: AskedFor, sni: string | undefined): { sni?: string; principal?: string } {
  return { ...(sni && { sni }), ...(principal !== undefined && { principal }) };
}

function parsed(text: string): URL {
  try {
    const url = new URL(text);
    if (['http:', 'https:', 'tcp:', 'tls:'].includes(url.protocol) && url.hostname !== '') return url;
  } catch {
    // Told below.
  }
  throw new ChartpilotError('FLAG_INVALID', `--url ${text} must be http://, https://, tcp:// or tls:// with a host`);
}

function httpQuestion({ method = 'GET', headers = [] }: AskedFor, url: URL, http2: boolean): HttpQuestion {
  const given = Object.fromEntries(headers.map(header));
  const { host: authority = url.host, ...others } = given;
  return {
    version: http2 ? 'HTTP/2' : 'HTTP/1.1',
    authority,
    path: url.pathname + url.search,
    method,
    headers: others,
  };
}

function header(text: string): readonly [string, string] {
  const end = text.search(/[=:]/);
  if (end < 1) throw new ChartpilotError('FLAG_INVALID', `--header ${text} must be NAME=VALUE`);
  return [text.slice(0, end).trim().toLowerCase(), text.slice(end + 1).trim()];
}

/** The address that an application of the proxy would find for a name, as far as the mesh says. */
export function addressOfService(host: string, shape: ProxyShape, push: PushContext): string | undefined {
  const scope = push.sidecarScopeFor(shape);
  const names = [host, `${host}.${shape.dnsDomain}`, `${host}.svc.${push.domain}`];
  const service = names.map((name) => scope.serviceByHostname(name)).find((found) => found !== undefined);
  return service && virtualAddresses(service, shape, push.features).find((address) => isIP(address) !== 0);
}
