/**
 * Runs in a node's network namespace. Connects each client of a Unix socket to the address in the client's first line (`10.96.0.1 443`), so that
 * tests outside the namespace reach pods and Services. Usage: node dialer.ts SOCKET
 */
import { connect, createServer } from 'node:net';

/** A longer first line is rejected. */
const maxLineBytes = 100;

createServer({ allowHalfOpen: true, pauseOnConnect: false }, (client) => {
  client.on('error', () => client.destroy());
  let line = '';
  const onData = (bytes: Buffer): void => {
    line += bytes.toString('latin1');
    const end = line.indexOf('\n');
    if (end < 0) {
      if (line.length > maxLineBytes) client.destroy();
      return;
    }
    client.off('data', onData);
    client.pause();
    const [host = '', port] = line.slice(0, end).split(' ');
    const server = connect({ host, port: Number(port), allowHalfOpen: true });
    server.on('error', () => client.destroy());
    server.on('close', () => client.destroy());
    client.on('close', () => server.destroy());
    server.write(line.slice(end + 1), 'latin1');
    client.pipe(server).pipe(client);
  };
  client.on('data', onData);
}).listen(process.argv[2], () => console.log('listening'));
