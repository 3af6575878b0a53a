/** `istio.v1.auth.IstioCertificateService/CreateCertificate` (spec/discovery.md §11). */
import { fromBinary, toBinary } from '@bufbuild/protobuf';
import { Metadata, type MethodDefinition, type ServerUnaryCall, type sendUnaryData, status } from '@grpc/grpc-js';
import { IstioCertificateRequestSchema, IstioCertificateResponseSchema } from '../../../gen/istio/v1/auth/ca_pb.ts';
import type { Certificate } from '../../../identity/certificate.ts';
import { oneWorkloadOf, uriInMesh } from '../../../identity/spiffe-id.ts';
import { type ErrorCode, messageOf, withCode } from '../../../runtime/errors.ts';
import type { Logger } from '../../../runtime/output/log.ts';
import { type Authenticator, authenticate, type CallPeer } from '../../xds/access/authenticator.ts';
import type { AuthorityInForce } from '../authority.ts';
import { ledgerIdsOf } from '../authority-material.ts';
import type { CertificateSigner } from './certificate-signer.ts';
import type { IssuanceCounts } from './issuance-counts.ts';
import { type LifetimeLimits, leafLifetime } from './leaf-lifetime.ts';
import type { Registrar, Whose } from './registrar.ts';

export interface CertificateServiceOptions {
  readonly authenticators: readonly Authenticator[];
  readonly inForce: () => AuthorityInForce | undefined;
  readonly signer: Pick<CertificateSigner, 'sign' | 'verify'>;
  /** Of the mesh, now: its own, and then its aliases. */
  readonly trustDomains: () => readonly string[];
  readonly limits: LifetimeLimits;
  readonly now: () => Date;
  readonly logger: Logger;
  /** Signs instead of the authority, for who it is by its word; absent: the authority does. */
  readonly registrar?: Registrar;
  /** PEM: those that workloads are told of, where somebody else signs. */
  readonly rootsInMesh?: () => readonly Certificate[];
  /** A certificate was handed out by the authority. */
  readonly issued?: (leaf: IssuedLeaf) => void;
  readonly counts?: IssuanceCounts;
}

export interface IssuedLeaf {
  readonly identity: string;
  /** As the agent says; empty for agents of others. */
  readonly node: string;
  /** Of the root that it hangs on, see {@link ledgerIdsOf}. */
  readonly authority: string;
  readonly serialNumber: string;
  readonly endsAt: number;
}

/** Why somebody does not get a certificate. */
export class Refusal extends Error {
  readonly code: status;
  readonly metadata: Metadata | undefined;

  constructor(code: status, errorCode: ErrorCode, text: string, metadata?: Metadata) {
    super(withCode(text, errorCode));
    this.code = code;
    this.metadata = metadata;
  }
}

const path = '/istio.v1.auth.IstioCertificateService/CreateCertificate';
/** A request with a long RSA key and its metadata has 3 KB. */
const mostBytes = 64 * 1024;
const longestNode = 1_024;
/** Who signs knows when it ends. */
const forever = new Date(8.64e15);

type UnaryCall = ServerUnaryCall<Buffer, Buffer>;

const asItIs = (bytes: Buffer): Buffer => bytes;
export const certificateMethod: MethodDefinition<Buffer, Buffer> = {
  path,
  requestStream: false,
  responseStream: false,
  requestSerialize: asItIs,
  requestDeserialize: asItIs,
  responseSerialize: asItIs,
  responseDeserialize: asItIs,
};

export interface CreateOptions {
  /** Called when it is known who the caller is. */
  readonly known?: () => void;
  /** The caller is gone. */
  readonly signal?: AbortSignal;
}

export class CertificateService {
  readonly #options: CertificateServiceOptions;

  constructor(options: CertificateServiceOptions) {
    this.#options = options;
  }

  /** As grpc-js calls it. */
  handle(call: UnaryCall, peer: CallPeer, known: () => void, answer: sendUnaryData<Buffer>): void {
    const gone = new AbortController();
    // With a reason: without one an error with its stack is made for each call.
    call.on('cancelled', () => gone.abort('cancelled'));
    void this.create(call.request, peer, { known, signal: gone.signal }).then(
      (response) => {
        this.#options.counts?.responded(status.OK);
        answer(null, response);
      },
      (error: unknown) => {
        const refusal =
          error instanceof Refusal ? error : new Refusal(status.INTERNAL, 'INTERNAL_ERROR', 'internal error');
        this.#options.counts?.responded(refusal.code);
        if (refusal !== error) this.#options.logger.error('certificate.failed', { error: messageOf(error) });
        answer(
          Object.assign(new Error(refusal.message), {
            code: refusal.code,
            details: refusal.message,
            ...(refusal.metadata && { metadata: refusal.metadata }),
          }),
        );
      },
    );
  }

  /**
   * @returns an IstioCertificateResponse
   * @throws Refusal
   */
  async create(request: Uint8Array, peer: CallPeer, { known = () => {}, signal }: CreateOptions = {}): Promise<Buffer> {
    const { inForce, signer, limits, now, issued, logger } = this.#options;
    // An unknown caller costs nothing more.
    const { uri, endsAt } = await this.#identify(peer);
    known();
    const { csr, validityDuration, node, impersonated } = decoded(request);
    if (impersonated !== undefined) {
      logger.debug('certificate.impersonated', { identity: uri, peer: peer.address });
      throw new Refusal(status.UNAUTHENTICATED, 'CLIENT_FORBIDDEN', 'impersonation is not supported');
    }
    if (this.#options.registrar !== undefined) {
      const whose = { endsAt, client: peer.address };
      return this.#register(this.#options.registrar, { csr, uri, validityDuration, whose }, signal);
    }
    const before = inForce();
    if (before === undefined)
      throw new Refusal(status.UNAVAILABLE, 'AUTHORITY_UNAVAILABLE', 'the certificate authority is not ready');
    const answer = leafLifetime(validityDuration, limits, before.material.notAfter, now());
    if ('tooLong' in answer) throw new Refusal(status.INVALID_ARGUMENT, 'CERTIFICATE_REQUEST_INVALID', answer.tooLong);
    if ('ended' in answer) throw new Refusal(status.FAILED_PRECONDITION, 'AUTHORITY_EXPIRED', answer.ended);
    const { lifetime } = answer;
    const result = await signer.sign({ request: csr, uri, ...lifetime, endsAt, client: peer.address }, signal);
    if ('tryAgainAfterMs' in result) throw busy(result.tryAgainAfterMs);
    if ('refused' in result) throw new Refusal(status.INVALID_ARGUMENT, 'CERTIFICATE_REQUEST_INVALID', result.refused);
    if ('failed' in result) throw new Refusal(status.INTERNAL, 'AUTHORITY_UNAVAILABLE', result.failed);
    // In the midst of a step of the rotation: the chain would not be that of who signed.
    const after = inForce();
    if (after?.material !== before.material)
      throw new Refusal(
        status.UNAVAILABLE,
        'AUTHORITY_UNAVAILABLE',
        'the certificate authority changed during the request, retry',
      );
    const { serialNumber } = result;
    const leaf = { serialNumber, endsAt: lifetime.notAfter.getTime() };
    issued?.({ identity: uri, node, authority: ledgerIdsOf(after.material)[0], ...leaf });
    logger.debug('certificate.issued', { identity: uri, notAfter: lifetime.notAfter.toISOString() });
    return responseOf([result.leaf, ...chainOf(after)]);
  }

  /** The signer is told the very request of the caller: it must ask for who the caller is, and for nothing else. */
  async #register(
    registrar: Registrar,
    { csr, uri, validityDuration, whose }: { csr: string; uri: string; validityDuration: bigint; whose: Whose },
    signal: AbortSignal | undefined,
  ): Promise<Buffer> {
    const { limits, now, logger, rootsInMesh, signer } = this.#options;
    const verified = await signer.verify({ requestToVerify: csr, uri, ...whose }, signal);
    if ('tryAgainAfterMs' in verified) throw busy(verified.tryAgainAfterMs);
    if ('refused' in verified)
      throw new Refusal(status.INVALID_ARGUMENT, 'CERTIFICATE_REQUEST_INVALID', verified.refused);
    if ('failed' in verified) throw new Refusal(status.INTERNAL, 'AUTHORITY_UNAVAILABLE', verified.failed);
    const { key } = verified;
    const answer = leafLifetime(validityDuration, limits, forever, now());
    if ('tooLong' in answer) throw new Refusal(status.INVALID_ARGUMENT, 'CERTIFICATE_REQUEST_INVALID', answer.tooLong);
    if ('ended' in answer) throw new Refusal(status.FAILED_PRECONDITION, 'AUTHORITY_EXPIRED', answer.ended);
    const lifetimeMs = answer.lifetime.notAfter.getTime() - now().getTime();
    const names = { uris: [uri], dns: [], ips: [] };
    const result = await registrar.sign({ request: csr, key, names, isForClients: true, lifetimeMs }, whose, signal);
    if ('tryAgainAfterMs' in result) throw busy(result.tryAgainAfterMs);
    if ('refused' in result || 'failed' in result) {
      const isRefused = 'refused' in result;
      const why = isRefused ? result.refused : result.failed;
      logger.warn('certificate.unsigned', { identity: uri, reason: why });
      throw new Refusal(isRefused ? status.FAILED_PRECONDITION : status.UNAVAILABLE, 'SIGNER_FAILED', why);
    }
    const { leaf, between, root } = result.issued;
    logger.debug('certificate.issued', { identity: uri, notAfter: leaf.notAfter.toISOString() });
    const others = (rootsInMesh?.() ?? []).filter(({ sha256 }) => sha256 !== root.sha256);
    const roots = [root, ...others].map(({ pem }) => pem).join('');
    return responseOf([leaf.pem, ...between.map(({ pem }) => pem), roots]);
  }

  /** The one workload of the mesh that the caller is, and when the certificate ends that it shows. */
  async #identify(peer: CallPeer): Promise<{ uri: string; endsAt: number }> {
    const { authenticators, trustDomains } = this.#options;
    const known =
      authenticators.length === 0
        ? { failure: 'no authentication method is configured' }
        : await authenticate(authenticators, peer);
    if ('failure' in known) {
      if (known.isUnavailable === true) throw new Refusal(status.UNAVAILABLE, 'CLIENT_UNAUTHENTICATED', known.failure);
      this.#options.logger.debug('caller.unauthenticated', { peer: peer.address, reason: known.failure });
      throw new Refusal(status.UNAUTHENTICATED, 'CLIENT_UNAUTHENTICATED', 'authentication failed');
    }
    const identity = oneWorkloadOf(known.identities);
    if (identity === undefined)
      throw new Refusal(
        status.PERMISSION_DENIED,
        'CLIENT_FORBIDDEN',
        'the client must have exactly one workload identity',
      );
    const uri = uriInMesh(identity, trustDomains());
    if (uri === undefined) {
      const text = `the client must be of trust domain ${trustDomains().join(' or ')}, got ${identity.trustDomain}`;
      throw new Refusal(status.PERMISSION_DENIED, 'CLIENT_FORBIDDEN', text);
    }
    return { uri, endsAt: endOfCertificate(peer) };
  }
}

/** From what signed, over what is between, to the roots: all of them, while a rotation has two. */
function chainOf({ material: { path: certificates, root }, bundle }: AuthorityInForce): string[] {
  const between = certificates.slice(0, -1).map(({ pem }) => pem);
  const others = bundle.roots.filter(({ sha256 }) => sha256 !== root.sha256);
  return [...between, [root, ...others].map(({ pem }) => pem).join('')];
}

function responseOf(certChain: string[]): Buffer {
  return Buffer.from(
    toBinary(IstioCertificateResponseSchema, { $typeName: 'istio.v1.auth.IstioCertificateResponse', certChain }),
  );
}

interface DecodedRequest {
  readonly csr: string;
  readonly validityDuration: bigint;
  readonly node: string;
  /** As whom the caller wants to be signed for, instead of itself; undefined: it does not. */
  readonly impersonated: unknown;
}

function decoded(bytes: Uint8Array): DecodedRequest {
  if (bytes.length > mostBytes)
    throw new Refusal(
      ...([status.INVALID_ARGUMENT, 'CERTIFICATE_REQUEST_INVALID'] as const),
      `the request must have at most ${mostBytes} bytes, got ${bytes.length}`,
    );
  try {
    const { csr, validityDuration, metadata } = fromBinary(IstioCertificateRequestSchema, bytes);
    const node = metadata?.NodeID;
    return {
      ...{ csr, validityDuration, node: typeof node === 'string' ? node.slice(0, longestNode) : '' },
      impersonated: metadata?.ImpersonatedIdentity || undefined,
    };
  } catch (error) {
    const text = `invalid certificate request: ${messageOf(error)}`;
    throw new Refusal(status.INVALID_ARGUMENT, 'CERTIFICATE_REQUEST_INVALID', text);
  }
}

/** gRPC's own word for when to try again, which clients obey. */
function busy(afterMs: number): Refusal {
  const metadata = new Metadata();
  metadata.set('grpc-retry-pushback-ms', String(afterMs));
  return new Refusal(
    status.RESOURCE_EXHAUSTED,
    'CERTIFICATE_REQUESTS_EXHAUSTED',
    `too many certificate requests, retry after ${afterMs} ms`,
    metadata,
  );
}

function endOfCertificate({ certificate }: CallPeer): number {
  const end = Date.parse(certificate?.valid_to ?? '');
  return Number.isNaN(end) ? 0 : end;
}
