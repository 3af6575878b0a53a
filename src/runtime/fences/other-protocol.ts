import type { ClientRequest } from 'node:http';

/**
 * Rejects a response that switches the protocol (101). Without a listener for `upgrade`, Node emits neither a response nor an error, so the caller
 * would wait forever.
 */
export function rejectUpgrade(clientRequest: ClientRequest, reject: (error: Error) => void): void {
  clientRequest.once('upgrade', (_, socket) => {
    socket.destroy();
    reject(new Error('response switches to another protocol'));
  });
}
