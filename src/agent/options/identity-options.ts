import { existsSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { IdentitySettings } from '../../../machines/agent/settings.ts';
import { durationMsOf } from '../../model/fields/duration.ts';
import { isSwitchOn } from '../../model/fields/switches.ts';
import { mustBe, outOfRange, unknownValue } from '../../model/fields/violation.ts';
import type { ProxyConfig } from '../../model/mesh/proxy-config.ts';
import { isObject } from '../../runtime/json-object.ts';
import type { OptionErrors } from '../../runtime/option-errors.ts';
import { isPlaintext, tokenFile } from '../identity/control-plane-credentials.ts';

export interface MountedFiles {
  readonly certificate: string;
  readonly key: string;
  readonly roots: string;
}

export interface IdentityOptions {
  readonly settings: IdentitySettings;
  readonly mounted: MountedFiles | undefined;
  /** Empty if no files are written. */
  readonly outputDirectory: string;
  /** `host:port` of the CA. */
  readonly authorityAddress: string;
  readonly lifetimeSeconds: number;
  readonly key: { readonly type: 'ec' } | { readonly type: 'rsa'; readonly bits: number };
  readonly trustDomain: string;
}

export interface IdentitySources {
  readonly config: Pick<ProxyConfig, 'controlPlaneAuthPolicy' | 'discoveryAddress' | 'customConfigFile'> &
    Partial<Pick<ProxyConfig, 'tracing' | 'envoyMetricsService' | 'envoyAccessLogService'>>;
  readonly env: NodeJS.ProcessEnv;
  readonly assumesToken?: boolean | undefined;
}

const socketDirectory = './var/run/secrets/workload-spiffe-uds';
const defaultCertsDir = './etc/certs';
const credentials = './var/run/secrets/workload-spiffe-credentials';
const mountedFilesIn = (directory: string): MountedFiles => ({
  certificate: join(directory, 'cert-chain.pem'),
  key: join(directory, 'key.pem'),
  roots: join(directory, 'root-cert.pem'),
});
const mountedPlaces: readonly MountedFiles[] = [
  mountedFilesIn(defaultCertsDir),
  mountedFilesIn(credentials),
  {
    certificate: join(credentials, 'certificates.pem'),
    key: join(credentials, 'private_key.pem'),
    roots: join(credentials, 'ca_certificates.pem'),
  },
];

export function identityOptions({ config, env, assumesToken }: IdentitySources, errors: OptionErrors): IdentityOptions {
  const outputDirectory = env.OUTPUT_CERTS ?? '';
  const mountedSecrets = mountedFiles(env, outputDirectory);
  const from = sourceOf({ config, env, assumesToken }, mountedSecrets);
  const lifetimeMs = duration('SECRET_TTL', env.SECRET_TTL || '24h', errors);
  return {
    settings: {
      ...from,
      socket: `${socketDirectory}/${env.WORKLOAD_IDENTITY_SOCKET_FILE || 'socket'}`,
      certificateDirectory: from.source === 'files' ? dirname(mountedSecrets!.certificate) : '',
      rootDirectory: from.source === 'files' ? dirname(mountedSecrets!.roots) : '',
      grace: {
        ratio: fractionOf('SECRET_GRACE_PERIOD_RATIO', env, 0.5, errors),
        jitter: fractionOf('SECRET_GRACE_PERIOD_RATIO_JITTER', env, 0.01, errors),
      },
      writesOutput: outputDirectory !== '',
    },
    mounted: from.source === 'files' ? mountedSecrets : undefined,
    outputDirectory,
    authorityAddress: env.CA_ADDR || config.discoveryAddress,
    lifetimeSeconds: Math.max(1, Math.floor(lifetimeMs / 1000)),
    key: keyKind(env, errors),
    trustDomain: env.TRUST_DOMAIN || 'cluster.local',
  };
}

function mountedFiles(env: NodeJS.ProcessEnv, outputDirectory: string): MountedFiles | undefined {
  const matchingFiles = mountedPlaces.find(
    (files) =>
      Object.values(files).every(areFilesPresent) &&
      // The agent's own output is not a source.
      (outputDirectory === '' || resolve(outputDirectory) !== resolve(dirname(files.certificate))),
  );
  return matchingFiles ?? (isSwitchOn(env.FILE_MOUNTED_CERTS) ? mountedPlaces[0] : undefined);
}

function areFilesPresent(file: string): boolean {
  return (statSync(file, { throwIfNoEntry: false })?.size ?? 0) > 0;
}

function sourceOf(
  { config, env, assumesToken = false }: IdentitySources,
  mountedSecrets: MountedFiles | undefined,
): Pick<IdentitySettings, 'source' | 'reason'> {
  const needsServer = !config.customConfigFile && namesFiles(config);
  const noProvider = (reason: string) => ({
    source: needsServer ? ('files of services' as const) : ('nowhere' as const),
    reason,
  });
  if (config.customConfigFile) return noProvider('--customConfigFile is set: its bootstrap has no SDS server');
  const isRequired = isSwitchOn(env.FILE_MOUNTED_CERTS) || Boolean(env.CA_ADDR);
  if (config.controlPlaneAuthPolicy === 'NONE' && !isRequired) {
    return noProvider('controlPlaneAuthPolicy NONE, neither CA_ADDR nor FILE_MOUNTED_CERTS is set');
  }
  if (mountedSecrets !== undefined)
    return { source: 'files', reason: `the mounted certificate ${mountedSecrets.certificate}` };
  const provider = env.CA_PROVIDER || 'Citadel';
  if (provider !== 'Citadel') return noProvider(`CA_PROVIDER ${provider} is not supported`);
  const token = tokenFile(env);
  // A token is never sent over plaintext.
  const isTokenAssumed = assumesToken && !isPlaintext(config, env.CA_ADDR || config.discoveryAddress);
  const reasons = [
    ...(token !== undefined && (isTokenAssumed || existsSync(token)) ? [`the token ${token}`] : []),
    ...(env.PROV_CERT ? [`the certificate in ${env.PROV_CERT}`] : []),
    ...(env.CA_ADDR ? [`CA_ADDR ${env.CA_ADDR}`] : []),
  ];
  if (reasons.length > 0) return { source: 'authority', reason: reasons.join(', ') };
  return noProvider(
    `no credentials: ${token === undefined ? 'JWT_POLICY names no token file' : `token file ${token} does not exist`}, PROV_CERT is not set, no certificate is mounted`,
  );
}

/** Whether TLS settings name files for the SDS server to watch. */
function namesFiles({ tracing, envoyMetricsService, envoyAccessLogService }: IdentitySources['config']): boolean {
  const services = [tracing, ...Object.values(tracing ?? {}), envoyMetricsService, envoyAccessLogService];
  return services.some((service) => {
    const tls = isObject(service) ? service.tlsSettings : undefined;
    return isObject(tls) && (tls.mode === 'SIMPLE' || tls.mode === 'MUTUAL');
  });
}

/** 100 years. */
const maxLifetimeMs = 876_000 * 3_600_000;

function duration(variable: string, text: string, errors: OptionErrors): number {
  const ms = durationMsOf(text);
  if (ms !== undefined && ms > maxLifetimeMs) {
    errors.addFlagError(variable, outOfRange(`at most ${maxLifetimeMs / 3_600_000}h`, text));
    return maxLifetimeMs;
  }
  if (ms !== undefined && ms >= 1_000) return ms;
  errors.addFlagError(variable, mustBe('a duration of at least 1s, such as 24h', text));
  return 1_000;
}

function fractionOf(variable: string, env: NodeJS.ProcessEnv, fallback: number, errors: OptionErrors): number {
  const text = env[variable];
  if (!text) return fallback;
  // JavaScript converts blanks to 0; a certificate would then be renewed only when it expires.
  const value = text.trim() === '' ? Number.NaN : Number(text);
  if (value >= 0 && value <= 1) return value;
  errors.addFlagError(variable, outOfRange('a number from 0 to 1', text));
  return fallback;
}

/** The default is P-256, unless an RSA key size is configured. */
function keyKind(env: NodeJS.ProcessEnv, errors: OptionErrors): IdentityOptions['key'] {
  const { ECC_SIGNATURE_ALGORITHM: algorithm, ECC_CURVE: curve, WORKLOAD_RSA_KEY_SIZE: size } = env;
  if (algorithm && algorithm !== 'ECDSA')
    errors.addFlagError('ECC_SIGNATURE_ALGORITHM', unknownValue(['ECDSA'], algorithm));
  if (curve && curve !== 'P256') errors.addFlagError('ECC_CURVE', unknownValue(['P256'], curve));
  if (algorithm || !size) return { type: 'ec' };
  const bits = Number(size);
  if (Number.isInteger(bits) && bits >= 2048 && bits <= 4096) return { type: 'rsa', bits };
  errors.addFlagError('WORKLOAD_RSA_KEY_SIZE', outOfRange('an integer from 2048 to 4096', size));
  return { type: 'ec' };
}
