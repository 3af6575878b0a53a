/** The names of `--registries` (spec/discovery.md §1.2). */
import { ChartpilotError } from '../runtime/errors.ts';
import type { LogWarning } from '../runtime/log-events/log-events.ts';
import { listOf } from './environment.ts';

/** Registries that this program has. Besides them there is always the one of ServiceEntries. */
export type RegistryName = 'Kubernetes' | 'Mock' | 'Memory';

const known = ['Kubernetes', 'Consul', 'MCP', 'Mock', 'Memory'];

/** The items of the flag, each once. */
export function registryNames(text: string, warn: (warning: LogWarning) => void): string[] {
  const names = listOf(text);
  for (const name of new Set(names.filter((item, i) => names.indexOf(item) !== i))) {
    warn({ event: 'option.ignored', setting: '--registries', value: name, reason: 'is listed twice' });
  }
  return [...new Set(names)];
}

/**
 * Those of the names that are registries of their own. MCP is none: its services come as ServiceEntries.
 *
 * @throws ChartpilotError FLAG_INVALID for a registry that nobody knows, or that cannot be read yet
 */
export function supportedRegistries(names: readonly string[]): RegistryName[] {
  return names.flatMap((name): RegistryName[] => {
    switch (name) {
      case 'Kubernetes':
      case 'Mock':
      case 'Memory':
        return [name];
      case 'MCP':
        return [];
      case 'Consul':
        throw unsupported(`service registry ${name} cannot be read yet`);
      default:
        throw unsupported(`service registry ${name} is not supported`);
    }
  });
}

function unsupported(detail: string): ChartpilotError {
  return new ChartpilotError('FLAG_INVALID', `--registries: ${detail}`, {
    hint: `Known are ${known.join(', ')}; --registries= for none.`,
  });
}
