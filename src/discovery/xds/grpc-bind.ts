import { logVerbosity, setLogVerbosity } from '@grpc/grpc-js';
import { ChartpilotError } from '../../runtime/errors.ts';

// Disables the error output of grpc-js to standard error, unless its environment variable enables it.
if (process.env.GRPC_VERBOSITY === undefined) setLogVerbosity(logVerbosity.NONE);

/** grpc-js contains the reason only in the error's message. */
export function bindError(address: string, error: Error): ChartpilotError {
  if (error.message.includes('EADDRINUSE')) {
    const hint = 'stop the process that uses the port, or choose another address';
    return new ChartpilotError('PORT_IN_USE', address, { cause: error, hint, fields: { path: address } });
  }
  return new ChartpilotError('LISTEN_FAILED', `${address}: ${error.message}`, {
    cause: error,
    fields: { path: address },
  });
}
