/** Port names that ServiceEntries of one host use for different ports: endpoints belong to ports by name (spec/discovery.md §8.3). */
import type { Config } from '../../model/config/config.ts';
import type { ServiceEntry } from '../../model/kinds/service-entry.ts';
import { type ConfigCheck, isWritten } from './config-warning.ts';

interface NamedPort {
  readonly config: Config<ServiceEntry>;
  readonly number: number;
  readonly index: number;
}

export const checkPortNames: ConfigCheck = function* ({ configs }) {
  const first = new Map<string, NamedPort>();
  for (const config of configs.ServiceEntry) {
    yield undefined;
    if (!isWritten(config)) continue;
    for (const host of config.spec.hosts) {
      for (const [index, { name, number }] of config.spec.ports.entries()) {
        const key = `${config.namespace} ${host} ${name}`;
        const older = first.get(key);
        if (older === undefined) first.set(key, { config, number, index });
        if (older === undefined || older.number === number || older.config === config) continue;
        yield {
          ...{ code: 'PORT_NAME_CONFLICT', config, field: `spec.ports[${index}].name` },
          message: `${host} has the port name ${name} for port ${number} and, in ServiceEntry ${older.config.namespace}/${older.config.name}, for port ${older.number}, so connections to one port reach endpoints of the other: give each port its own name`,
          other: { config: older.config, field: `spec.ports[${older.index}].name` },
        };
      }
    }
  }
};
