/**
 * Events of the agent's access log service, from which Istio's standard metrics are counted.
 * Log entries are not events: thousands arrive per second.
 */

/** access-logs/server → access-logs. Envoy can open streams on the socket. */
export type AccessLogSocketListening = { type: 'access-log-socket.listening'; socket: string };
/** access-logs/server → access-logs. The socket cannot be opened, or its server failed. */
export type AccessLogSocketClosed = { type: 'access-log-socket.closed'; reason: string };
/** access-logs/server → access-logs. A worker of Envoy opened a stream. `open`: number of open streams. */
export type AccessLogStreamOpened = { type: 'access-log-stream.opened'; open: number };
/** access-logs/server → access-logs. A stream ended. `reason` is empty if Envoy ended it. */
export type AccessLogStreamClosed = { type: 'access-log-stream.closed'; open: number; reason: string };
/** access-logs/server → access-logs. Processing the entries exceeds the reading budget: the agent stops reading, and Envoy counts dropped entries. */
export type AccessLogsCongested = { type: 'access-logs.congested' };
/** access-logs/server → access-logs. Reading continues. */
export type AccessLogsRelieved = { type: 'access-logs.relieved' };
/** access-logs → agent. Requests are not counted until the socket is open. `pauseMs`: time until the next attempt. */
export type AccessLogsFailed = { type: 'access-logs.failed'; reason: string; pauseMs: number };
