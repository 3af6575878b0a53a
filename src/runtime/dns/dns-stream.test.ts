/** Limits of one connection, tested with raw sockets. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { eventually } from '../../../test/harness/eventually.ts';
import { type DnsStreamEnd, type DnsStreamHandlers, type DnsStreamLimits, serveDnsStream } from './dns-stream.ts';
import { frameMessage, TcpMessages } from './tcp-messages.ts';

const generous: DnsStreamLimits = { maxPending: 64, maxUnreadBytes: 1024 * 1024, maxQueryBytes: 4_096, idleMs: 60_000 };

interface Served {
  readonly client: Socket;
  readonly ends: DnsStreamEnd[];
  readonly queries: Buffer[];
  readonly isClosed: () => boolean;
}

async function serve(limits: Partial<DnsStreamLimits>, query?: DnsStreamHandlers['query']): Promise<Served> {
  const ends: DnsStreamEnd[] = [];
  const queries: Buffer[] = [];
  const server = createServer({ allowHalfOpen: true }, (connection) =>
    serveDnsStream(
      connection,
      { ...generous, ...limits },
      {
        query: (message, respond) => {
          queries.push(message);
          (query ?? ((queryBytes, reply) => reply(queryBytes)))(message, respond);
        },
        limited: (reason) => ends.push(reason),
      },
    ),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  let isClosed = false;
  client.on('error', () => {});
  client.on('close', () => {
    isClosed = true;
  });
  onTestFinished(() => {
    client.destroy();
    server.close();
  });
  return { client, ends, queries, isClosed: () => isClosed };
}

const message = Buffer.from('a query');

test('a DNS client that sends single bytes slowly is disconnected at the idle limit', async () => {
  const { client, ends, isClosed } = await serve({ idleMs: 200 });
  client.resume();
  const slowWrites = setInterval(() => client.write(Buffer.of(0)), 20);
  onTestFinished(() => clearInterval(slowWrites));
  // Announces 4,000 bytes, which take 80 s at this pace.
  client.write(Buffer.of(0x0f, 0xa0));
  await eventually('the connection is closed', isClosed);
  expect(ends).toEqual(['idle']);
});

test('a DNS client that sends messages other than queries is disconnected at the limit of pending queries', async () => {
  const { client, queries } = await serve({ maxPending: 2 }, (_, respond) => respond(undefined));
  for (let i = 0; i < 10; i++) client.write(frameMessage(message));
  await eventually('all messages are read', () => queries.length === 10);
});

test('a DNS query beyond the size limit closes the connection before the query is received completely', async () => {
  const { client, ends, queries, isClosed } = await serve({ maxQueryBytes: 512 });
  client.resume();
  client.write(Buffer.of(0x02, 0x01, 0));
  await eventually('the connection is closed', isClosed);
  expect(ends).toEqual(['query too long']);
  expect(queries).toEqual([]);
});

test('a DNS query beyond the limit of pending queries closes the connection', async () => {
  const { client, ends, queries, isClosed } = await serve({ maxPending: 3 }, () => {});
  client.resume();
  client.write(Buffer.concat(Array.from({ length: 10 }, () => frameMessage(message))));
  await eventually('the connection is closed', isClosed);
  expect(ends).toEqual(['too many pending queries']);
  expect(queries).toHaveLength(3);
});

test('a DNS client that does not read its responses is disconnected', async () => {
  const { client, ends } = await serve({ maxUnreadBytes: 100_000, maxPending: 100_000 }, (_, respond) =>
    respond(Buffer.alloc(60_000)),
  );
  client.pause();
  for (let i = 0; i < 500; i++) client.write(frameMessage(message));
  await eventually('the connection is closed', () => ends.length > 0);
  expect(ends).toEqual(['responses not read']);
});

test('DNS queries beyond the rate wait in the socket, and each gets a response', async () => {
  const { client, queries } = await serve({ queriesPerSecond: 20, maxPending: 100_000 });
  const reader = new TcpMessages();
  let responses = 0;
  client.on('data', (chunk) => {
    responses += reader.push(chunk).length;
  });
  for (let i = 0; i < 2; i++) {
    client.write(Buffer.concat(Array.from({ length: 20 }, () => frameMessage(message))));
    await eventually('20 responses', () => responses >= 20);
  }
  expect(queries).toHaveLength(20);
  await eventually('40 responses', () => responses === 40);
});

test('a DNS client that half-closes its connection receives the pending responses first', async () => {
  const pending: ((response: Buffer) => void)[] = [];
  const { client, queries, isClosed } = await serve({}, (_, respond) => pending.push(respond));
  const receivedMessages: Buffer[] = [];
  client.on('data', (chunk) => receivedMessages.push(chunk));
  client.end(frameMessage(message));
  await eventually('the query is read', () => queries.length === 1);
  expect(isClosed()).toBe(false);
  pending[0]!(message);
  await eventually('the connection is closed', isClosed);
  expect(Buffer.concat(receivedMessages)).toEqual(frameMessage(message));
});
