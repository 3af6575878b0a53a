import { createPrivateKey, X509Certificate } from 'node:crypto';
import type { SecureServerOptions } from 'node:http2';
import type { SecureContextOptions, TlsOptions } from 'node:tls';
import { ServerCredentials } from '@grpc/grpc-js';
import { LRUCache } from 'lru-cache';
import { type Certificate, readCertificate, readCertificates, rootKeyOf } from '../../../identity/certificate.ts';
import { findPath } from '../../../identity/certificate-path.ts';
import { ChartpilotError, messageOf } from '../../../runtime/errors.ts';
import { readBoundedText } from '../../../runtime/files/bounded-file.ts';
import { readConsistentlySync } from '../../../runtime/files/read-together.ts';
import type { SecurePort, ServerCertificateFiles } from './secure-port.ts';

const maxFileBytes = 1024 * 1024;

export interface PemServerCertificate {
  readonly ca: Buffer;
  /** Leaf first. */
  readonly chain: Buffer;
  readonly key: Buffer;
  readonly serialNumber: string;
  readonly notAfter: Date;
}

/** @throws ChartpilotError FILE_UNREADABLE or CONFIG_INVALID */
export function readServerCertificate(files: ServerCertificateFiles, now: Date): PemServerCertificate {
  const { ca, chain, key } = readConsistentlySync((resolvePath) => ({
    ca: readFlagFile('--caCertFile', files.caFile, resolvePath),
    chain: readFlagFile('--tlsCertFile', files.certificateFile, resolvePath),
    key: readFlagFile('--tlsKeyFile', files.keyFile, resolvePath),
  }));
  parsePem('--caCertFile', files.caFile, () => new X509Certificate(ca));
  const certificate = parsePem('--tlsCertFile', files.certificateFile, () => new X509Certificate(chain));
  const privateKey = parsePem('--tlsKeyFile', files.keyFile, () => createPrivateKey(key));
  if (!certificate.checkPrivateKey(privateKey)) {
    throw invalidFile('--tlsKeyFile', files.keyFile, `does not match the certificate in ${files.certificateFile}`);
  }
  const { validFromDate: notBefore, validToDate: notAfter, serialNumber } = certificate;
  if (now > notAfter) {
    throw invalidFile('--tlsCertFile', files.certificateFile, `expired on ${notAfter.toISOString()}`);
  }
  if (now < notBefore) {
    throw invalidFile('--tlsCertFile', files.certificateFile, `is not valid before ${notBefore.toISOString()}`);
  }
  const problem = pathProblem(files, { ca, chain }, now);
  if (problem !== undefined) {
    throw invalidFile(
      '--tlsCertFile',
      files.certificateFile,
      `has no valid chain to a root in ${files.caFile}: ${problem}`,
    );
  }
  return { ca, chain, key, serialNumber, notAfter };
}

/** Clients that trust the new roots would reject a certificate that is only partly updated. */
function pathProblem(
  files: ServerCertificateFiles,
  { ca, chain }: Pick<PemServerCertificate, 'ca' | 'chain'>,
  validAt: Date,
) {
  const roots = parsePem('--caCertFile', files.caFile, () => readCertificates(ca.toString()));
  const [certificate, ...intermediates] = parsePem('--tlsCertFile', files.certificateFile, () =>
    readCertificates(chain.toString()),
  );
  const pathResult = findPath({ certificate: certificate!, intermediates, roots, at: validAt });
  return 'problem' in pathResult ? pathResult.problem : undefined;
}

/**
 * Accepts clients whose certificate chains to none of the roots of TLS, which has only one pool.
 *
 * @param chain DER, leaf first, as far as Node knows it
 */
export interface OtherClients {
  acceptsChain(chain: readonly Uint8Array[]): boolean;
  readonly roots: readonly Certificate[];
}

const noOtherClients: OtherClients = { acceptsChain: () => false, roots: [] };

export interface ClientConnection {
  /** Node's TLSSocket. For each call, grpc-js decides from `authorized` whether the certificate identifies the client. */
  readonly socket: { authorized?: boolean };
  /** Node's ServerHttp2Session. `close` sends GOAWAY without ending existing streams. */
  readonly session: {
    close(): void;
    once(event: 'close', listener: () => void): unknown;
  };
  readonly chain: readonly Uint8Array[];
}

type OpenConnection = Pick<ClientConnection, 'socket' | 'session'>;

/** Credentials of the TLS port. A client certificate is requested but optional; authenticators validate it. */
export class SecurePortCredentials extends ServerCredentials {
  #otherClients: OtherClients;
  #roots: ReadonlySet<string>;
  /** Connections, with the root of the client's certificate if known. */
  readonly #clients = new Map<OpenConnection, string | undefined>();

  constructor(port: TlsChoices, certificate: PemServerCertificate, otherClients: OtherClients = noOtherClients) {
    super(constructorOptions(port), contextOptions(port, certificate));
    this.#otherClients = otherClients;
    this.#roots = rootsOf(certificate, otherClients);
  }

  /**
   * Existing connections continue. If a root is no longer trusted, a connection accepts no more calls unless its certificate is known to chain to
   * another root: otherwise a stolen key of the old root could obtain a certificate of the next root on an existing connection.
   */
  replaceCertificate(
    port: TlsChoices,
    certificate: PemServerCertificate,
    otherClients: OtherClients = noOtherClients,
  ): void {
    this.updateSecureContextOptions(contextOptions(port, certificate));
    const [previousRoots, currentRoots] = [this.#roots, rootsOf(certificate, otherClients)];
    this.#otherClients = otherClients;
    this.#roots = currentRoots;
    if ([...previousRoots].every((root) => currentRoots.has(root))) return;
    for (const [client, root] of this.#clients)
      if (root === undefined || !currentRoots.has(root)) this.#disconnect(client);
  }

  get tlsOptions(): TlsOptions {
    return { ...this._getConstructorOptions(), ...this._getSecureContextOptions() };
  }

  acceptsOtherClient(chain: readonly Uint8Array[]): boolean {
    return this.#otherClients.acceptsChain(chain);
  }

  addClient({ socket, session, chain }: ClientConnection): void {
    // The chain is not kept, because it takes 1.3 KiB.
    const connection: OpenConnection = { socket, session };
    this.#clients.set(connection, rootIn(chain));
    session.once('close', () => this.#clients.delete(connection));
  }

  /** Also revokes the authorization, because a call in progress may not be authenticated yet. */
  #disconnect(client: OpenConnection): void {
    this.#clients.delete(client);
    client.socket.authorized = false;
    client.session.close();
  }

  override _equals(other: ServerCredentials): boolean {
    return this === other;
  }
}

function rootsOf({ ca }: PemServerCertificate, { roots }: OtherClients): ReadonlySet<string> {
  return new Set([...readCertificates(ca.toString()), ...roots].map(rootKeyOf));
}

/** Parsing takes a millisecond, as long as the handshake. */
const rootKeys = new LRUCache<string, string>({ max: 256 });

/**
 * Node may return only the leaf of a chain with intermediates (nodejs/node#65579). The last certificate is then no root, and not trusted.
 */
function rootIn(chain: readonly Uint8Array[]): string | undefined {
  const der = chain.at(-1)!;
  const cacheKey = Buffer.from(der.buffer, der.byteOffset, der.byteLength).toString('latin1');
  const cachedKey = rootKeys.get(cacheKey);
  if (cachedKey !== undefined) return cachedKey;
  try {
    if (!new X509Certificate(der).ca) return undefined;
    const rootKey = rootKeyOf(readCertificate(der));
    rootKeys.set(cacheKey, rootKey);
    return rootKey;
  } catch {
    // TLS has accepted the certificate, but it cannot be parsed here.
    return undefined;
  }
}

type TlsChoices = Pick<SecurePort, 'cipherSuites' | 'minVersion'>;

function constructorOptions({ cipherSuites, minVersion }: TlsChoices): SecureServerOptions {
  return {
    requestCert: true,
    rejectUnauthorized: false,
    minVersion,
    ...(cipherSuites.length > 0 && { ciphers: cipherSuites.join(':') }),
  };
}

function contextOptions(
  { cipherSuites, minVersion }: TlsChoices,
  { ca, chain, key }: PemServerCertificate,
): SecureContextOptions {
  return { ca, cert: chain, key, minVersion, ...(cipherSuites.length > 0 && { ciphers: cipherSuites.join(':') }) };
}

function readFlagFile(flag: string, file: string, resolvePath: (path: string) => string): Buffer {
  try {
    return Buffer.from(readBoundedText(resolvePath(file), maxFileBytes));
  } catch (error) {
    throw new ChartpilotError('FILE_UNREADABLE', `${flag} ${file}: ${messageOf(error)}`, { cause: error });
  }
}

function parsePem<T>(flag: string, file: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw invalidFile(flag, file, `is not valid PEM: ${messageOf(error)}`, error);
  }
}

function invalidFile(flag: string, file: string, message: string, cause?: unknown): ChartpilotError {
  return new ChartpilotError('CONFIG_INVALID', `${flag} ${file} ${message}`, cause === undefined ? {} : { cause });
}
