import { ChartpilotError } from '../../runtime/errors.ts';
import type { LogWarning } from '../../runtime/log-events/log-events.ts';
import { listOf } from '../environment.ts';

/** Supported registries. The ServiceEntry registry always exists in addition. */
export type RegistryName = 'Kubernetes' | 'Consul' | 'Mock' | 'Memory';

const acceptedNames = ['Kubernetes', 'Consul', 'MCP', 'Mock', 'Memory'];

export function registryNames(text: string, warn: (warning: LogWarning) => void): string[] {
  const names = listOf(text);
  for (const name of new Set(names.filter((registryName, i) => names.indexOf(registryName) !== i))) {
    warn({ event: 'option.ignored', setting: '--registries', value: name, reason: 'occurs more than once' });
  }
  return [...new Set(names)];
}

/**
 * MCP adds no registry, because its services arrive as ServiceEntries.
 *
 * @throws ChartpilotError FLAG_INVALID for an unknown registry
 */
export function supportedRegistries(names: readonly string[]): RegistryName[] {
  return names.flatMap((name): RegistryName[] => {
    switch (name) {
      case 'Kubernetes':
      case 'Consul':
      case 'Mock':
      case 'Memory':
        return [name];
      case 'MCP':
        return [];
      default:
        throw unsupportedError(name);
    }
  });
}

function unsupportedError(name: string): ChartpilotError {
  return new ChartpilotError('FLAG_INVALID', `--registries: service registry ${name} is not supported`, {
    fields: { path: '--registries', got: name },
    hint: `Supported registries: ${acceptedNames.join(', ')}. Use --registries= for none.`,
  });
}
