/** What the port with TLS shows its clients (spec/discovery.md §1.2, §1.3), from three PEM files. */
import { createHash, createPrivateKey, X509Certificate } from 'node:crypto';
import type { SecureServerOptions } from 'node:http2';
import type { SecureContextOptions } from 'node:tls';
import { ServerCredentials } from '@grpc/grpc-js';
import { readCertificates } from '../identity/certificate.ts';
import { findPath } from '../identity/certificate-path.ts';
import { ChartpilotError, messageOf } from '../runtime/errors.ts';
import { readBoundedText } from './config/bounded-file.ts';
import type { SecurePort, ServerCertificateFiles } from './secure-port.ts';

const mostFileBytes = 1024 * 1024;

export interface ServerCertificate {
  /** PEM. */
  readonly ca: Buffer;
  /** PEM: the server's own first, then those that lead to its authority. */
  readonly chain: Buffer;
  /** PEM. */
  readonly key: Buffer;
  readonly serialNumber: string;
  readonly notAfter: Date;
}

/**
 * Reads the files and sees whether they can serve: all are PEM, the key is the certificate's, and the time is right.
 *
 * @throws ChartpilotError FILE_UNREADABLE or CONFIG_INVALID
 */
export function readServerCertificate(files: ServerCertificateFiles, now: Date): ServerCertificate {
  const ca = read('--caCertFile', files.caFile);
  const chain = read('--tlsCertFile', files.certificateFile);
  const key = read('--tlsKeyFile', files.keyFile);
  parsed('--caCertFile', files.caFile, () => new X509Certificate(ca));
  const certificate = parsed('--tlsCertFile', files.certificateFile, () => new X509Certificate(chain));
  const privateKey = parsed('--tlsKeyFile', files.keyFile, () => createPrivateKey(key));
  if (!certificate.checkPrivateKey(privateKey)) {
    throw invalid('--tlsKeyFile', files.keyFile, `is not the key of the certificate in ${files.certificateFile}`);
  }
  const { validFromDate: notBefore, validToDate: notAfter, serialNumber } = certificate;
  if (now > notAfter) {
    throw invalid('--tlsCertFile', files.certificateFile, `is out of date since ${notAfter.toISOString()}`);
  }
  if (now < notBefore) {
    throw invalid('--tlsCertFile', files.certificateFile, `is not valid before ${notBefore.toISOString()}`);
  }
  const problem = pathProblem(files, { ca, chain }, now);
  if (problem !== undefined) {
    throw invalid('--tlsCertFile', files.certificateFile, `does not lead to a root in ${files.caFile}: ${problem}`);
  }
  return { ca, chain, key, serialNumber, notAfter };
}

/** Half of a change is no certificate: who trusts the roots beside it would refuse it. */
function pathProblem(files: ServerCertificateFiles, { ca, chain }: Pick<ServerCertificate, 'ca' | 'chain'>, at: Date) {
  const roots = parsed('--caCertFile', files.caFile, () => readCertificates(ca.toString()));
  const [certificate, ...intermediates] = parsed('--tlsCertFile', files.certificateFile, () =>
    readCertificates(chain.toString()),
  );
  const answer = findPath({ certificate: certificate!, intermediates, roots, at });
  return 'problem' in answer ? answer.problem : undefined;
}

/**
 * TLS has one pool of roots. This says whether a client is good whose certificate leads to none of them.
 *
 * @param chain DER, the leaf first, as far as node knows it
 */
export interface OtherClients {
  takes(chain: readonly Uint8Array[]): boolean;
  /** SHA-256 of the roots by which it judges, in hexadecimal. */
  readonly roots: readonly string[];
}

const noOthers: OtherClients = { takes: () => false, roots: [] };

/** What is used of a client's connection: node's TLSSocket. */
export interface ClientConnection {
  /** Whether its certificate says who the client is: grpc-js looks at it with each call. */
  authorized?: boolean;
  once(event: 'close', listener: () => void): unknown;
}

/**
 * The credentials of the port with TLS. Clients are asked for a certificate and need not have one: whether one is good is
 * for the authenticators to see.
 */
export class SecurePortCredentials extends ServerCredentials {
  #others: OtherClients;
  /** SHA-256 of those that clients' certificates may lead to. */
  #roots: ReadonlySet<string>;
  /** Clients that have shown a good certificate, and the root that it led to. */
  readonly #clients = new Map<ClientConnection, string>();

  constructor(port: TlsChoices, certificate: ServerCertificate, others: OtherClients = noOthers) {
    super(constructorOptions(port), contextOptions(port, certificate));
    this.#others = others;
    this.#roots = rootsOf(certificate, others);
  }

  /**
   * For handshakes from now on; connections that there are go on with what they have. A certificate of a root that is trusted no more
   * says nothing from the next call on: who has stolen its key would have a certificate of the next root by a connection that was there
   * before.
   */
  use(port: TlsChoices, certificate: ServerCertificate, others: OtherClients = noOthers): void {
    this.updateSecureContextOptions(contextOptions(port, certificate));
    const [before, now] = [this.#roots, rootsOf(certificate, others)];
    this.#others = others;
    this.#roots = now;
    const isLess = [...before].some((root) => !now.has(root));
    for (const [client, root] of this.#clients) if (isLess || now.has(root)) client.authorized = now.has(root);
  }

  /** Whether a client is good whose certificate TLS does not take. */
  takesOther(chain: readonly Uint8Array[]): boolean {
    return this.#others.takes(chain);
  }

  /** A client has shown a certificate that is good. */
  showed(client: ClientConnection, chain: readonly Uint8Array[]): void {
    this.#clients.set(client, sha256Of(chain.at(-1)!));
    client.once('close', () => this.#clients.delete(client));
  }

  override _equals(other: ServerCredentials): boolean {
    return this === other;
  }
}

function rootsOf({ ca }: ServerCertificate, { roots }: OtherClients): ReadonlySet<string> {
  return new Set([...readCertificates(ca.toString()).map(({ sha256 }) => sha256), ...roots]);
}

function sha256Of(der: Uint8Array): string {
  return createHash('sha256').update(der).digest('hex');
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
  { ca, chain, key }: ServerCertificate,
): SecureContextOptions {
  return { ca, cert: chain, key, minVersion, ...(cipherSuites.length > 0 && { ciphers: cipherSuites.join(':') }) };
}

function read(flag: string, file: string): Buffer {
  try {
    return Buffer.from(readBoundedText(file, mostFileBytes));
  } catch (error) {
    throw new ChartpilotError('FILE_UNREADABLE', `${flag} ${file}: ${messageOf(error)}`, { cause: error });
  }
}

function parsed<T>(flag: string, file: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw invalid(flag, file, `is not PEM as it should be: ${messageOf(error)}`, error);
  }
}

function invalid(flag: string, file: string, what: string, cause?: unknown): ChartpilotError {
  return new ChartpilotError('CONFIG_INVALID', `${flag} ${file} ${what}`, cause === undefined ? {} : { cause });
}
