import type { ClientRequest } from 'node:http';

/**
 * An answer that changes the protocol (101) is none of HTTP's. Where nobody listens for it, Node closes the connection and tells neither
 * of an answer nor of an error: whoever waits for one of both would for ever.
 */
export function refuseOtherProtocol(outgoing: ClientRequest, refuse: (error: Error) => void): void {
  outgoing.once('upgrade', (_, socket) => {
    socket.destroy();
    refuse(new Error('response switches to another protocol'));
  });
}
