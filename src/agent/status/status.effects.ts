import { statusMachine } from '../../../machines/agent/status/status.machine.ts';
import type { StatusServerEnvironment } from './status-environment.ts';
import { statusServer } from './status-server.ts';

export function statusWithEffects(environment: StatusServerEnvironment) {
  return statusMachine.provide({ actors: { http: statusServer(environment) } });
}
