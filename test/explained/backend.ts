/**
 * The single upstream server: it responds with 200 to HTTP/1.1 and HTTP/2, accepts TLS for any name, and echoes TCP
 * bytes.
 */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer as createHttp } from 'node:http';
import { createServer as createHttp2 } from 'node:http2';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { createServer as createTls } from 'node:tls';
import { AUTHORITATIVE_ANSWER, decode, encode } from 'dns-packet';
import type { IssuedCertificate } from '../certs/authority.ts';

/** Response for every name. The namespace treats every IPv4 address as local. */
const addressOfNames = '10.250.0.1';

/** @returns port */
export async function startBackend({ certificate, privateKey }: IssuedCertificate): Promise<number> {
  const http = createHttp((request, response) => {
    request.resume();
    response.end('backend');
  });
  const http2 = createHttp2((request, response) => {
    request.resume();
    // gRPC clients report a response without a status in its trailers as a failure, but Envoy's log has the 200.
    response.end('backend');
  });
  const serve = (socket: Socket): void => {
    socket.on('error', () => socket.destroy());
    socket.once('data', (first: Buffer) => {
      socket.pause();
      socket.unshift(first);
      if (first[0] === 0x16) tls.emit('connection', socket);
      else if (first.toString('latin1', 0, 4) === 'PRI ') http2.emit('connection', socket);
      else if (/^[A-Z]+ [^ ]+ HTTP/.test(first.toString('latin1'))) http.emit('connection', socket);
      else {
        socket.end('backend');
      }
      process.nextTick(() => socket.resume());
    });
  };
  const tls = createTls({ cert: certificate, key: privateKey, ALPNProtocols: ['h2', 'http/1.1', 'istio'] }, serve);
  for (const server of [http, http2, tls]) server.on('error', () => {});
  tls.on('tlsClientError', () => {});
  const server = createServer(serve).listen(0, '0.0.0.0');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** @returns port of a DNS server with an address for every name */
export async function startNameServer(): Promise<number> {
  const server = createSocket('udp4', (message, { port, address }) => {
    const { id = 0, questions = [] } = decode(message);
    const { name = '', type } = questions[0] ?? {};
    const records = type === 'A' ? [{ type: 'A' as const, name, ttl: 300, data: addressOfNames }] : [];
    server.send(
      encode({ type: 'response', id, flags: AUTHORITATIVE_ANSWER, questions, answers: records }),
      port,
      address,
    );
  });
  // Responses must leave from the address that rules redirect to, otherwise the kernel does not map them back.
  server.bind(0, '127.0.0.1');
  await once(server, 'listening');
  return server.address().port;
}
