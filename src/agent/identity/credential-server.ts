/** Whether tokens come from a server of this host (spec/agent.md §5.1): it has this long to answer. */
import { connect } from 'node:net';

const socketPath = './var/run/secrets/credential-uds/socket';
const limitMs = 1_000;

export function credentialServerAnswers(path = socketPath): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ path, timeout: limitMs });
    const settle = (answers: boolean): void => {
      socket.destroy();
      resolve(answers);
    };
    socket.once('connect', () => settle(true));
    socket.once('timeout', () => settle(false));
    socket.once('error', () => settle(false));
  });
}
