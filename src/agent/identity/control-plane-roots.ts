import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { isSwitchOn } from '../../model/fields/switches.ts';
import { parseHostAndPort } from '../../model/mesh/proxy-config.ts';
import { isLoopback } from '../../runtime/addresses/loopback.ts';
import { ChartpilotError } from '../../runtime/errors.ts';

export type ControlPlaneService = 'xds' | 'ca';

export interface RootSources {
  readonly env: NodeJS.ProcessEnv;
  readonly proxyMetadata?: Readonly<Record<string, string>>;
}

const mountedRoot = './etc/certs/root-cert.pem';
const defaultRoot = './var/run/secrets/istio/root-cert.pem';
const kubernetesRoots = [
  './var/run/secrets/istio/kubernetes/ca.crt',
  './var/run/secrets/kubernetes.io/serviceaccount/ca.crt',
] as const;
const systemRoots = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem',
  '/etc/ssl/cert.pem',
];

/** @throws ChartpilotError CONFIG_INVALID with PILOT_CERT_PROVIDER `none` and no configured root */
export function controlPlaneRootFile(
  service: ControlPlaneService,
  sources: RootSources,
  fileExists: (path: string) => boolean = existsSync,
): string {
  const { candidates, fallback } = rootFiles(service, sources);
  return candidates.find(fileExists) ?? fallback();
}

/** Does not block the event loop if a file system hangs. */
export async function findControlPlaneRootFile(
  service: ControlPlaneService,
  sources: RootSources,
  fileExists: (path: string) => Promise<boolean>,
): Promise<string> {
  const { candidates, fallback } = rootFiles(service, sources);
  for (const candidate of candidates) if (await fileExists(candidate)) return candidate;
  return fallback();
}

/** The first existing candidate is used, or the result of `fallback` if none exists. */
interface RootFiles {
  readonly candidates: readonly string[];
  readonly fallback: () => string;
}

function rootFiles(service: ControlPlaneService, { env, proxyMetadata = {} }: RootSources): RootFiles {
  const configuredRoots = service === 'xds' ? env.XDS_ROOT_CA : env.CA_ROOT_CA;
  if (configuredRoots === 'SYSTEM') return { candidates: systemRoots, fallback: () => systemRoots[0]! };
  if (configuredRoots) return { candidates: [], fallback: () => configuredRoots };
  const mountedFiles = service === 'xds' ? [mountedRoot] : [];
  const provider = env.PILOT_CERT_PROVIDER || 'istiod';
  if (provider === 'kubernetes') {
    return { candidates: [...mountedFiles, ...kubernetesRoots], fallback: () => kubernetesRoots[1] };
  }
  return { candidates: mountedFiles, fallback: () => unmountedRoot(provider, service, { env, proxyMetadata }) };
}

function unmountedRoot(
  provider: string,
  service: ControlPlaneService,
  { env, proxyMetadata }: Required<RootSources>,
): string {
  if (provider === 'custom') return service === 'ca' ? mountedRoot : defaultRoot;
  if (env.PROV_CERT) return join(env.PROV_CERT, 'root-cert.pem');
  const clientRootCert = proxyMetadata.ISTIO_META_TLS_CLIENT_ROOT_CERT;
  if (service === 'xds' && isSwitchOn(env.FILE_MOUNTED_CERTS) && clientRootCert) return clientRootCert;
  if (provider === 'none') {
    throw new ChartpilotError(
      'CONFIG_INVALID',
      'PILOT_CERT_PROVIDER none provides no root certificate to verify the control plane',
      {
        fields: { path: 'PILOT_CERT_PROVIDER', got: '"none"' },
        hint: 'Set XDS_ROOT_CA and CA_ROOT_CA to a root certificate, or use plaintext with --controlPlaneAuthPolicy NONE.',
      },
    );
  }
  return defaultRoot;
}

/** Returns the usual path if the operating system has no root certificates. */
export function systemRootFile(fileExists: (path: string) => boolean = existsSync): string {
  return systemRoots.find(fileExists) ?? systemRoots[0]!;
}

/** Required SAN of the control plane: ISTIOD_SAN, otherwise the host of its address. */
export function controlPlaneName(address: string, env: NodeJS.ProcessEnv): string {
  if (env.ISTIOD_SAN) return env.ISTIOD_SAN;
  const host = parseHostAndPort(address)?.host ?? address;
  return host === 'localhost' || isLoopback(host) ? 'istiod.istio-system.svc' : host;
}
