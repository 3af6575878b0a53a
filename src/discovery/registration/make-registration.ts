/** Workloads that register themselves: their connections, and the actor that writes their entries. */
import type { RegistrationOptions } from '../options/discovery-options.ts';
import type { ResourceSource } from '../xds/resource-source.ts';
import { registeringSource } from './registering-source.ts';
import { registrationsWithEffects } from './registrations.effects.ts';
import type { WorkloadRegistrations } from './workload-registrations.ts';

export interface RegistrationParts {
  /** `undefined` if no cluster is configured: then no workload registers itself. */
  readonly registrations: WorkloadRegistrations | undefined;
  readonly options: RegistrationOptions;
  readonly clusterAliases: Readonly<Record<string, string>>;
  /** Entries of replicas that no longer run. */
  readonly orphans: () => { look(): void } | undefined;
}

export function makeRegistration({ registrations, options, clusterAliases, orphans }: RegistrationParts) {
  const { enabled, healthChecks } = options;
  return {
    /** Resources of another source, for workloads that register themselves as well. */
    sourceBeside: (source: ResourceSource): ResourceSource =>
      registrations && enabled ? registeringSource(source, { registrations, clusterAliases, healthChecks }) : source,
    actors: () => registrations && { registrations: registrationsWithEffects(registrations, orphans()) },
  };
}
