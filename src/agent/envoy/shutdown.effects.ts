import { shutdownMachine } from '../../../machines/agent/envoy/shutdown.machine.ts';
import { type CountEnvironment, countRequests } from '../admin/requests-in-flight.ts';

export function shutdownWithEffects(environment: CountEnvironment) {
  return shutdownMachine.provide({ actors: { countRequests: countRequests(environment) } });
}
