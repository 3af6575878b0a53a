/** Reports hosts of `jwksUri` that belong to missing Kubernetes Services or ports. */
import { type CheckSources, type ConfigCheck, type ConfigWarning, isWrittenConfig } from '../config-warning.ts';

export const checkKeySetHosts: ConfigCheck = function* (sources) {
  for (const config of sources.configs.RequestAuthentication) {
    yield undefined;
    if (!isWrittenConfig(config)) continue;
    for (const [index, { jwksUri, jwks }] of config.spec.jwtRules.entries()) {
      // Inline keys take precedence.
      if (jwksUri === undefined || jwks !== undefined || !URL.canParse(jwksUri)) continue;
      const problem = problemOf(new URL(jwksUri), sources);
      if (problem !== undefined) yield { ...problem, config, field: `spec.jwtRules[${index}].jwksUri` };
    }
  }
};

const effect = 'so the keys cannot be fetched and tokens of this issuer are rejected (401)';

function problemOf(
  { hostname, port: writtenPort, protocol }: URL,
  { hosts }: CheckSources,
): Pick<ConfigWarning, 'code' | 'message'> | undefined {
  // Hosts outside the cluster domain may be resolved elsewhere.
  if (hosts.namespaceOf(hostname) === undefined) return undefined;
  if (hosts.isMissingHost(hostname))
    return {
      code: 'HOST_NOT_FOUND',
      message: `no service has the host ${hostname}, ${effect}: correct the name, or create the Service`,
    };
  const numbers = hosts.servicesOf(hostname).flatMap(({ ports }) => ports.map(({ number }) => number));
  const port = Number(writtenPort) || (protocol === 'http:' ? 80 : 443);
  if (numbers.length === 0 || numbers.includes(port)) return undefined;
  return {
    code: 'PORT_NOT_FOUND',
    message: `${hostname} has no port ${port}, ${effect}: choose one of ${[...new Set(numbers)].join(', ')}`,
  };
}
