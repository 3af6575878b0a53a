/** Tests the server over sockets, with simulated upstream servers. */
import { createSocket, Socket as UdpSocket } from 'node:dgram';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { type AddressInfo, connect, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { create, toBinary } from '@bufbuild/protobuf';
import { decode, encode, type Packet, RECURSION_DESIRED, type RecordType } from 'dns-packet';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { sized } from '../../../test/harness/size-of-run.ts';
import { NameTableSchema } from '../../gen/istio/networking/nds/v1/nds_pb.ts';
import { type DnsQuery, isResponseTo, readQuery } from '../../runtime/dns/dns-message.ts';
import { DnsNames } from '../../runtime/dns/dns-names.ts';
import { readNameTableInSteps } from '../../runtime/dns/name-table.ts';
import { frameMessage, TcpMessages } from '../../runtime/dns/tcp-messages.ts';
import { runToEnd } from '../../runtime/turns.ts';
import { DnsServer } from './dns-server.ts';
import { DnsUpstream, type UpstreamCounts, type UpstreamOptions } from './dns-upstream.ts';

const manyAddresses = Array.from({ length: 200 }, (_, i) => `10.1.${i >> 8}.${i & 255}`);

function namesOf(hosts: Record<string, string[]>): DnsNames {
  const table = Object.fromEntries(Object.entries(hosts).map(([host, ips]) => [host, { ips, registry: 'External' }]));
  return runToEnd(
    DnsNames.of(runToEnd(readNameTableInSteps(toBinary(NameTableSchema, create(NameTableSchema, { table })))), {
      namespace: 'ns1',
      domain: 'ns1.svc.cluster.local',
      search: 'ns1.svc.cluster.local',
    }),
  );
}

const knownNames = namesOf({
  'one.test': ['1.2.3.4'],
  'dual.test': ['1.2.3.4', '2001:db8::1'],
  'many.test': manyAddresses,
  '*.wild.test': ['5.6.7.8'],
});

interface Started {
  readonly port: number;
  readonly counts: UpstreamCounts & { requests: number };
  readonly received: { requests: number };
  readonly upstream: DnsUpstream;
  /** Queries sent by the workload. */
  sendQuery(name: string, type?: RecordType, more?: Partial<Packet>): Promise<Packet>;
  sendTcpQueries(...questions: Packet[]): Promise<Packet[]>;
}

async function start({
  names = () => knownNames as DnsNames | undefined,
  forward = false,
  ...upstreamOptions
}: Partial<UpstreamOptions> & {
  names?: () => DnsNames | undefined;
  forward?: boolean;
} = {}): Promise<Started> {
  const counts = { requests: 0, failures: 0, refused: 0, recordDuration: () => {} };
  const receivedCounts = { requests: 0 };
  const upstream = new DnsUpstream({ servers: [], timeoutMs: 200, parallel: false, ...upstreamOptions }, counts);
  const server = new DnsServer({
    addresses: ['127.0.0.1'],
    port: 0,
    names,
    forwardBeforeTable: forward,
    upstream,
    counts: receivedCounts,
    onFailed: (error) => expect.fail(error.message),
  });
  const port = await openServer(server);
  onTestFinished(() => {
    upstream.close();
    server.close();
  });
  return {
    port,
    counts,
    received: receivedCounts,
    upstream,
    sendQuery: async (name, type = 'A', overrides = {}) =>
      decode(await datagram(port, encode(question(name, type, overrides)))),
    sendTcpQueries: async (...questions) => {
      const socket = connect(port, '127.0.0.1');
      onTestFinished(() => {
        socket.destroy();
      });
      const reader = new TcpMessages();
      const responses: Packet[] = [];
      socket.write(Buffer.concat(questions.map((one) => frameMessage(encode(one)))));
      for await (const chunk of socket) {
        responses.push(...reader.push(chunk as Buffer).map((message) => decode(message)));
        if (responses.length === questions.length) break;
      }
      return responses;
    },
  };
}

/** Retries, because a port that is free for UDP may be in use for TCP. */
async function openServer(server: DnsServer): Promise<number> {
  for (let tries = 1; ; tries++) {
    try {
      return await server.open();
    } catch (error) {
      if (tries === 10) throw error;
    }
  }
}

let ids = 0;

function question(name: string, type: RecordType = 'A', overrides: Partial<Packet> = {}): Packet {
  return {
    type: 'query',
    id: ++ids & 0xffff,
    flags: RECURSION_DESIRED,
    questions: [{ name, type, class: 'IN' }],
    ...overrides,
  };
}

async function datagram(port: number, message: Buffer): Promise<Buffer> {
  const socket = createSocket('udp4');
  try {
    socket.send(message, port, '127.0.0.1');
    const [response] = (await once(socket, 'message', { signal: AbortSignal.timeout(30_000) })) as [Buffer];
    return response;
  } finally {
    socket.close();
  }
}

const edns = (udpPayloadSize: number): Partial<Packet> => ({
  additionals: [
    { type: 'OPT', name: '.', udpPayloadSize, extendedRcode: 0, ednsVersion: 0, flags: 0, flag_do: false, options: [] },
  ],
});

/**
 * A name server over UDP and TCP.
 *
 * @returns its port and the received queries
 */
async function nameServer(
  reply: (query: Buffer, send: (response: Buffer) => void) => void,
): Promise<{ port: number; received: Buffer[]; peers: number[] }> {
  const receivedQueries: Buffer[] = [];
  const peers: number[] = [];
  const server = createServer((connection) => {
    const reader = new TcpMessages();
    connection.on('error', () => {});
    connection.on('data', (chunk) => {
      for (const query of reader.push(chunk)) {
        receivedQueries.push(query);
        reply(query, (response) => connection.write(frameMessage(response)));
      }
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const socket = createSocket('udp4');
  socket.bind(port, '127.0.0.1');
  await once(socket, 'listening');
  socket.on('message', (query, peer) => {
    receivedQueries.push(query);
    peers.push(peer.port);
    reply(query, (response) => socket.send(response, peer.port, peer.address));
  });
  onTestFinished(() => {
    socket.close();
    server.close();
  });
  return { port, received: receivedQueries, peers };
}

const replyWith =
  (ip: string) =>
  (query: Buffer, send: (response: Buffer) => void): void =>
    send(responseTo(query, ip));

function responseTo(query: Buffer, ip: string, overrides: Partial<Packet> = {}): Buffer {
  const { id, questions } = decode(query);
  const name = questions![0]!.name;
  return encode({ type: 'response', id, questions, answers: [{ type: 'A', name, ttl: 1, data: ip }], ...overrides });
}

const addressesIn = ({ answers: records = [] }: Packet): string[] =>
  records.flatMap((record) => (record.type === 'A' || record.type === 'AAAA' ? [record.data] : []));

describe('responses for names in the DNS table (agent §9)', () => {
  test("are authoritative, with the query's ID and question and a TTL of 30 s", async () => {
    const { sendQuery, received } = await start();
    const response = await sendQuery('oNe.TesT');
    expect(response).toMatchObject({
      type: 'response',
      rcode: 'NOERROR',
      flag_aa: true,
      flag_rd: true,
      flag_tc: false,
      questions: [{ name: 'oNe.TesT', type: 'A' }],
      answers: [{ name: 'oNe.TesT', type: 'A', data: '1.2.3.4', ttl: 30 }],
    });
    expect(response.id).toBe(ids);
    expect(received.requests).toBe(1);
  });

  test('contain the addresses of the queried family, if any', async () => {
    const { sendQuery } = await start();
    expect(addressesIn(await sendQuery('dual.test', 'A'))).toEqual(['1.2.3.4']);
    expect(addressesIn(await sendQuery('dual.test', 'AAAA'))).toEqual(['2001:db8::1']);
    for (const name of ['one.test', 'one.test.ns1.svc.cluster.local'])
      expect(await sendQuery(name, 'AAAA')).toMatchObject({ rcode: 'NOERROR', flag_aa: true, answers: [] });
  });

  test('begin with an alias for a search domain, and contain the queried name for a wildcard', async () => {
    const { sendQuery } = await start();
    expect((await sendQuery('one.test.ns1.svc.cluster.local')).answers).toMatchObject([
      { type: 'CNAME', name: 'one.test.ns1.svc.cluster.local', data: 'one.test', ttl: 30 },
      { type: 'A', name: 'one.test', data: '1.2.3.4' },
    ]);
    expect((await sendQuery('a.wild.test')).answers).toMatchObject([{ type: 'A', name: 'a.wild.test' }]);
    expect((await sendQuery('a.wild.test.ns1.svc.cluster.local')).answers).toMatchObject([
      { type: 'CNAME', name: 'a.wild.test.ns1.svc.cluster.local', data: '*.wild.test' },
      { type: 'A', name: '*.wild.test', data: '5.6.7.8' },
    ]);
  });

  test('are truncated to 512 bytes or the EDNS size over UDP, and are complete over TCP', async () => {
    const { sendQuery, sendTcpQueries, port } = await start();
    const plain = await datagram(port, encode(question('many.test')));
    expect(plain.length).toBeLessThanOrEqual(512);
    expect(plain.length).toBeGreaterThan(480);
    expect(decode(plain)).toMatchObject({ flag_tc: true });
    const larger = await sendQuery('many.test', 'A', edns(1232));
    expect(addressesIn(larger).length).toBe(Math.floor((1232 - 12 - 15 - 11) / 16));
    expect(larger).toMatchObject({ flag_tc: true, additionals: [{ type: 'OPT' }] });
    expect(addressesIn(await sendQuery('many.test', 'A', edns(4096))).sort()).toEqual([...manyAddresses].sort());
    expect(addressesIn(await sendQuery('many.test', 'A', edns(10))).length).toBe(addressesIn(decode(plain)).length - 1);
    const [wholeResponse] = await sendTcpQueries(question('many.test'));
    expect(addressesIn(wholeResponse!).sort()).toEqual([...manyAddresses].sort());
    expect(wholeResponse).toMatchObject({ flag_tc: false });
  });

  test('list the addresses in random order', async () => {
    const { sendTcpQueries } = await start();
    const orders = (await sendTcpQueries(...Array.from({ length: 5 }, () => question('many.test')))).map((one) =>
      addressesIn(one).join(),
    );
    expect(new Set(orders).size).toBe(5);
  });

  test('are SERVFAIL or forwarded before the first table arrives, and correct immediately after', async () => {
    let names: DnsNames | undefined;
    const { port } = await nameServer(replyWith('9.9.9.9'));
    const refusing = await start({ names: () => names, servers: ['127.0.0.1'], serverPort: port });
    const forwarding = await start({ names: () => names, forward: true, servers: ['127.0.0.1'], serverPort: port });
    expect(await refusing.sendQuery('one.test')).toMatchObject({
      rcode: 'SERVFAIL',
      questions: [{ name: 'one.test' }],
    });
    expect(addressesIn(await forwarding.sendQuery('one.test'))).toEqual(['9.9.9.9']);
    names = knownNames;
    expect(addressesIn(await refusing.sendQuery('one.test'))).toEqual(['1.2.3.4']);
    expect(addressesIn(await forwarding.sendQuery('one.test'))).toEqual(['1.2.3.4']);
  });
});

describe('DNS queries for names outside the table (agent §9)', () => {
  test('are forwarded unchanged if name, type or class is unknown', async () => {
    const { port, received } = await nameServer((query, send) => send(responseTo(query, '9.9.9.9', { flags: 0x0183 })));
    const { sendQuery, counts } = await start({ servers: ['127.0.0.1'], serverPort: port });
    expect(await sendQuery('unknown.test')).toMatchObject({ rcode: 'NXDOMAIN', answers: [{ data: '9.9.9.9' }] });
    await sendQuery('one.test', 'TXT');
    await sendQuery('one.test', 'A', { questions: [{ name: 'one.test', type: 'A', class: 'CH' }] });
    expect(received.map((query) => decode(query).questions)).toMatchObject([
      [{ name: 'unknown.test', type: 'A' }],
      [{ name: 'one.test', type: 'TXT' }],
      [{ name: 'one.test', class: 'CH' }],
    ]);
    expect(counts).toMatchObject({ requests: 3, failures: 0 });
  });

  test('are forwarded over TCP if received over TCP, and each gets its response', async () => {
    const { port } = await nameServer(replyWith('9.9.9.9'));
    const { sendTcpQueries } = await start({ servers: ['127.0.0.1'], serverPort: port });
    const responses = await sendTcpQueries(question('a.test'), question('one.test'), question('b.test'));
    expect(responses.map((one) => one.questions![0]!.name).sort()).toEqual(['a.test', 'b.test', 'one.test']);
  });

  test('are sent to the next server if one fails or does not respond, and get SERVFAIL if all servers fail', async () => {
    const { port } = await nameServer(replyWith('9.9.9.9'));
    const { sendQuery } = await start({ servers: ['127.0.0.9', '127.0.0.1'], serverPort: port, random: () => 0 });
    expect(addressesIn(await sendQuery('unknown.test'))).toEqual(['9.9.9.9']);
    const silentServer = await nameServer(() => {});
    const {
      sendQuery: queryWithoutResponse,
      counts,
      upstream,
    } = await start({ servers: ['127.0.0.1'], serverPort: silentServer.port, timeoutMs: 100 });
    expect(await queryWithoutResponse('unknown.test')).toMatchObject({
      rcode: 'SERVFAIL',
      questions: [{ name: 'unknown.test' }],
    });
    expect(counts).toMatchObject({ requests: 1, failures: 1 });
    expect(upstream.inFlightCount).toBe(0);
  });

  test('are sent to the next server immediately if one is unreachable', async () => {
    const { port } = await nameServer(replyWith('9.9.9.9'));
    // The kernel rejects connecting a socket to this address.
    const servers = ['255.255.255.255', '127.0.0.1'];
    const { sendQuery } = await start({ servers, serverPort: port, random: () => 0, timeoutMs: 100_000 });
    expect(addressesIn(await sendQuery('unknown.test'))).toEqual(['9.9.9.9']);
  });

  test("get the first of all servers' responses in parallel mode", async () => {
    const { port } = await nameServer(replyWith('9.9.9.9'));
    const { sendQuery } = await start({
      servers: ['127.0.0.9', '127.0.0.1'],
      serverPort: port,
      parallel: true,
      timeoutMs: 5_000,
    });
    expect(addressesIn(await sendQuery('unknown.test'))).toEqual(['9.9.9.9']);
  });

  test('ignore spoofed responses with another ID, question or sender, and use random IDs and ports', async () => {
    const forged = '6.6.6.6';
    const server = await nameServer((query, send) => {
      const { id = 0 } = decode(query);
      send(responseTo(query, forged, { id: (id + 1) & 0xffff }));
      send(responseTo(query, forged, { questions: [{ name: 'other.test', type: 'A' }] }));
      const asQuestion = responseTo(query, forged);
      asQuestion.writeUInt16BE(asQuestion.readUInt16BE(2) & 0x7fff, 2);
      send(asQuestion);
      send(Buffer.of(1, 2, 3));
      const otherSender = createSocket('udp4');
      otherSender.send(responseTo(query, forged), server.peers.at(-1)!, '127.0.0.1', () => {
        otherSender.close();
        send(responseTo(query, '9.9.9.9'));
      });
    });
    const { sendQuery } = await start({ servers: ['127.0.0.1'], serverPort: server.port, timeoutMs: 5_000 });
    for (let i = 0; i < 20; i++)
      expect(addressesIn(await sendQuery('unknown.test', 'A', { id: 7 }))).toEqual(['9.9.9.9']);
    expect(new Set(server.received.map((query) => query.readUInt16BE(0))).size).toBeGreaterThan(15);
    expect(new Set(server.peers).size).toBeGreaterThan(15);
  });

  test('are limited in number while pending, without affecting names in the table', async () => {
    const silentServer = await nameServer(() => {});
    const { port, sendQuery, counts, upstream } = await start({
      servers: ['127.0.0.1'],
      serverPort: silentServer.port,
      timeoutMs: 60_000,
      maxInFlight: 10,
    });
    const client = createSocket('udp4');
    onTestFinished(() => {
      client.close();
    });
    let refusedCount = 0;
    client.on('message', (message) => {
      if ((message.readUInt16BE(2) & 0xf) === 2) refusedCount++;
    });
    for (let i = 0; i < 50; i++) client.send(encode(question(`u${i}.test`)), port, '127.0.0.1');
    await expect.poll(() => refusedCount).toBe(40);
    expect(upstream.inFlightCount).toBe(10);
    expect(counts).toMatchObject({ requests: 10, refused: 40 });
    expect(addressesIn(await sendQuery('one.test'))).toEqual(['1.2.3.4']);
    upstream.close();
    await expect.poll(() => upstream.inFlightCount).toBe(0);
  });
});

describe('hostile DNS clients (agent §9)', () => {
  test('get the matching error code, or no response, if the message is not a query', async () => {
    const { sendQuery, port } = await start();
    expect(await sendQuery('one.test', 'A', { questions: [] })).toMatchObject({ rcode: 'SERVFAIL' });
    expect(await sendQuery('one.test', 'A', { flags: 0x2800 })).toMatchObject({ rcode: 'NOTIMP' });
    const twoQuestions = [
      { name: 'a', type: 'A' as const },
      { name: 'b', type: 'A' as const },
    ];
    expect(await sendQuery('', 'A', { questions: twoQuestions })).toMatchObject({ rcode: 'FORMERR' });
    const cutQuery = encode(question('one.test')).subarray(0, 20);
    expect(decode(await datagram(port, cutQuery))).toMatchObject({ rcode: 'FORMERR', questions: [] });
    const greedy = encode(question('one.test'));
    greedy.writeUInt16BE(0xffff, 6);
    expect(decode(await datagram(port, greedy))).toMatchObject({ rcode: 'FORMERR' });
    const responseMessage = encode({ ...question('one.test'), type: 'response' });
    expect(readQuery(responseMessage)).toEqual({ kind: 'drop' });
    expect(readQuery(Buffer.alloc(11))).toEqual({ kind: 'drop' });
  });

  test('never get a response above the size they accept, however small the query', async () => {
    const { port } = await start();
    for (const size of [1, 100, 512, 600, 1232, 4096]) {
      const message = encode(question('many.test', 'A', edns(size)));
      expect((await datagram(port, message)).length).toBeLessThanOrEqual(Math.max(size, 512));
    }
  });

  test('cannot match a name by a label that contains a dot or by letters of other alphabets', async () => {
    const { port } = await nameServer(replyWith('9.9.9.9'));
    const { port: ownPort } = await start({ servers: ['127.0.0.1'], serverPort: port });
    const message = encode(question('one.test'));
    const dotted = Buffer.concat([message.subarray(0, 12), Buffer.from('\x08one.test\0\0\x01\0\x01', 'latin1')]);
    expect(addressesIn(decode(await datagram(ownPort, dotted)))).not.toContain('1.2.3.4');
    expect(namesOf({ 'k.test': ['1.1.1.1'] }).find('\u212a.test.')).toBeUndefined();
  });

  test('are disconnected over TCP if they send nothing, half a message or too much, while others are served', async () => {
    const silentServer = await nameServer(() => {});
    const { port, sendTcpQueries } = await start({
      servers: ['127.0.0.1'],
      serverPort: silentServer.port,
      timeoutMs: 60_000,
    });
    const greedy = connect(port, '127.0.0.1');
    const halfOpen = connect(port, '127.0.0.1');
    halfOpen.write(Buffer.of(0xff, 0xff, 1, 2));
    greedy.write(Buffer.concat(Array.from({ length: 100 }, () => frameMessage(encode(question('unknown.test'))))));
    greedy.resume();
    greedy.on('error', () => {});
    await once(greedy, 'close');
    expect(addressesIn((await sendTcpQueries(question('one.test')))[0]!)).toEqual(['1.2.3.4']);
    halfOpen.destroy();
  });

  test('cause no error with random or mutated queries', async () => {
    const rounds = sized({ quick: 5_000, short: 20_000, full: 100_000 });
    const seed = encode(question('one.test.ns1.svc.cluster.local', 'A', edns(4096)));
    const seeds = [seed, encode(question('one.test')), responseTo(seed, '1.1.1.1')];
    let state = 0x9e37;
    const random = (limit: number): number => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return Math.floor((state / 2 ** 32) * limit);
    };
    const kinds = new Map<string, number>();
    for (let round = 0; round < rounds; round++) {
      const message =
        random(4) === 0
          ? Buffer.from(Array.from({ length: random(80) }, () => random(256)))
          : Buffer.from(seeds[random(seeds.length)]!);
      for (let i = random(6); i > 0 && message.length > 0; i--) message[random(message.length)] = random(256);
      const cutMessage = random(3) === 0 ? message.subarray(0, random(message.length + 1)) : message;
      const read = readQuery(cutMessage);
      kinds.set(read.kind, (kinds.get(read.kind) ?? 0) + 1);
      if (read.kind === 'failed') expect(read.response.length).toBeLessThanOrEqual(Math.max(cutMessage.length, 12));
      if (read.kind === 'query') expectWellFormed(read.query);
      expect(isResponseTo(cutMessage, 1, { message: seed, questionEnd: 48 } as DnsQuery)).toBeTypeOf('boolean');
    }
    for (const kind of ['query', 'failed', 'drop']) expect(kinds.get(kind), kind).toBeGreaterThan(rounds / 100);
    // The same over a socket. The server must still respond afterwards.
    const { sendQuery, port } = await start();
    const client = createSocket('udp4');
    for (let round = 0; round < 2_000; round++) {
      const message = Buffer.from(seeds[round % 2]!);
      for (let i = random(8); i > 0; i--) message[random(message.length)] = random(256);
      client.send(message, port, '127.0.0.1');
      if (round % 100 === 0) await sleep(1);
    }
    client.close();
    expect(addressesIn(await sendQuery('one.test'))).toEqual(['1.2.3.4']);
  });
});

function expectWellFormed({ name, questionEnd, message, maxUdpBytes }: DnsQuery): void {
  expect(questionEnd).toBeLessThanOrEqual(message.length);
  expect(maxUdpBytes).toBeGreaterThanOrEqual(512);
  expect(name.endsWith('.')).toBe(true);
}

function serverAt(port: number): DnsServer {
  const counts = { requests: 0, failures: 0, refused: 0, recordDuration: () => {} };
  return new DnsServer({
    addresses: ['127.0.0.1'],
    port,
    names: () => knownNames,
    forwardBeforeTable: false,
    upstream: new DnsUpstream({ servers: [], timeoutMs: 1, parallel: false }, counts),
    counts: { requests: 0 },
    onFailed: (error) => expect.fail(error.message),
  });
}

test('reports a port in use, and closes sockets that are already open (agent §9)', async () => {
  const takenServer = createServer();
  takenServer.listen(0, '127.0.0.1');
  await once(takenServer, 'listening');
  onTestFinished(() => {
    takenServer.close();
  });
  const { port } = takenServer.address() as AddressInfo;
  const server = serverAt(port);
  await expect(server.open()).rejects.toThrow(/EADDRINUSE/);
  const udp = createSocket('udp4');
  udp.bind(port, '127.0.0.1');
  await once(udp, 'listening');
  udp.close();
});

test('selects another port if the one that the system selected for UDP is in use for TCP (agent §9)', async () => {
  const otherServer = createServer();
  otherServer.listen(0, '127.0.0.1');
  await once(otherServer, 'listening');
  onTestFinished(() => void otherServer.close());
  const { port: portInUse } = otherServer.address() as AddressInfo;
  const bind = vi.spyOn(UdpSocket.prototype, 'bind');
  onTestFinished(() => bind.mockRestore());
  bind.mockImplementationOnce(function (this: UdpSocket) {
    return this.bind(portInUse, '127.0.0.1');
  });
  const server = serverAt(0);
  onTestFinished(() => server.close());
  const port = await server.open();
  expect(port).not.toBe(portInUse);
  expect(bind).toHaveBeenLastCalledWith({ port: 0, address: '127.0.0.1' });
});

test('leaks no file descriptors when it repeatedly tries to open a port in use (agent §9)', async () => {
  const other = createSocket('udp4');
  other.bind(0, '127.0.0.1');
  await once(other, 'listening');
  onTestFinished(() => void other.close());
  const files = (): number => readdirSync('/proc/self/fd').length;
  const initialCount = files();
  for (let time = 0; time < 20; time++) {
    const server = serverAt(other.address().port);
    await expect(server.open()).rejects.toThrow(/EADDRINUSE/);
  }
  await sleep(50);
  expect(files()).toBeLessThan(initialCount + 10);
});
