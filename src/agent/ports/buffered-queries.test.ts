import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { BufferedQueries } from './buffered-queries.ts';

test('reads a query that arrives after the reads of an event loop iteration before closing the socket, even if timers are late', async () => {
  const questions = new BufferedQueries();
  const socket = createSocket('udp4', (message, { address, port }) => questions.add(message, address, port));
  const client = createSocket('udp4');
  onTestFinished(() => {
    socket.close();
    client.close();
  });
  socket.bind(0, '127.0.0.1');
  client.bind(0, '127.0.0.1');
  await Promise.all([once(socket, 'listening'), once(client, 'listening')]);
  await sleep(1);
  // Immediates run after the sockets of the turn are read. The busy loop below makes every timer due before the next turn reads.
  setImmediate(() => client.send('question', socket.address().port, '127.0.0.1'));
  const haveAll = questions.waitUntilDrained();
  setImmediate(() => {
    for (const end = performance.now() + 5; performance.now() < end; );
  });
  await haveAll;
  expect(questions.lines).toHaveLength(1);
});
