/** Draws a connection that one of a proxy's listeners may accept, in most cases with a request on it. */
import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { TrafficDirection } from '../../src/gen/envoy/config/core/v3/base_pb.ts';
import type { Listener } from '../../src/gen/envoy/config/listener/v3/listener_pb.ts';
import type { ProxyConfiguration } from '../../src/networking/explain/proxy-configuration.ts';
import type { HttpQuestion, Question } from '../../src/networking/explain/question.ts';
import type { Draw } from '../random-config/draw.ts';
import { chainsOf } from './configuration.ts';
import { clientAddresses } from './namespace.ts';
import { withUnusualProperty } from './unusual-requests.ts';
import type { MatchedField, Words } from './words.ts';

/** Signs the tokens of clients. */
export class TokenKeys {
  readonly #key: KeyObject;
  readonly keySet: string;

  constructor() {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    this.#key = privateKey;
    this.keySet = JSON.stringify({ keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'known', alg: 'ES256' }] });
  }

  sign(claims: object): string {
    const encode = (payload: object): string => Buffer.from(JSON.stringify(payload)).toString('base64url');
    const text = `${encode({ alg: 'ES256', kid: 'known', typ: 'JWT' })}.${encode(claims)}`;
    const signature = sign('sha256', Buffer.from(text), { key: this.#key, dsaEncoding: 'ieee-p1363' });
    return `${text}.${signature.toString('base64url')}`;
  }
}

export interface DrawContext {
  readonly draw: Draw;
  readonly configuration: ProxyConfiguration;
  readonly words: Words;
  readonly keys: TokenKeys;
  readonly proxyAddress: string;
}

interface ConnectionTarget {
  /** Whether the configuration names the address and port, so that the catch-all does not accept the connection. */
  readonly isExpected: boolean;
  readonly listener: Listener;
  readonly address: string;
  readonly port: number;
}

/**
 * Below the ephemeral ports of the kernel. Each port is used once, because log lines are matched by it and the kernel
 * may change a port in TIME_WAIT.
 */
let clientPort = 20_000;

function nextClientPort(): number {
  return clientPort++;
}

/** A port without a listener. */
const otherPort = 7_777;

/** Addresses of services in the golden cases, and one without a service. */
const otherAddresses = ['10.1.0.1', '10.1.0.2', '10.2.0.7', '10.99.0.1'];

/** Share of unusual requests. */
const unusualShare = 0.3;

export function drawQuestion(context: DrawContext): Question {
  const { draw } = context;
  const places = placesOf(context);
  const expected = places.filter(({ isExpected }) => isExpected);
  const { listener, address, port } = draw.pick(expected.length > 0 && draw.chance(0.8) ? expected : places);
  const chains = chainsOf(listener);
  const inbound = listener.trafficDirection === TrafficDirection.INBOUND;
  const names = chains.flatMap(({ filterChainMatch }) => filterChainMatch?.serverNames ?? []);
  const hasTls = chains.some(
    ({ filterChainMatch, transportSocket }) =>
      transportSocket !== undefined || filterChainMatch?.transportProtocol === 'tls',
  );
  const tls = draw.chance(hasTls ? 0.6 : 0.03) ? drawTls(context, names) : undefined;
  const usualRequest = draw.chance(0.85) ? drawHttp(context, tls?.alpn.includes('h2') ?? draw.chance(0.1)) : undefined;
  const http = usualRequest && draw.chance(unusualShare) ? withUnusualProperty(usualRequest, draw) : usualRequest;
  return {
    direction: inbound ? 'inbound' : 'outbound',
    destination: { address, port },
    source: { address: draw.pick(clientAddresses), port: nextClientPort() },
    now: Date.now(),
    ...(tls && { tls }),
    ...(http && { http }),
  };
}

/**
 * Addresses and ports where listeners accept connections. For listeners that receive redirected connections: original
 * destinations.
 */
function placesOf({ configuration, draw, proxyAddress }: DrawContext): ConnectionTarget[] {
  return configuration.listeners.flatMap((listener): ConnectionTarget[] => {
    const hostAddress = listener.address?.address;
    if (hostAddress?.case !== 'socketAddress' || listener.udpListenerConfig !== undefined) return [];
    const { address, portSpecifier } = hostAddress.value;
    if (address.includes(':')) return [];
    const port = portSpecifier.case === 'portValue' ? portSpecifier.value : 0;
    const inbound = listener.trafficDirection === TrafficDirection.INBOUND;
    const redirected = isRedirected(listener);
    const anyAddress = inbound ? proxyAddress : draw.pick(otherAddresses);
    const at =
      address === '0.0.0.0' ? (listener.bindToPort === false || redirected ? anyAddress : '127.0.0.1') : address;
    if (!redirected) return [{ listener, address: at, port, isExpected: true }];
    const ports = chainsOf(listener).flatMap(({ filterChainMatch }) => filterChainMatch?.destinationPort ?? []);
    // Rarely the listener's own port, as in a connection that was not redirected.
    return [...new Set([...(draw.chance(0.1) ? ports : ports.filter((one) => one !== port)), otherPort])].map(
      (one) => ({ listener, address: at, port: one, isExpected: one !== otherPort }),
    );
  });
}

export function isRedirected({ useOriginalDst, listenerFilters, bindToPort }: Listener): boolean {
  const takes =
    useOriginalDst === true || listenerFilters.some(({ name }) => name === 'envoy.filters.listener.original_dst');
  return takes && bindToPort !== false;
}

function drawTls({ draw, words }: DrawContext, names: readonly string[]): NonNullable<Question['tls']> {
  const name = names.length > 0 && draw.chance(0.85) ? draw.pick(names) : draw.pick([...words.domains, 'other.test']);
  const sni = name.replace(/^\*/, 'x').replace(/:\d+$/, '').toLowerCase();
  const alpn = draw.pick([[], ['http/1.1'], ['h2'], ['istio', 'http/1.1'], ['istio-http/1.1']]);
  const principals = words.principals.filter((text) => text.startsWith('spiffe://') && !/[.*]\+|\.\*/.test(text));
  const principal = draw.chance(0.6)
    ? draw.pick([...principals, 'spiffe://cluster.local/ns/shop/sa/cart', 'spiffe://cluster.local/ns/a/sa/b'])
    : undefined;
  return {
    alpn,
    ...(/^[a-z\d.-]*[a-z][a-z\d.-]*$/.test(sni) && draw.chance(0.95) && { sni }),
    ...(principal && { principal }),
  };
}

function drawHttp(context: DrawContext, http2: boolean): HttpQuestion {
  const { draw, words } = context;
  const domain = words.domains.length > 0 && draw.chance(0.85) ? draw.pick(words.domains) : 'other.test';
  const authority = domain === '*' ? 'any.test' : domain.replace(/^\*/, draw.pick(['x', 'y.z'])).replace(/\*$/, 'x');
  const path =
    words.paths.length > 0 && draw.chance(0.8) ? draw.pick(words.paths) : draw.pick(['/', '/other', '/a//b/../c']);
  const fullPath = `${path.startsWith('/') ? path : `/${path}`}${draw.pick(['', '', '', '/more', 'x'])}`;
  const parameters = words.parameters
    .filter(() => draw.chance(0.6))
    .map((word) => `${word.name}=${valueFor(word, draw)}`);
  const headers: Record<string, string> = {};
  for (const word of words.headers) {
    if (draw.chance(0.5) && /^[\w-]+$/.test(word.name)) headers[word.name.toLowerCase()] = valueFor(word, draw);
  }
  if (words.tokens.length > 0 && draw.chance(0.8)) addToken(headers, parameters, context);
  const preflight = draw.chance(0.05);
  if (preflight) {
    const origin = words.headers.find(({ name }) => name === 'origin');
    Object.assign(headers, { origin: origin ? valueFor(origin, draw) : 'https://example.com' });
    headers['access-control-request-method'] = 'GET';
  }
  if (draw.chance(0.06)) headers['content-type'] = 'application/grpc';
  const method = preflight ? 'OPTIONS' : draw.pick(['GET', 'GET', 'GET', 'POST', 'DELETE']);
  return {
    version: http2 ? 'HTTP/2' : 'HTTP/1.1',
    authority,
    path: `${fullPath.replaceAll(/[^\x21-\x7e]/g, '')}${parameters.length > 0 ? `?${parameters.join('&')}` : ''}`,
    method,
    headers: method === 'POST' ? { ...headers, 'content-length': '0' } : headers,
  };
}

function valueFor({ values }: MatchedField, draw: Draw): string {
  return draw.chance(0.8) && values.length > 0 ? draw.pick(values) : draw.pick(['other', 'x', '1']);
}

/** Adds a token of one of the issuers, which is sometimes invalid. */
function addToken(headers: Record<string, string>, parameters: string[], { draw, words, keys }: DrawContext): void {
  const { issuer, audiences, headers: names } = draw.pick(words.tokens);
  const nowS = Math.floor(Date.now() / 1_000);
  const claims: Record<string, unknown> = {
    iss: issuer,
    sub: 'user',
    exp: nowS + 3_600,
    ...(audiences.length > 0 && { aud: audiences[0] }),
  };
  for (const { path, value } of words.claims) if (draw.chance(0.7)) setClaim(claims, path, value);
  switch (draw.int(0, 7)) {
    case 0:
      claims.exp = nowS - 3_600;
      break;
    case 1:
      claims.iss = 'https://other.test';
      break;
    case 2:
      claims.aud = 'other';
      break;
    case 3:
      claims.nbf = nowS + 3_600;
      break;
  }
  const signed = keys.sign(claims);
  const token = draw.chance(0.1)
    ? draw.pick([`${signed.slice(0, -6)}AAAAAA`, 'no.token', signed.replace('.', '.x')])
    : signed;
  const digest = createHash('sha256').update(token).digest()[0]!;
  if (digest % 8 === 0) parameters.push(`token=${token}`);
  else if (digest % 8 === 1) headers.cookie = `session=${token}`;
  else headers[names.length > 0 && draw.chance(0.8) ? draw.pick(names) : 'authorization'] = `Bearer ${token}`;
}

function setClaim(claims: Record<string, unknown>, path: readonly string[], value: string): void {
  let parent = claims;
  for (const key of path.slice(0, -1)) {
    if (typeof parent[key] !== 'object' || parent[key] === null) parent[key] = {};
    parent = parent[key] as Record<string, unknown>;
  }
  const last = path.at(-1);
  if (last !== undefined && (last !== 'iss' || value.includes('://'))) parent[last] = value;
}
