/**
 * Reports ports that ServiceEntries of one host declare differently: endpoints reference ports by name, clients by number.
 */
import type { Config } from '../../../model/config/config.ts';
import type { ServiceEntry } from '../../../model/kinds/workloads/service-entry.ts';
import { type ConfigCheck, isWrittenConfig } from '../config-warning.ts';

interface DeclaredPort {
  readonly config: Config<ServiceEntry>;
  readonly number: number;
  readonly protocol: string;
  readonly index: number;
}

export const checkPortNames: ConfigCheck = function* ({ configs }) {
  const portByName = new Map<string, DeclaredPort>();
  const portByNumber = new Map<string, DeclaredPort>();
  for (const config of configs.ServiceEntry) {
    yield undefined;
    if (!isWrittenConfig(config)) continue;
    for (const host of config.spec.hosts) {
      for (const [index, { name, number, protocol }] of config.spec.ports.entries()) {
        const port = { config, number, protocol, index };
        const namedPort = firstOf(portByName, `${config.namespace} ${host} ${name}`, port);
        if (namedPort.number !== number && namedPort.config !== config)
          yield {
            ...{ code: 'PORT_NAME_CONFLICT', config, field: `spec.ports[${index}].name` },
            message: `${host} has the port name ${name} for port ${number} and, in ${entryText(namedPort)}, for port ${namedPort.number}, so connections to one port reach endpoints of the other: give each port its own name`,
            other: { config: namedPort.config, field: `spec.ports[${namedPort.index}].name` },
          };
        const numbered = firstOf(portByNumber, `${config.namespace} ${host} ${number}`, port);
        if (numbered.protocol !== protocol && numbered.config !== config)
          yield {
            ...{ code: 'PORT_PROTOCOL_CONFLICT', config, field: `spec.ports[${index}].protocol` },
            message: `port ${number} of ${host} has the protocol ${protocol} and, in ${entryText(numbered)}, ${numbered.protocol}, so proxies handle connections to it in different ways: use one protocol, or another port`,
            other: { config: numbered.config, field: `spec.ports[${numbered.index}].protocol` },
          };
      }
    }
  }
};

function firstOf(ports: Map<string, DeclaredPort>, key: string, port: DeclaredPort): DeclaredPort {
  const firstPort = ports.get(key) ?? port;
  ports.set(key, firstPort);
  return firstPort;
}

function entryText({ config: { namespace, name } }: DeclaredPort): string {
  return `ServiceEntry ${namespace}/${name}`;
}
