/** Reports backends of Ingresses with a missing service or port. `credentials.ts` checks their Secrets. */
import type { Config } from '../../../model/config/config.ts';
import type { Ingress, IngressBackend } from '../../../model/kinds/kubernetes/ingress.ts';
import type { Service } from '../../../model/services/service.ts';
import { isAlias } from '../../../model/services/service-alias.ts';
import { ownIngresses } from '../../../model/translation/ingress.ts';
import type { CheckSources, ConfigCheck, ConfigWarning } from '../config-warning.ts';

const maxPorts = 10;

export const checkIngressBackends: ConfigCheck = function* (sources) {
  const ports = new Map<string, BackendPorts>();
  for (const config of ownIngresses(sources.configs, sources.context.mesh)) {
    for (const [index, { http }] of config.spec.spec.rules.entries()) {
      for (const [destinationIndex, { backend }] of (http?.paths ?? []).entries()) {
        yield warningOf(
          config,
          `spec.rules[${index}].http.paths[${destinationIndex}].backend.service`,
          backend,
          ports,
          sources,
        );
      }
    }
  }
};

function warningOf(
  config: Config<Ingress>,
  field: string,
  { service: backend }: IngressBackend,
  portsByBackend: Map<string, BackendPorts>,
  { context, hosts }: CheckSources,
): ConfigWarning | undefined {
  if (backend === undefined) return undefined;
  const host = `${backend.name}.${config.namespace}.svc.${context.domain}`;
  const { number, name } = backend.port;
  if (hosts.isMissingHost(host)) {
    const effect = number === undefined ? 'the path is left out (404)' : 'requests for it fail (503)';
    const message = `there is no Service ${config.namespace}/${backend.name}, so ${effect}: correct the name, or create the Service`;
    return { code: 'HOST_NOT_FOUND', config, field: `${field}.name`, message };
  }
  const ports = portsByBackend.get(host) ?? portsOf(hosts.servicesOf(host));
  portsByBackend.set(host, ports);
  if (!ports.arePortsKnown) return undefined;
  const { advice } = ports;
  if (number !== undefined) {
    if (ports.portNumbers.has(number)) return undefined;
    const message = `${host} has no port ${number}, so requests for it fail (503): ${advice}`;
    return { code: 'PORT_NOT_FOUND', config, field: `${field}.port.number`, message };
  }
  if (name === undefined) {
    const message = `no port is chosen, so the path is left out (404): set port.number or port.name, ${advice}`;
    return { code: 'PORT_NOT_CHOSEN', config, field, message };
  }
  if (ports.names.has(name)) return undefined;
  const message = `${host} has no port named ${name}, so the path is left out (404): ${advice}`;
  return { code: 'PORT_NOT_FOUND', config, field: `${field}.port.name`, message };
}

interface BackendPorts {
  readonly arePortsKnown: boolean;
  readonly portNumbers: ReadonlySet<number>;
  readonly names: ReadonlySet<string>;
  readonly advice: string;
}

function portsOf(services: readonly Service[]): BackendPorts {
  const ports = services.flatMap((service) => service.ports);
  const texts = new Set(ports.map(({ number, name }) => (name === '' ? `${number}` : `${number} (${name})`)));
  return {
    arePortsKnown: services.length > 0 && !services.some(isAlias),
    portNumbers: new Set(ports.map(({ number }) => number)),
    names: new Set(ports.map(({ name }) => name)),
    advice: `choose one of ${[...texts].slice(0, maxPorts).join(', ')}${texts.size > maxPorts ? ', …' : ''}`,
  };
}
