import { connect } from 'node:net';

const socketPath = './var/run/secrets/credential-uds/socket';
const limitMs = 1_000;

export function isCredentialServerReachable(path = socketPath): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ path, timeout: limitMs });
    const resolveReachable = (isReachable: boolean): void => {
      socket.destroy();
      resolve(isReachable);
    };
    socket.once('connect', () => resolveReachable(true));
    socket.once('timeout', () => resolveReachable(false));
    socket.once('error', () => resolveReachable(false));
  });
}
