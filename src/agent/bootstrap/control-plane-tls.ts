/** How the control plane proves who it is (spec/agent.md §1.6, §7.5). */

import { existsSync } from 'node:fs';
import type { ProxyConfig } from '../../model/mesh/proxy-config.ts';
import { parseHostAndPort } from '../../model/mesh/proxy-config.ts';
import { ChartpilotError } from '../../runtime/errors.ts';
import { isLoopback } from '../../runtime/loopback.ts';

export interface ControlPlaneTls {
  /** Authorities that sign the control plane's certificate. */
  readonly rootFile: string;
  /** The name that the certificate must have. */
  readonly serverName: string;
}

const mountedRoot = './etc/certs/root-cert.pem';
const defaultRoot = './var/run/secrets/istio/root-cert.pem';
const systemRoots = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem',
  '/etc/ssl/cert.pem',
];

/**
 * Undefined for plaintext. The proxy itself proves nothing yet: it has no certificate of its own before the agent
 * serves secrets.
 *
 * @throws ChartpilotError CONFIG_INVALID when TLS is wanted and there is nothing to verify the control plane with
 */
export function controlPlaneTls(
  config: Pick<ProxyConfig, 'controlPlaneAuthPolicy' | 'discoveryAddress'>,
  env: NodeJS.ProcessEnv,
  exists: (path: string) => boolean = existsSync,
): ControlPlaneTls | undefined {
  if (config.controlPlaneAuthPolicy === 'NONE') return undefined;
  const rootFile = chooseRoot(env, exists);
  if (!exists(rootFile)) {
    throw new ChartpilotError(
      'CONFIG_INVALID',
      `controlPlaneAuthPolicy is MUTUAL_TLS, but ${rootFile}, the root certificate for the control plane, is missing`,
      {
        hint: 'Mount that file, name another one in XDS_ROOT_CA, or set --controlPlaneAuthPolicy NONE for plaintext.',
      },
    );
  }
  return { rootFile, serverName: serverName(config.discoveryAddress, env) };
}

function chooseRoot(env: NodeJS.ProcessEnv, exists: (path: string) => boolean): string {
  if (env.XDS_ROOT_CA === 'SYSTEM') return systemRoots.find(exists) ?? systemRoots[0]!;
  if (env.XDS_ROOT_CA) return env.XDS_ROOT_CA;
  return exists(mountedRoot) ? mountedRoot : defaultRoot;
}

function serverName(discoveryAddress: string, env: NodeJS.ProcessEnv): string {
  if (env.ISTIOD_SAN) return env.ISTIOD_SAN;
  const host = parseHostAndPort(discoveryAddress)?.host ?? discoveryAddress;
  return host === 'localhost' || isLoopback(host) ? 'istiod.istio-system.svc' : host;
}
