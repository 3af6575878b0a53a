import { connect } from 'node:net';
import { parseHostAndPort } from '../../model/mesh/proxy-config.ts';
import { connectionProblem } from './admin-client.ts';

const connectLimitMs = 2_000;

/** `undefined` if the address accepts a connection. */
export function whyUnreachable(address: string, limitMs = connectLimitMs): Promise<string | undefined> {
  const target = parseHostAndPort(address);
  if (target === undefined) return Promise.resolve('not host:port');
  return new Promise((resolve) => {
    const socket = connect({ ...target, timeout: limitMs });
    const finish = (problem: string | undefined): void => {
      socket.destroy();
      resolve(problem);
    };
    socket.once('connect', () => finish(undefined));
    socket.once('timeout', () => finish(`no connection within ${limitMs} ms`));
    socket.once('error', (error) => finish(connectionProblem(error)));
  });
}
