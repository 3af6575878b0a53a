import { EventEmitter } from 'node:events';
import { expect, test } from 'vitest';
import { addressGroup, ConnectionBounds } from './connection-bounds.ts';

class Connection extends EventEmitter {
  isClosed = false;

  destroy(): void {
    this.isClosed = true;
    this.emit('close');
  }
}

function createBounds(maxPerAddress: number, maxConnections: number, options: { isIdleReplaced?: boolean } = {}) {
  const bounds = new ConnectionBounds<Connection>({ maxPerAddress, maxConnections, ...options });
  const admit = (address: string): Connection => {
    const connection = new Connection();
    bounds.admit(connection, address);
    return connection;
  };
  return { bounds, come: admit };
}

test('an address at its connection limit loses its longest idle connection to a new one', () => {
  const { bounds, come } = createBounds(2, 10);
  const [first, second, other] = [come('10.0.0.1'), come('10.0.0.1'), come('10.0.0.2')];
  const third = come('10.0.0.1');
  expect([first, second, third, other].map(({ isClosed }) => isClosed)).toEqual([true, false, false, false]);
  expect(bounds.size).toBe(3);
});

test('a new connection is closed if the other connections at the limit are busy', () => {
  const { bounds, come } = createBounds(2, 10);
  const connections = [come('10.0.0.1'), come('10.0.0.1')];
  for (const connection of connections) bounds.busy(connection);
  expect(come('10.0.0.1').isClosed).toBe(true);
  bounds.idle(connections[1]!);
  expect(come('10.0.0.1').isClosed).toBe(false);
  expect(connections.map(({ isClosed }) => isClosed)).toEqual([false, true]);
});

test('the address with the most connections loses one to other addresses at the total limit, but not to itself', () => {
  const { come } = createBounds(10, 4);
  const greedy = [1, 2, 3].map(() => come('10.0.0.1'));
  const modest = come('10.0.0.2');
  expect(come('10.0.0.3').isClosed).toBe(false);
  expect(greedy.map(({ isClosed }) => isClosed)).toEqual([true, false, false]);
  expect(modest.isClosed).toBe(false);
  expect(come('10.0.0.1').isClosed).toBe(true);
});

test('an address without a connection replaces an idle connection, but never a busy one', () => {
  const { bounds, come } = createBounds(10, 3, { isIdleReplaced: true });
  const [busy, idle, other] = ['10.0.0.1', '10.0.0.2', '10.0.0.3'].map(come) as [Connection, Connection, Connection];
  bounds.busy(busy);
  expect(come('10.0.0.4').isClosed).toBe(false);
  expect([busy, idle, other].map(({ isClosed }) => isClosed)).toEqual([false, true, false]);
  expect(come('10.0.0.4').isClosed).toBe(true);
  expect(bounds.size).toBe(3);
});

test('closed connections do not count towards the limits', () => {
  const { bounds, come } = createBounds(1, 1);
  for (let i = 0; i < 100; i++) come(`10.0.0.${i}`).destroy();
  expect(bounds.size).toBe(0);
  expect(come('10.0.1.1').isClosed).toBe(false);
});

test('all notations of an address count as one address, and so does an IPv6 network of a host', () => {
  expect(addressGroup('::ffff:10.0.0.1')).toBe('10.0.0.1');
  expect(addressGroup('2001:db8:1:2:3:4:5:6')).toBe(addressGroup('2001:db8:1:2::7'));
  expect(addressGroup('2001:db8::7')).toBe('2001:db8:0:0');
  expect(addressGroup('fe80::1%eth0')).toBe('fe80:0:0:0');
  expect(addressGroup('::1')).toBe('0:0:0:0');
  expect(addressGroup(undefined)).toBe('');
});
