import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { eventually } from '../../../../test/harness/eventually.ts';
import { uncaughtErrors } from '../../../../test/harness/uncaught-errors.ts';
import { ConnectionQueue, type ConnectionQueueOptions } from './connection-queue.ts';

const options: ConnectionQueueOptions = {
  ...{ maxPerAddress: 10, maxTotal: 20, maxTotalBytes: 1_000_000, maxWaitMs: 600_000 },
  ...{ isOpen: () => true, isKnown: () => false },
};
/** No slot expires during a test. */
const noLimitMs = 600_000;

let server: Server;
let acceptedSockets: Socket[];
const clients: Socket[] = [];

beforeEach(async () => {
  acceptedSockets = [];
  server = createServer({ pauseOnConnect: true }, (socket) => {
    socket.on('error', () => {});
    acceptedSockets.push(socket);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
});

afterEach(() => {
  for (const socket of [...clients.splice(0), ...acceptedSockets]) socket.destroy();
  server.close();
});

/** @returns both ends of a new connection */
async function connectPair(hello = ''): Promise<{ client: Socket; socket: Socket }> {
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {});
  clients.push(client);
  const count = acceptedSockets.length;
  if (hello !== '') client.write(hello);
  await eventually('the connection is accepted', () => acceptedSockets.length > count);
  return { client, socket: acceptedSockets[count]! };
}

/** Adds a client that has sent its first bytes. */
async function addReady(
  queue: ConnectionQueue,
  group: string,
  onStart: () => void,
): Promise<{ client: Socket; socket: Socket }> {
  const pair = await connectPair('hello');
  let hasBegun = false;
  const waitingBefore = queue.waiting;
  queue.add(group, pair.socket, () => {
    hasBegun = true;
    onStart();
  });
  await eventually('the first bytes have arrived', () => hasBegun || queue.waiting > waitingBefore);
  return pair;
}

test('ConnectionQueue sets up connections in order, at most one per slot at a time', async () => {
  const queue = new ConnectionQueue(options, 2, noLimitMs);
  const startedNumbers: number[] = [];
  const sockets: Socket[] = [];
  for (let i = 0; i < 5; i++) sockets.push((await addReady(queue, 'one', () => void startedNumbers.push(i))).socket);
  expect([startedNumbers, queue.waiting, queue.isFull]).toEqual([[0, 1], 3, true]);
  queue.setUpCompleted(sockets[1]!);
  queue.setUpCompleted(sockets[1]!);
  await eventually('the third connection begins', () => startedNumbers.length === 3);
  sockets[0]!.destroy();
  await eventually('a closed connection releases its slot', () => startedNumbers.length === 4);
  queue.setSlots(3);
  await eventually('a slot more lets the last connection begin', () => startedNumbers.length === 5);
  expect(startedNumbers).toEqual([0, 1, 2, 3, 4]);
});

test('ConnectionQueue assigns no slot to a silent client, and closes its connection after a timeout', async () => {
  const expired: string[] = [];
  const queue = new ConnectionQueue(
    { ...options, maxWaitMs: 300, onExpired: () => void expired.push('') },
    1,
    noLimitMs,
  );
  const startedNames: string[] = [];
  const silentPair = await connectPair();
  queue.add('one', silentPair.socket, () => void startedNames.push('silent'));
  await addReady(queue, 'two', () => void startedNames.push('other'));
  expect(startedNames).toEqual(['other']);
  await eventually('the silent connection is closed', () => silentPair.socket.destroyed && queue.size === 0);
  expect(expired).toEqual([]);
});

test('ConnectionQueue closes and reports a connection that waits too long for a slot', async () => {
  let expired = 0;
  const queue = new ConnectionQueue({ ...options, maxWaitMs: 300, onExpired: () => expired++ }, 1, noLimitMs);
  await addReady(queue, 'one', () => {});
  const { socket } = await addReady(queue, 'one', () => {});
  await eventually('the connection is closed', () => socket.destroyed);
  expect([expired, queue.size, queue.waiting]).toEqual([1, 0, 0]);
});

test('ConnectionQueue frees the slot of an unfinished handshake after a timeout', async () => {
  const queue = new ConnectionQueue(options, 1, 50);
  const startedNames: string[] = [];
  for (const name of ['first', 'second']) await addReady(queue, 'one', () => void startedNames.push(name));
  await eventually('both handshakes have begun', () => startedNames.length === 2);
  expect(startedNames).toEqual(['first', 'second']);
});

test('ConnectionQueue removes a client that disconnects while waiting', async () => {
  let isOpen = false;
  const queue = new ConnectionQueue({ ...options, isOpen: () => isOpen }, 1, noLimitMs);
  const startedNames: string[] = [];
  const closedPair = await addReady(queue, 'one', () => void startedNames.push('closed'));
  await addReady(queue, 'one', () => void startedNames.push('open'));
  closedPair.client.end();
  await eventually('the connection has left', () => queue.size === 1);
  isOpen = true;
  queue.beginQueued();
  await eventually('the other handshake begins', () => startedNames.length > 0);
  expect(startedNames).toEqual(['open']);
});

test('ConnectionQueue alternates between addresses, and assigns three of four slots to addresses with known nodes', async () => {
  let isOpen = false;
  const isKnownGroup = (group: string): boolean => group === 'known';
  const queue = new ConnectionQueue({ ...options, isOpen: () => isOpen, isKnown: isKnownGroup }, 10);
  const startedNames: string[] = [];
  const names = ['many 1', 'many 2', 'many 3', 'one 1', ...[1, 2, 3, 4].map((i) => `known ${i}`)];
  for (const name of names) {
    await addReady(queue, name.split(' ')[0]!, () => void startedNames.push(name));
  }
  isOpen = true;
  queue.beginQueued();
  await eventually('all have begun', () => startedNames.length === names.length);
  expect(startedNames).toEqual(['known 1', 'known 2', 'known 3', 'many 1', 'known 4', 'one 1', 'many 2', 'many 3']);
});

test('ConnectionQueue starts handshakes of other addresses while one address has many unfinished handshakes', async () => {
  const queue = new ConnectionQueue({ ...options, maxPerAddress: 100, maxTotal: 200 }, 4, 50);
  const startedNames: string[] = [];
  for (let i = 0; i < 100; i++) await addReady(queue, 'hostile', () => void startedNames.push('hostile'));
  const waitingBefore = startedNames.length;
  await addReady(queue, 'other', () => void startedNames.push('other'));
  await eventually('the other handshake begins', () => startedNames.includes('other'));
  // Each of the two addresses may start at most one more connection.
  expect(startedNames.indexOf('other') - waitingBefore).toBeLessThanOrEqual(2);
});

test('ConnectionQueue limits connections per address and in total', async () => {
  const queue = new ConnectionQueue({ ...options, isOpen: () => false, maxPerAddress: 2, maxTotal: 3 }, 1);
  const add = async (group: string): Promise<boolean> => {
    const { socket } = await connectPair('hello');
    const waitingBefore = queue.waiting;
    const isAdded = queue.add(group, socket, () => {});
    if (isAdded) await eventually('the first bytes have arrived', () => queue.waiting > waitingBefore);
    return isAdded;
  };
  const addResults: boolean[] = [];
  for (const group of ['one', 'one', 'one', 'two', 'three']) addResults.push(await add(group));
  expect([addResults, queue.size]).toEqual([[true, true, false, true, false], 3]);
  queue.clear();
  expect([queue.size, queue.waiting]).toEqual([0, 0]);
});

test('ConnectionQueue closes a silent connection at the limit of an address or, for a new address, at the total limit', async () => {
  const queue = new ConnectionQueue({ ...options, maxPerAddress: 2, maxTotal: 2 }, 1);
  const sockets: Socket[] = [];
  const addResults: boolean[] = [];
  for (const group of ['one', 'one', 'one', 'two', 'one']) {
    const { socket } = await connectPair();
    sockets.push(socket);
    addResults.push(queue.add(group, socket, () => {}));
  }
  expect(addResults).toEqual([true, true, true, true, false]);
  expect(sockets.map(({ destroyed }) => destroyed)).toEqual([true, true, false, false, true]);
});

test.each([
  { limit: 'the limit of a connection', maxTotalBytes: 1_000_000, eachBytes: [100_000] },
  { limit: 'the limit of all connections', maxTotalBytes: 150_000, eachBytes: [90_000, 90_000] },
])('ConnectionQueue closes a connection whose first bytes exceed $limit', async ({ maxTotalBytes, eachBytes }) => {
  const queue = new ConnectionQueue({ ...options, isOpen: () => false, maxTotalBytes }, 1);
  const pairs: { client: Socket; socket: Socket }[] = [];
  for (const _ of eachBytes) pairs.push(await addReady(queue, 'one', () => {}));
  const sockets = pairs.map(({ socket }) => socket);
  for (const [index, bytes] of eachBytes.entries()) {
    const { client, socket } = pairs[index]!;
    // Node reads at most 64 KiB ahead; only with these additional bytes does the socket exceed that.
    socket.unshift(Buffer.alloc(bytes));
    client.write('more');
    await eventually('the bytes are counted', () => socket.destroyed || socket.readableLength > bytes + 'hello'.length);
  }
  await eventually('the last connection is closed', () => sockets.at(-1)!.destroyed);
  expect(queue.size).toBe(sockets.length - 1);
  expect(sockets.filter(({ destroyed }) => destroyed)).toHaveLength(1);
  queue.clear();
});

test.each([
  { address: 'an unknown address', name: 'unknown', heldBytes: 60_000 },
  { address: 'an address with known nodes', name: 'known', heldBytes: 80_000 },
])('ConnectionQueue does not read from $address while many first bytes are buffered', async ({ name, heldBytes }) => {
  let isOpen = false;
  const isKnownGroup = (group: string): boolean => group === 'known';
  const queue = new ConnectionQueue(
    { ...options, isOpen: () => isOpen, isKnown: isKnownGroup, maxTotalBytes: 100_000 },
    1,
  );
  const startedNames: string[] = [];
  const first = await addReady(queue, 'one', () => void startedNames.push('first'));
  first.socket.unshift(Buffer.alloc(heldBytes));
  first.client.write('more');
  await eventually('the bytes are counted', () => first.socket.readableLength > heldBytes + 'hello'.length);
  const secondPair = await connectPair('hello');
  queue.add(name, secondPair.socket, () => void startedNames.push('second'));
  // Below three quarters of the limit, another address with known nodes is still read.
  if (name === 'unknown') await addReady(queue, 'known', () => void startedNames.push('known'));
  else await new Promise((resolve) => setTimeout(resolve, 100));
  expect([secondPair.socket.readableLength, secondPair.socket.destroyed, startedNames]).toEqual([0, false, []]);
  isOpen = true;
  queue.beginQueued();
  await eventually('the second connection begins', () => startedNames.includes('second'));
});

test('ConnectionQueue leaves the data of clients that send late in the kernel while many first bytes are buffered', async () => {
  let isOpen = false;
  const maxTotalBytes = 60_000;
  const queue = new ConnectionQueue({ ...options, isOpen: () => isOpen, maxTotalBytes }, 10, noLimitMs);
  const startedSockets: Socket[] = [];
  const lateClients = [await connectPair(), await connectPair(), await connectPair()];
  for (const [index, { socket }] of lateClients.entries())
    queue.add(`${index}`, socket, () => void startedSockets.push(socket));
  await new Promise((resolve) => setTimeout(resolve, 50));
  // Any two of them exceed the limit.
  for (const { client } of lateClients) client.write(Buffer.alloc(40_000));
  await eventually('the first bytes of one connection are buffered', () => queue.waiting > 0);
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(lateClients.map(({ socket }) => socket.destroyed)).toEqual([false, false, false]);
  expect(lateClients.reduce((sum, { socket }) => sum + socket.readableLength, 0)).toBeLessThan(maxTotalBytes);
  isOpen = true;
  queue.beginQueued();
  await eventually('all connections begin', () => startedSockets.length === 3);
});

test('ConnectionQueue reads other connections beside many silent ones', async () => {
  const queue = new ConnectionQueue({ ...options, maxPerAddress: 400, maxTotal: 400 }, 1, noLimitMs);
  for (let i = 0; i < 300; i++) {
    const { port } = server.address() as AddressInfo;
    clients.push(connect(port, '127.0.0.1').on('error', () => {}));
  }
  await eventually('the connections are accepted', () => acceptedSockets.length === 300);
  for (const socket of acceptedSockets) queue.add('silent', socket, () => {});
  let hasBegun = false;
  queue.add('other', (await connectPair('hello')).socket, () => (hasBegun = true));
  await eventually('the other connection begins', () => hasBegun);
});

test('ConnectionQueue reports once when connections start waiting, and once when they stop', async () => {
  const reports: string[] = [];
  const queue = new ConnectionQueue(
    { ...options, onChange: (isQueued) => void reports.push(isQueued ? 'queued' : 'emptied') },
    1,
    noLimitMs,
  );
  const { socket } = await addReady(queue, 'one', () => {});
  expect(reports).toEqual([]);
  for (let i = 0; i < 2; i++) await addReady(queue, 'one', () => {});
  expect(reports).toEqual(['queued']);
  queue.setSlots(10);
  await eventually('all have begun', () => queue.waiting === 0);
  socket.destroy();
  expect(reports).toEqual(['queued', 'emptied']);
});

test('ConnectionQueue continues with other connections after a failed setup', async () => {
  const caughtErrors = uncaughtErrors();
  const queue = new ConnectionQueue(options, 1, noLimitMs);
  const startedNames: string[] = [];
  const failedPair = await addReady(queue, 'one', () => {
    throw new Error('a bug');
  });
  await eventually('the error is reported', () => caughtErrors.length === 1);
  failedPair.socket.destroy();
  await addReady(queue, 'one', () => void startedNames.push('other'));
  await eventually('the other one begins', () => startedNames.length === 1);
});
