/** What the port with TLS shows its clients (spec/discovery.md §1.2, §1.3), from three PEM files. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import type { SecureServerOptions } from 'node:http2';
import type { SecureContextOptions, TlsOptions } from 'node:tls';
import { ServerCredentials } from '@grpc/grpc-js';
import { type Certificate, readCertificate, readCertificates, rootKeyOf } from '../../../identity/certificate.ts';
import { findPath } from '../../../identity/certificate-path.ts';
import { ChartpilotError, messageOf } from '../../../runtime/errors.ts';
import { readBoundedText } from '../../../runtime/files/bounded-file.ts';
import { readTogetherSync } from '../../../runtime/files/read-together.ts';
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
  const { ca, chain, key } = readTogetherSync((at) => ({
    ca: read('--caCertFile', files.caFile, at),
    chain: read('--tlsCertFile', files.certificateFile, at),
    key: read('--tlsKeyFile', files.keyFile, at),
  }));
  parsed('--caCertFile', files.caFile, () => new X509Certificate(ca));
  const certificate = parsed('--tlsCertFile', files.certificateFile, () => new X509Certificate(chain));
  const privateKey = parsed('--tlsKeyFile', files.keyFile, () => createPrivateKey(key));
  if (!certificate.checkPrivateKey(privateKey)) {
    throw invalid('--tlsKeyFile', files.keyFile, `does not match the certificate in ${files.certificateFile}`);
  }
  const { validFromDate: notBefore, validToDate: notAfter, serialNumber } = certificate;
  if (now > notAfter) {
    throw invalid('--tlsCertFile', files.certificateFile, `expired on ${notAfter.toISOString()}`);
  }
  if (now < notBefore) {
    throw invalid('--tlsCertFile', files.certificateFile, `is not valid before ${notBefore.toISOString()}`);
  }
  const problem = pathProblem(files, { ca, chain }, now);
  if (problem !== undefined) {
    throw invalid(
      '--tlsCertFile',
      files.certificateFile,
      `has no valid chain to a root in ${files.caFile}: ${problem}`,
    );
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
  /** Those by which it judges. */
  readonly roots: readonly Certificate[];
}

const noOthers: OtherClients = { takes: () => false, roots: [] };

/** A connection by which a client has shown a certificate that is good. */
export interface ClientConnection {
  /** Node's TLSSocket. Whether the certificate says who the client is: grpc-js looks at it with each call. */
  readonly socket: { authorized?: boolean };
  /** Node's ServerHttp2Session. Closed, it takes no more streams, tells the client so, and keeps those that there are. */
  readonly session: {
    close(): void;
    once(event: 'close', listener: () => void): unknown;
  };
  /** DER, the leaf first, as far as node knows it. */
  readonly chain: readonly Uint8Array[];
}

/**
 * The credentials of the port with TLS. Clients are asked for a certificate and need not have one: whether one is good is
 * for the authenticators to see.
 */
export class SecurePortCredentials extends ServerCredentials {
  #others: OtherClients;
  /** Those that clients' certificates may lead to, by {@link rootKeyOf}. */
  #roots: ReadonlySet<string>;
  /** With the root that the certificate led to, as far as it is known. */
  readonly #clients = new Map<ClientConnection, string | undefined>();

  constructor(port: TlsChoices, certificate: ServerCertificate, others: OtherClients = noOthers) {
    super(constructorOptions(port), contextOptions(port, certificate));
    this.#others = others;
    this.#roots = rootsOf(certificate, others);
  }

  /**
   * For handshakes from now on; connections that there are go on with what they have. Where a root is trusted no more, those that are
   * not known to lead to another one take no more calls, and their clients shake hands anew: who has stolen the key of the old root
   * would have a certificate of the next one by a connection that was there before. Tickets of before are good for nothing by then.
   */
  use(port: TlsChoices, certificate: ServerCertificate, others: OtherClients = noOthers): void {
    this.updateSecureContextOptions(contextOptions(port, certificate));
    const [before, now] = [this.#roots, rootsOf(certificate, others)];
    this.#others = others;
    this.#roots = now;
    if ([...before].every((root) => now.has(root))) return;
    for (const [client, root] of this.#clients) if (root === undefined || !now.has(root)) this.#letGo(client);
  }

  /** For another server with the same certificate and clients. */
  get tlsOptions(): TlsOptions {
    return { ...this._getConstructorOptions(), ...this._getSecureContextOptions() };
  }

  /** Whether a client is good whose certificate TLS does not take. */
  takesOther(chain: readonly Uint8Array[]): boolean {
    return this.#others.takes(chain);
  }

  showed(client: ClientConnection): void {
    this.#clients.set(client, rootIn(client.chain));
    client.session.once('close', () => this.#clients.delete(client));
  }

  /** A call that has begun may not have been asked yet who makes it. */
  #letGo(client: ClientConnection): void {
    this.#clients.delete(client);
    client.socket.authorized = false;
    client.session.close();
  }

  override _equals(other: ServerCredentials): boolean {
    return this === other;
  }
}

function rootsOf({ ca }: ServerCertificate, { roots }: OtherClients): ReadonlySet<string> {
  return new Set([...readCertificates(ca.toString()), ...roots].map(rootKeyOf));
}

/**
 * Of a chain with intermediates node may say the leaf alone (nodejs/node#65579): the last that it says is no root then, and none that
 * anybody trusts.
 */
function rootIn(chain: readonly Uint8Array[]): string | undefined {
  try {
    return rootKeyOf(readCertificate(chain.at(-1)!));
  } catch {
    // TLS took what is not read here.
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
  { ca, chain, key }: ServerCertificate,
): SecureContextOptions {
  return { ca, cert: chain, key, minVersion, ...(cipherSuites.length > 0 && { ciphers: cipherSuites.join(':') }) };
}

function read(flag: string, file: string, at: (path: string) => string): Buffer {
  try {
    return Buffer.from(readBoundedText(at(file), mostFileBytes));
  } catch (error) {
    throw new ChartpilotError('FILE_UNREADABLE', `${flag} ${file}: ${messageOf(error)}`, { cause: error });
  }
}

function parsed<T>(flag: string, file: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw invalid(flag, file, `is not valid PEM: ${messageOf(error)}`, error);
  }
}

function invalid(flag: string, file: string, what: string, cause?: unknown): ChartpilotError {
  return new ChartpilotError('CONFIG_INVALID', `${flag} ${file} ${what}`, cause === undefined ? {} : { cause });
}
