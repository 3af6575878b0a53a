import type { RegistrationOptions } from '../options/discovery-options.ts';
import type { ResourceSource } from '../xds/resource-source.ts';
import { registeringSource } from './registering-source.ts';
import { registrationsWithEffects } from './registrations.effects.ts';
import type { WorkloadRegistrations } from './workload-registrations.ts';

export interface RegistrationParts {
  /** Auto-registration requires a cluster. */
  readonly registrations: WorkloadRegistrations | undefined;
  readonly options: RegistrationOptions;
  readonly clusterAliases: Readonly<Record<string, string>>;
  readonly orphans: () => { check(): void } | undefined;
}

export function makeRegistration({ registrations, options, clusterAliases, orphans }: RegistrationParts) {
  const { enabled, healthChecks } = options;
  return {
    extend: (source: ResourceSource): ResourceSource =>
      registrations && enabled ? registeringSource(source, { registrations, clusterAliases, healthChecks }) : source,
    actors: () => registrations && { registrations: registrationsWithEffects(registrations, orphans()) },
  };
}
