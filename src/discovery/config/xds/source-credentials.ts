/** Files are read for each connection, because they are rotated. */
import { createPrivateKey } from 'node:crypto';
import type { ConfigSourceTls } from '../../../model/mesh/mesh-config.ts';
import { CodedError, fileErrorOf } from '../../../runtime/errors.ts';
import { readBoundedText } from '../../../runtime/files/bounded-file.ts';
import type { GrpcTarget } from '../../../runtime/grpc/grpc-client.ts';
import type { KeyPair } from '../../../runtime/grpc/key-pair.ts';
import type { SourceAddress } from './source-address.ts';
import type { SourceConnection } from './source-stream.ts';

/** The values are PEM. */
export interface ControlPlaneIdentity {
  readonly roots: string;
  readonly certificate: KeyPair;
}

export interface SourceCredentials {
  readonly tls: ConfigSourceTls | undefined;
  /** PILOT_XDS_SOURCE_TOKEN_FILE. Empty if no token is sent. */
  readonly tokenFile: string;
  /** This identity is used for ISTIO_MUTUAL. `undefined` without a CA. */
  readonly ownIdentity: () => ControlPlaneIdentity | undefined;
}

const maxPemBytes = 1024 * 1024;
const maxTokenBytes = 64 * 1024;

/** @throws CodedError SOURCE_CREDENTIALS_INVALID if the connection would be less secure than configured */
export function connectionTo(
  { host, port }: Pick<SourceAddress, 'host' | 'port'>,
  { tls, tokenFile, ownIdentity }: SourceCredentials,
): SourceConnection {
  const address = { host, port };
  if (tls === undefined || tls.mode === 'DISABLE') {
    // Plaintext would reveal a token, so none is sent.
    return { target: { address }, headers: {} };
  }
  const target: GrpcTarget = { address, tls: tlsOf(tls, host, ownIdentity) };
  return { target, headers: tls.insecureSkipVerify === true ? {} : tokenHeaders(tokenFile) };
}

function tlsOf(
  tls: ConfigSourceTls,
  host: string,
  ownIdentity: SourceCredentials['ownIdentity'],
): NonNullable<GrpcTarget['tls']> {
  const serverName = tls.sni || host;
  const names = tls.subjectAltNames ?? [];
  const commonOptions = {
    serverName,
    ...(names.length > 0 && { alternativeNames: names }),
    ...(tls.insecureSkipVerify === true && { isUnverified: true as const }),
  };
  if (tls.mode === 'ISTIO_MUTUAL') {
    const identity = ownIdentity();
    if (identity === undefined)
      throw invalidField(
        'mode',
        'ISTIO_MUTUAL needs the certificate authority of this control plane, which is disabled',
      );
    return { ...commonOptions, ...identity };
  }
  const roots = tls.caCertificates === undefined ? '' : pemOf('caCertificates', tls.caCertificates);
  if (roots === '' && tls.insecureSkipVerify !== true)
    throw invalidField('caCertificates', 'is required: it verifies the server');
  if (tls.mode === 'SIMPLE') return { ...commonOptions, roots };
  const chain = pemOf('clientCertificate', tls.clientCertificate ?? '');
  try {
    return {
      ...commonOptions,
      roots,
      certificate: { chain, key: createPrivateKey(pemOf('privateKey', tls.privateKey ?? '')) },
    };
  } catch (error) {
    if (error instanceof CodedError) throw error;
    throw invalidField('privateKey', 'must be a PEM private key without a passphrase', error);
  }
}

/** @param value PEM text, or path of a PEM file */
function pemOf(field: string, value: string): string {
  let pem = value;
  if (!value.includes('-----BEGIN ')) {
    try {
      pem = readBoundedText(value, maxPemBytes);
    } catch (error) {
      throw invalidField(field, `${value}: ${fileErrorOf(error)}`, error);
    }
  }
  if (!pem.includes('-----BEGIN ')) throw invalidField(field, `${value}: no PEM found`);
  return pem;
}

function tokenHeaders(file: string): Readonly<Record<string, string>> {
  if (file === '') return {};
  let token: string;
  try {
    token = readBoundedText(file, maxTokenBytes).trim();
  } catch (error) {
    throw new CodedError('SOURCE_CREDENTIALS_INVALID', `PILOT_XDS_SOURCE_TOKEN_FILE ${file}: ${fileErrorOf(error)}`, {
      cause: error,
    });
  }
  if (!/^[\x21-\x7e]+$/.test(token)) {
    throw new CodedError('SOURCE_CREDENTIALS_INVALID', `PILOT_XDS_SOURCE_TOKEN_FILE ${file}: must contain a token`);
  }
  return { authorization: `Bearer ${token}` };
}

function invalidField(field: string, message: string, cause?: unknown): CodedError {
  return new CodedError('SOURCE_CREDENTIALS_INVALID', `configSources tlsSettings.${field}: ${message}`, {
    fields: { path: `tlsSettings.${field}` },
    ...(cause !== undefined && { cause }),
  });
}
