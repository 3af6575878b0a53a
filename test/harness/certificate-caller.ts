/** Requests certificates from a control plane's authority, as agents do. */
import type { KeyObject } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { create, fromBinary, type JsonObject, toBinary } from '@bufbuild/protobuf';
import { type ChannelCredentials, Client, credentials, Metadata } from '@grpc/grpc-js';
import { issueToken, localTokenKey } from '../../src/discovery/xds/access/local-tokens.ts';
import { IstioCertificateRequestSchema, IstioCertificateResponseSchema } from '../../src/gen/istio/v1/auth/ca_pb.ts';

/** The control plane's certificate has no IP address. */
export const serverName = { 'grpc.ssl_target_name_override': 'istiod.istio-system.svc' };

export interface CertificateCall {
  readonly csr: string;
  readonly seconds?: bigint;
  readonly bearer?: string;
  /** Sent instead of the request. */
  readonly bytes?: Buffer;
  /** Node ID of the client. */
  readonly node?: string;
}

export interface OwnCertificate {
  /** PEM, without the root. */
  readonly chain: string;
  readonly key: KeyObject;
}

const asItIs = (bytes: Buffer): Buffer => bytes;

export class CertificateCaller {
  readonly #directory: string;
  readonly #clients: Client[] = [];

  /** @param directory SELF_SIGNED_CA_DIR: its roots are trusted, and its key signs tokens */
  constructor(directory: string) {
    this.#directory = directory;
  }

  close(): void {
    for (const client of this.#clients.splice(0)) client.close();
  }

  roots(): Buffer {
    const chains = readdirSync(this.#directory).filter((name) => name.endsWith('.chain'));
    return Buffer.concat(chains.map((name) => readFileSync(join(this.#directory, name))));
  }

  token(account: { namespace: string; serviceAccount: string }, audience = 'istio-ca'): Promise<string> {
    const key = localTokenKey(join(this.#directory, 'token.key'));
    return issueToken(key, { ...account, audience, ttlSeconds: 600 }, new Date());
  }

  channel(ownCertificate?: OwnCertificate): ChannelCredentials {
    if (ownCertificate === undefined) return credentials.createSsl(this.roots());
    const keyText = ownCertificate.key.export({ format: 'pem', type: 'pkcs8' }) as string;
    return credentials.createSsl(this.roots(), Buffer.from(keyText), Buffer.from(ownCertificate.chain));
  }

  client(port: number, ownCertificate?: OwnCertificate): Client {
    const options = { ...serverName, 'grpc.enable_retries': 0 };
    const client = new Client(`127.0.0.1:${port}`, this.channel(ownCertificate), options);
    this.#clients.push(client);
    return client;
  }
}

/**
 * @returns PEM, the leaf first
 * @throws ServiceError
 */
export function requestCertificateChain(
  client: Client,
  { csr, seconds = 0n, bearer, bytes, node }: CertificateCall,
): Promise<string[]> {
  const metadata = new Metadata();
  if (bearer !== undefined) metadata.set('authorization', `Bearer ${bearer}`);
  const metadataFields: { metadata?: JsonObject } = node === undefined ? {} : { metadata: { NodeID: node } };
  const message = create(IstioCertificateRequestSchema, { csr, validityDuration: seconds, ...metadataFields });
  const request = bytes ?? Buffer.from(toBinary(IstioCertificateRequestSchema, message));
  const path = '/istio.v1.auth.IstioCertificateService/CreateCertificate';
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(path, asItIs, asItIs, request, metadata, (error, response) => {
      if (error !== null) reject(error);
      else resolve(fromBinary(IstioCertificateResponseSchema, response!).certChain);
    });
  });
}
