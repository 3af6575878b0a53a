/** Auto-registration of workloads: their connections, and the actor that writes their entries. */
import type { RegistrationOptions } from '../options/discovery-options.ts';
import type { ResourceSource } from '../xds/resource-source.ts';
import { registeringSource } from './registering-source.ts';
import { registrationsWithEffects } from './registrations.effects.ts';
import type { WorkloadRegistrations } from './workload-registrations.ts';

export interface RegistrationParts {
  /** `undefined` if no cluster is configured; auto-registration is then disabled. */
  readonly registrations: WorkloadRegistrations | undefined;
  readonly options: RegistrationOptions;
  readonly clusterAliases: Readonly<Record<string, string>>;
  readonly orphans: () => { check(): void } | undefined;
}

export function makeRegistration({ registrations, options, clusterAliases, orphans }: RegistrationParts) {
  const { enabled, healthChecks } = options;
  return {
    /** Adds auto-registration to the resources of another source. */
    extend: (source: ResourceSource): ResourceSource =>
      registrations && enabled ? registeringSource(source, { registrations, clusterAliases, healthChecks }) : source,
    actors: () => registrations && { registrations: registrationsWithEffects(registrations, orphans()) },
  };
}
