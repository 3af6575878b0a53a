import { connect } from 'node:net';
import type { Endpoint, LoadClient } from './client.ts';
import { Exchange, type Expectation } from './exchange.ts';

/**
 * A TCP connection for each exchange: sends one line and succeeds with the first received bytes. A connection that the server closes without sending
 * bytes has failed. The name of the server, a first line such as `v1`, is the version.
 */
export function tcpClient({ host, port, onConnected }: Endpoint): LoadClient {
  return {
    send(_path, expectation: Expectation) {
      const socket = connect({ host, port });
      const exchange = new Exchange(expectation, () => socket.destroy());
      socket.on('connect', () => {
        exchange.phase = 'response';
        onConnected();
        socket.write('hello\n');
      });
      socket.on('data', (chunk: Buffer) => {
        exchange.headers(200, chunk.toString('latin1').split('\n')[0]);
        exchange.data(chunk);
        exchange.end(true);
        socket.destroy();
      });
      socket.on('error', (error) => exchange.fail(error));
      socket.on('close', () => exchange.end(false));
      return exchange.outcome;
    },
    close: () => {},
  };
}
