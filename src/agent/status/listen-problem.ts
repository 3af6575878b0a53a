import { isSystemError, messageOf } from '../../runtime/errors.ts';

export function listenProblem(error: Error, port: number): string {
  if (isSystemError(error, 'EADDRINUSE')) {
    return `status port ${port} is in use: stop the process that uses it, or set --statusPort (0 disables it)`;
  }
  if (isSystemError(error, 'EACCES'))
    return `status port ${port}: permission denied, set --statusPort to a port above 1023`;
  return `status port ${port}: ${messageOf(error)}`;
}
