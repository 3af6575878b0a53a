/** Responses of upstream servers, and TCP clients that close their side. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect } from 'node:net';
import { decode, encode, RECURSION_DESIRED } from 'dns-packet';
import { expect, onTestFinished, test } from 'vitest';
import { readQuery } from '../../runtime/dns/dns-message.ts';
import { frameMessage, TcpMessages } from '../../runtime/dns/tcp-messages.ts';
import { DnsServer } from './dns-server.ts';
import { DnsUpstream, type UpstreamOptions } from './dns-upstream.ts';

const question = encode({
  type: 'query',
  id: 4711,
  flags: RECURSION_DESIRED,
  questions: [{ name: 'a.test', type: 'A', class: 'IN' }],
});

function upstreamTo(options: Partial<UpstreamOptions>): DnsUpstream {
  const counts = { requests: 0, failures: 0, refused: 0, recordDuration: () => {} };
  const upstream = new DnsUpstream({ servers: ['127.0.0.1'], timeoutMs: 5_000, parallel: false, ...options }, counts);
  onTestFinished(() => upstream.close());
  return upstream;
}

/**
 * A name server over UDP.
 *
 * @returns its port
 */
async function nameServer(reply: (query: Buffer) => Buffer): Promise<number> {
  const socket = createSocket('udp4');
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  onTestFinished(() => {
    socket.close();
  });
  socket.on('message', (query, { port, address }) => socket.send(reply(query), port, address));
  return socket.address().port;
}

/** A response with only a header. */
const headerOnly =
  (code: number) =>
  (query: Buffer): Buffer => {
    const header = Buffer.alloc(12);
    header.writeUInt16BE(query.readUInt16BE(0), 0);
    header.writeUInt16BE(0x8000 | code, 2);
    return header;
  };

const sentQuery = (() => {
  const read = readQuery(question);
  if (read.kind !== 'query') throw new Error(read.kind);
  return read.query;
})();

test.each([
  ['FORMERR', 1],
  ['REFUSED', 5],
])('forwards a failure without a question immediately, with the question added: %s (agent §9)', async (rcode, code) => {
  const upstream = upstreamTo({ serverPort: await nameServer(headerOnly(code)) });
  const response = await upstream.forward(sentQuery, 'udp');
  expect(decode(response!)).toMatchObject({
    id: 4711,
    rcode,
    questions: [{ name: 'a.test', type: 'A' }],
    answers: [],
  });
});

test('ignores a response of only a header that reports no failure (agent §9)', async () => {
  const upstream = upstreamTo({ serverPort: await nameServer(headerOnly(0)), timeoutMs: 100 });
  expect(await upstream.forward(sentQuery, 'udp')).toBeUndefined();
});

test('responds to a TCP client that closes its side after its last query, then closes the connection (agent §9)', async () => {
  const upstream = upstreamTo({ serverPort: 1, timeoutMs: 300 });
  const server = new DnsServer({
    addresses: ['127.0.0.1'],
    port: 0,
    names: () => undefined,
    forwardBeforeTable: true,
    upstream,
    counts: { requests: 0 },
    onFailed: (error) => expect.fail(error.message),
  });
  onTestFinished(() => server.close());
  const client = connect({ host: '127.0.0.1', port: await server.open(), allowHalfOpen: true });
  client.end(Buffer.concat([frameMessage(question), frameMessage(question)]));
  const reader = new TcpMessages();
  const responses: Buffer[] = [];
  for await (const chunk of client) responses.push(...reader.push(chunk as Buffer));
  expect(responses.map((message) => decode(message))).toMatchObject([{ rcode: 'SERVFAIL' }, { rcode: 'SERVFAIL' }]);
});
