import { ChartpilotError } from '../../../runtime/errors.ts';
import type { LogEntry, LogWarning } from '../../../runtime/log-events/log-events.ts';
import { listOf } from '../../environment.ts';
import { type ListenAddress, parseListenAddress } from '../../listen-address.ts';

/** Either all three are set, or none if this process's CA signs the certificate. */
export interface ServerCertificateFiles {
  readonly caFile: string;
  readonly certificateFile: string;
  readonly keyFile: string;
}

export interface SecurePort {
  readonly address: ListenAddress;
  /** `undefined` if this process's CA signs the certificate. */
  readonly files: ServerCertificateFiles | undefined;
  /** OpenSSL names. TLS 1.3 has separate suites. */
  readonly cipherSuites: readonly string[];
  readonly minVersion: 'TLSv1.2' | 'TLSv1.3';
}

export interface SecurePortFlags {
  /** True if the flag has no value. */
  readonly secureGRPCAddr?: string | boolean;
  readonly caCertFile?: string;
  readonly tlsCertFile?: string;
  readonly tlsKeyFile?: string;
  readonly tlsCipherSuites?: string;
  readonly tlsMinVersion?: string;
}

export interface SecurePortReport {
  /** If true, a CA is configured, so the port is opened. */
  readonly hasAuthority: boolean;
  readonly mayHaveAuthority: boolean;
  readonly writeEntry: (entry: LogEntry) => void;
  readonly warn: (entry: LogWarning) => void;
}

/** OpenSSL names of TLS 1.2 suites, by Go name. */
const suites: ReadonlyMap<string, string> = new Map([
  ['TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256', 'ECDHE-ECDSA-AES128-GCM-SHA256'],
  ['TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384', 'ECDHE-ECDSA-AES256-GCM-SHA384'],
  ['TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256', 'ECDHE-RSA-AES128-GCM-SHA256'],
  ['TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384', 'ECDHE-RSA-AES256-GCM-SHA384'],
  ['TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256', 'ECDHE-ECDSA-CHACHA20-POLY1305'],
  ['TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256', 'ECDHE-RSA-CHACHA20-POLY1305'],
  ['TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA', 'ECDHE-ECDSA-AES128-SHA'],
  ['TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA', 'ECDHE-ECDSA-AES256-SHA'],
  ['TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA', 'ECDHE-RSA-AES128-SHA'],
  ['TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA', 'ECDHE-RSA-AES256-SHA'],
  ['TLS_RSA_WITH_AES_128_GCM_SHA256', 'AES128-GCM-SHA256'],
  ['TLS_RSA_WITH_AES_256_GCM_SHA384', 'AES256-GCM-SHA384'],
  ['TLS_RSA_WITH_AES_128_CBC_SHA', 'AES128-SHA'],
  ['TLS_RSA_WITH_AES_256_CBC_SHA', 'AES256-SHA'],
]);

/** Suites that TLS 1.3 always enables. */
const suitesOfTls13: ReadonlySet<string> = new Set([
  'TLS_AES_128_GCM_SHA256',
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
]);

const minVersions = { '1.2': 'TLSv1.2', '1.3': 'TLSv1.3' } as const;

/**
 * `undefined` if the port stays closed.
 *
 * @throws ChartpilotError FLAG_INVALID
 */
export function securePortOf(
  flags: SecurePortFlags,
  { hasAuthority, mayHaveAuthority, writeEntry, warn }: SecurePortReport,
): SecurePort | undefined {
  const cipherSuites = cipherSuitesOf(flags.tlsCipherSuites ?? '');
  const minVersion = minVersionOf(flags.tlsMinVersion ?? '');
  const configuredAddress = flags.secureGRPCAddr ?? ':15012';
  const address = parseListenAddress(
    '--secureGRPCAddr',
    typeof configuredAddress === 'string' ? configuredAddress : '',
  );
  if (address === undefined) return undefined;
  const files = {
    caFile: flags.caCertFile ?? '',
    certificateFile: flags.tlsCertFile ?? '',
    keyFile: flags.tlsKeyFile ?? '',
  };
  const fileCount = Object.values(files).filter(Boolean).length;
  if (fileCount === 3) return { address, files, cipherSuites, minVersion };
  if (fileCount === 0 && (hasAuthority || (mayHaveAuthority && flags.secureGRPCAddr !== undefined))) {
    return { address, files: undefined, cipherSuites, minVersion };
  }
  if (fileCount > 0 || flags.secureGRPCAddr !== undefined) {
    const fileFlags = [
      ['--caCertFile', files.caFile],
      ['--tlsCertFile', files.certificateFile],
      ['--tlsKeyFile', files.keyFile],
    ] as const;
    const flagsOf = (isFlagSet: boolean): string =>
      fileFlags.flatMap(([flag, file]) => ((file !== '') === isFlagSet ? [flag] : [])).join(', ');
    warn({ event: 'option.securePortIncomplete', given: flagsOf(true), missing: flagsOf(false) });
  } else writeEntry({ event: 'option.securePortDisabled' });
  return undefined;
}

function cipherSuitesOf(text: string): string[] {
  return listOf(text).flatMap((name) => {
    if (suitesOfTls13.has(name)) return [];
    const suite = suites.get(name);
    if (suite !== undefined) return [suite];
    throw new ChartpilotError('FLAG_INVALID', `--tls-cipher-suites: unknown cipher suite ${name}`, {
      hint: `Supported suites: ${[...suites.keys()].join(', ')}.`,
    });
  });
}

function minVersionOf(text: string): SecurePort['minVersion'] {
  if (text === '') return 'TLSv1.2';
  if (text in minVersions) return minVersions[text as keyof typeof minVersions];
  throw new ChartpilotError('FLAG_INVALID', `--tls-min-version: must be 1.2 or 1.3, got ${JSON.stringify(text)}`);
}
