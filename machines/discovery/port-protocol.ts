/** port → its chart. Clients are served at this address. */
export type PortListening = { type: 'port.listening'; address: string };
/** port → its chart. The port cannot be opened, or its socket failed and is closed. */
export type PortFailed = { type: 'port.closed'; reason: string };
