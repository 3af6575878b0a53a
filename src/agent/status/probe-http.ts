/** A probe follows redirects only within the same origin. */
import { type Agent, type IncomingMessage, request } from 'node:http';
import { type ClientHttp2Session, connect as connectHttp2, type OutgoingHttpHeaders } from 'node:http2';
import { isIPv6, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { rejectUpgrade } from '../../runtime/fences/other-protocol.ts';
import type { ApplicationProbe } from './application-probes.ts';

export interface ProbeTransport {
  readonly destination: string;
  /** iptables rules do not redirect connections from this address as inbound traffic; `undefined` for any. */
  readonly source: string | undefined;
  readonly http2: boolean;
  /** Keeps plaintext connections open; without it, each probe has its own connection. */
  readonly keepAliveAgent?: Agent;
}

export type HttpProbe = Extract<ApplicationProbe, { kind: 'http' }>;
type Header = readonly [name: string, value: string];

const maxRedirects = 10;
/** The body is read and discarded, because closing the connection early could cause errors in the server's log. */
const maxBodyBytes = 64 * 1024;
const maxHeaderBytes = 16 * 1024;

/** These headers concern one connection and are not forwarded. */
const hopByHopHeaders: ReadonlySet<string> = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade', 'te', 'trailer'],
  ...['http2-settings', 'content-length', 'expect', 'proxy-authorization', 'proxy-authenticate'],
]);

/**
 * Rejects if the probe receives no response.
 *
 * @param callerHeaders alternating names and values
 */
export async function probeHttp(
  probe: HttpProbe,
  callerHeaders: readonly string[],
  transport: ProbeTransport,
  signal: AbortSignal,
): Promise<number> {
  const base = `${probe.scheme}://${authorityOf(transport.destination, probe.port)}`;
  const headers = probeHeaders(probe, callerHeaders, authorityOf(transport.destination, probe.port));
  let path = probe.path;
  for (let redirects = 0; redirects <= maxRedirects; redirects++) {
    const { status, location } = await getOnce({ ...probe, path }, headers, transport, signal);
    if (status < 300 || status >= 400) return status;
    if (location === undefined || status === 300 || status === 304) return 200;
    const redirectUrl = URL.parse(location, `${base}${path}`);
    if (redirectUrl === null) throw new Error(`redirect to an invalid URL: ${JSON.stringify(location.slice(0, 200))}`);
    // Another port of this pod may belong to Envoy or this agent, and is not configured for the probe.
    if (redirectUrl.origin !== new URL(base).origin) return 200;
    path = `${redirectUrl.pathname}${redirectUrl.search}`;
  }
  throw new Error(`more than ${maxRedirects} redirects`);
}

function authorityOf(host: string, port: number): string {
  return `${isIPv6(host) ? `[${host}]` : host}:${port}`;
}

function probeHeaders(probe: HttpProbe, callerHeaders: readonly string[], authority: string): Header[] {
  const pairs: Header[] = [];
  for (let i = 0; i + 1 < callerHeaders.length; i += 2) pairs.push([callerHeaders[i]!, callerHeaders[i + 1]!]);
  const configuredNames = new Set(probe.headers.map(({ name }) => name.toLowerCase()));
  const connectionHeaders = pairs
    .filter(([name]) => name.toLowerCase() === 'connection')
    .flatMap(([, value]) => value.split(',').map((name) => name.trim().toLowerCase()));
  const isOmitted = (name: string): boolean =>
    name === 'host' || hopByHopHeaders.has(name) || configuredNames.has(name) || connectionHeaders.includes(name);
  return [
    ...(configuredNames.has('host') ? [] : [['host', authority] as const]),
    ...pairs.filter(([name]) => !isOmitted(name.toLowerCase())),
    ...probe.headers.map(({ name, value }) => [name, value] as const),
  ];
}

interface ProbeResponse {
  readonly status: number;
  readonly location: string | undefined;
}

async function getOnce(
  probe: HttpProbe,
  headers: readonly Header[],
  transport: ProbeTransport,
  signal: AbortSignal,
): Promise<ProbeResponse> {
  if (probe.scheme === 'http') return getHttp1(probe, headers, { ...transport, signal });
  const socket = await openTls(probe, transport, signal);
  if (socket.alpnProtocol === 'h2') return getHttp2(probe, headers, { socket, signal });
  return getHttp1(probe, headers, { ...transport, signal, socket });
}

function getHttp1(
  probe: HttpProbe,
  headers: readonly Header[],
  { destination, source, keepAliveAgent, signal, socket }: ProbeTransport & { signal: AbortSignal; socket?: Socket },
): Promise<ProbeResponse> {
  return new Promise((resolve, reject) => {
    const outgoing = request({
      host: destination,
      port: probe.port,
      path: probe.path,
      headers: headers.flat(),
      maxHeaderSize: maxHeaderBytes,
      signal,
      ...(source !== undefined && { localAddress: source }),
      // With an agent, Node would open a new connection instead of using this one.
      ...(socket === undefined ? { agent: keepAliveAgent ?? false } : { createConnection: () => socket }),
    });
    outgoing.on('response', (response) => {
      resolve({ status: response.statusCode ?? 0, location: response.headers.location });
      discardBody(response);
    });
    rejectUpgrade(outgoing, reject);
    outgoing.on('error', (error) => {
      // The server may have closed a reused connection at the same time: retry once on a new one.
      if (!outgoing.reusedSocket || signal.aborted) reject(error);
      else getHttp1(probe, headers, { destination, source, signal, http2: false }).then(resolve, reject);
    });
    outgoing.end();
  });
}

function discardBody(response: IncomingMessage): void {
  let bytes = 0;
  response.on('error', () => {});
  response.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > maxBodyBytes) response.destroy();
  });
}

function openTls(probe: HttpProbe, { destination, source, http2 }: ProbeTransport, signal: AbortSignal) {
  const { promise, resolve, reject } = Promise.withResolvers<ReturnType<typeof connectTls>>();
  const socket = connectTls({
    host: destination,
    port: probe.port,
    // The certificate is for a host name, but the probe connects to an address of this pod.
    rejectUnauthorized: false,
    ALPNProtocols: http2 ? ['h2', 'http/1.1'] : ['http/1.1'],
    ...(source !== undefined && { localAddress: source }),
  });
  const stop = (): void => void socket.destroy(signal.reason);
  socket.once('secureConnect', () => resolve(socket));
  socket.on('error', reject);
  socket.once('close', () => {
    signal.removeEventListener('abort', stop);
    reject(new Error('connection closed'));
  });
  if (signal.aborted) stop();
  else signal.addEventListener('abort', stop, { once: true });
  return promise;
}

function getHttp2(
  probe: HttpProbe,
  headers: readonly Header[],
  { socket, signal }: { socket: Socket; signal: AbortSignal },
): Promise<ProbeResponse> {
  return new Promise((resolve, reject) => {
    let session: ClientHttp2Session | undefined;
    const closeSession = (): void => void session?.destroy();
    try {
      session = connectHttp2('https://localhost', {
        createConnection: () => socket,
        maxHeaderListPairs: 128,
        settings: { enablePush: false, maxHeaderListSize: maxHeaderBytes },
      });
      session.on('error', reject);
      const stream = session.request({ ':path': probe.path, ...http2Headers(headers) }, { endStream: true, signal });
      stream.on('response', ({ ':status': status = 0, location }) => resolve({ status, location }));
      stream.on('error', reject);
      let bytes = 0;
      stream.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > maxBodyBytes) closeSession();
      });
      stream.once('close', () => {
        reject(new Error('stream closed'));
        closeSession();
      });
    } catch (error) {
      closeSession();
      reject(error);
    }
  });
}

function http2Headers(headers: readonly Header[]): OutgoingHttpHeaders {
  const valuesByName = new Map<string, string[]>();
  for (const [name, value] of headers) {
    const key = name.toLowerCase() === 'host' ? ':authority' : name.toLowerCase();
    if (!hopByHopHeaders.has(key)) valuesByName.set(key, [...(valuesByName.get(key) ?? []), value]);
  }
  return Object.fromEntries(
    [...valuesByName].map(([name, values]) => [name, values.length === 1 ? values[0] : values]),
  );
}
