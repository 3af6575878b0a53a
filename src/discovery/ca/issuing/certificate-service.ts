/** `istio.v1.auth.IstioCertificateService/CreateCertificate`. */
import { fromBinary, toBinary } from '@bufbuild/protobuf';
import { Metadata, type MethodDefinition, type ServerUnaryCall, type sendUnaryData, status } from '@grpc/grpc-js';
import { IstioCertificateRequestSchema, IstioCertificateResponseSchema } from '../../../gen/istio/v1/auth/ca_pb.ts';
import type { Certificate } from '../../../identity/certificate.ts';
import { singleWorkloadOf, uriInMesh } from '../../../identity/spiffe-id.ts';
import { appendCode, type ErrorCode, messageOf } from '../../../runtime/errors.ts';
import type { Logger } from '../../../runtime/output/log.ts';
import { type Authenticator, authenticate, type CallPeer } from '../../xds/access/authenticator.ts';
import type { ActiveAuthority } from '../authority.ts';
import { ledgerIdsOf } from '../authority-material.ts';
import type { CertificateSigner } from './certificate-signer.ts';
import type { IssuanceCounts } from './issuance-counts.ts';
import { type LifetimeLimits, leafLifetime } from './leaf-lifetime.ts';
import type { Registrar, SigningCaller } from './registrar.ts';

export interface CertificateServiceOptions {
  readonly authenticators: readonly Authenticator[];
  readonly activeAuthority: () => ActiveAuthority | undefined;
  readonly signer: Pick<CertificateSigner, 'sign' | 'verify'>;
  /** The mesh's trust domain is first, followed by its aliases. */
  readonly trustDomains: () => readonly string[];
  readonly limits: LifetimeLimits;
  readonly now: () => Date;
  readonly logger: Logger;
  /** If set, signs certificates instead of the authority. */
  readonly registrar?: Registrar;
  /** Roots to return with certificates of the registrar. */
  readonly meshRoots?: () => readonly Certificate[];
  readonly onIssued?: (leaf: IssuedLeaf) => void;
  readonly counts?: IssuanceCounts;
}

export interface IssuedLeaf {
  readonly identity: string;
  /** Reported by the agent; empty for other clients. */
  readonly node: string;
  /** See {@link ledgerIdsOf}. */
  readonly authority: string;
  readonly serialNumber: string;
  readonly endsAt: number;
}

export class IssuanceRejection extends Error {
  readonly code: status;
  readonly metadata: Metadata | undefined;

  constructor(code: status, errorCode: ErrorCode, text: string, metadata?: Metadata) {
    super(appendCode(text, errorCode));
    this.code = code;
    this.metadata = metadata;
  }
}

const path = '/istio.v1.auth.IstioCertificateService/CreateCertificate';
/** Requests with long RSA keys have 3 KB. */
const maxRequestBytes = 64 * 1024;
const maxNodeLength = 1_024;
/** The registrar limits the lifetime itself. */
const maxDate = new Date(8.64e15);

type CreateCertificateCall = ServerUnaryCall<Buffer, Buffer>;

const passThrough = (bytes: Buffer): Buffer => bytes;
export const certificateMethod: MethodDefinition<Buffer, Buffer> = {
  path,
  requestStream: false,
  responseStream: false,
  requestSerialize: passThrough,
  requestDeserialize: passThrough,
  responseSerialize: passThrough,
  responseDeserialize: passThrough,
};

export interface CreateOptions {
  readonly onAuthenticated?: () => void;
  /** Aborted when the client cancels. */
  readonly signal?: AbortSignal;
}

export class CertificateService {
  readonly #options: CertificateServiceOptions;

  constructor(options: CertificateServiceOptions) {
    this.#options = options;
  }

  handle(
    call: CreateCertificateCall,
    peer: CallPeer,
    onAuthenticated: () => void,
    respond: sendUnaryData<Buffer>,
  ): void {
    const cancellation = new AbortController();
    // Without a reason, `abort` would create an Error with a stack trace.
    call.on('cancelled', () => cancellation.abort('cancelled'));
    void this.create(call.request, peer, { onAuthenticated, signal: cancellation.signal }).then(
      (response) => {
        this.#options.counts?.recordResponse(status.OK);
        respond(null, response);
      },
      (error: unknown) => {
        const refusal =
          error instanceof IssuanceRejection
            ? error
            : new IssuanceRejection(status.INTERNAL, 'INTERNAL_ERROR', 'internal error');
        this.#options.counts?.recordResponse(refusal.code);
        if (refusal !== error) this.#options.logger.error('certificate.failed', { error: messageOf(error) });
        respond(
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
   * @returns an encoded IstioCertificateResponse
   * @throws IssuanceRejection
   */
  async create(
    request: Uint8Array,
    peer: CallPeer,
    { onAuthenticated = () => {}, signal }: CreateOptions = {},
  ): Promise<Buffer> {
    const { activeAuthority, signer, limits, now, onIssued, logger } = this.#options;
    // Authenticates before parsing, so that unauthenticated requests cost as little as possible.
    const { uri, endsAt } = await this.#identify(peer);
    onAuthenticated();
    const { csr, validityDuration, node, impersonated } = decodeCertificateRequest(request);
    if (impersonated !== undefined) {
      logger.debug('certificate.impersonated', { identity: uri, peer: peer.address });
      throw new IssuanceRejection(status.UNAUTHENTICATED, 'CLIENT_FORBIDDEN', 'impersonation is not supported');
    }
    if (this.#options.registrar !== undefined) {
      const caller = { endsAt, client: peer.address };
      return this.#register(this.#options.registrar, { csr, uri, validityDuration, caller }, signal);
    }
    const signerAtStart = activeAuthority();
    if (signerAtStart === undefined)
      throw new IssuanceRejection(
        status.UNAVAILABLE,
        'AUTHORITY_UNAVAILABLE',
        'the certificate authority is not ready',
      );
    const lifetimeResult = leafLifetime(validityDuration, limits, signerAtStart.material.notAfter, now());
    if ('tooLong' in lifetimeResult)
      throw new IssuanceRejection(status.INVALID_ARGUMENT, 'CERTIFICATE_REQUEST_INVALID', lifetimeResult.tooLong);
    if ('authorityExpired' in lifetimeResult)
      throw new IssuanceRejection(status.FAILED_PRECONDITION, 'AUTHORITY_EXPIRED', lifetimeResult.authorityExpired);
    const { lifetime } = lifetimeResult;
    const result = await signer.sign({ request: csr, uri, ...lifetime, endsAt, client: peer.address }, signal);
    if ('tryAgainAfterMs' in result) throw busyRejection(result.tryAgainAfterMs);
    if ('refused' in result)
      throw new IssuanceRejection(status.INVALID_ARGUMENT, 'CERTIFICATE_REQUEST_INVALID', result.refused);
    if ('failed' in result) throw new IssuanceRejection(status.INTERNAL, 'AUTHORITY_UNAVAILABLE', result.failed);
    // If the signer changed during signing, its chain would not match the leaf.
    const signerAtEnd = activeAuthority();
    if (signerAtEnd?.material !== signerAtStart.material)
      throw new IssuanceRejection(
        status.UNAVAILABLE,
        'AUTHORITY_UNAVAILABLE',
        'the certificate authority changed during the request, retry',
      );
    const { serialNumber } = result;
    const leaf = { serialNumber, endsAt: lifetime.notAfter.getTime() };
    onIssued?.({ identity: uri, node, authority: ledgerIdsOf(signerAtEnd.material)[0], ...leaf });
    logger.debug('certificate.issued', { identity: uri, notAfter: lifetime.notAfter.toISOString() });
    return responseOf([result.leaf, ...chainOf(signerAtEnd)]);
  }

  /** The external signer receives the CSR unchanged, so it may contain only the caller's identity. */
  async #register(
    registrar: Registrar,
    {
      csr,
      uri,
      validityDuration,
      caller,
    }: { csr: string; uri: string; validityDuration: bigint; caller: SigningCaller },
    signal: AbortSignal | undefined,
  ): Promise<Buffer> {
    const { limits, now, logger, meshRoots, signer } = this.#options;
    const verifyResult = await signer.verify({ requestToVerify: csr, uri, ...caller }, signal);
    if ('tryAgainAfterMs' in verifyResult) throw busyRejection(verifyResult.tryAgainAfterMs);
    if ('refused' in verifyResult)
      throw new IssuanceRejection(status.INVALID_ARGUMENT, 'CERTIFICATE_REQUEST_INVALID', verifyResult.refused);
    if ('failed' in verifyResult)
      throw new IssuanceRejection(status.INTERNAL, 'AUTHORITY_UNAVAILABLE', verifyResult.failed);
    const { key } = verifyResult;
    const requestedLifetime = leafLifetime(validityDuration, limits, maxDate, now());
    if ('tooLong' in requestedLifetime)
      throw new IssuanceRejection(status.INVALID_ARGUMENT, 'CERTIFICATE_REQUEST_INVALID', requestedLifetime.tooLong);
    if ('authorityExpired' in requestedLifetime)
      throw new IssuanceRejection(status.FAILED_PRECONDITION, 'AUTHORITY_EXPIRED', requestedLifetime.authorityExpired);
    const lifetimeMs = requestedLifetime.lifetime.notAfter.getTime() - now().getTime();
    const names = { uris: [uri], dns: [], ips: [] };
    const result = await registrar.sign({ request: csr, key, names, isForClients: true, lifetimeMs }, caller, signal);
    if ('tryAgainAfterMs' in result) throw busyRejection(result.tryAgainAfterMs);
    if ('refused' in result || 'failed' in result) {
      const isRejected = 'refused' in result;
      const reason = isRejected ? result.refused : result.failed;
      logger.warn('certificate.unsigned', { identity: uri, reason: reason });
      throw new IssuanceRejection(
        isRejected ? status.FAILED_PRECONDITION : status.UNAVAILABLE,
        'SIGNER_FAILED',
        reason,
      );
    }
    const { leaf, intermediates, root } = result.issued;
    logger.debug('certificate.issued', { identity: uri, notAfter: leaf.notAfter.toISOString() });
    const otherRoots = (meshRoots?.() ?? []).filter(({ sha256 }) => sha256 !== root.sha256);
    const roots = [root, ...otherRoots].map(({ pem }) => pem).join('');
    return responseOf([leaf.pem, ...intermediates.map(({ pem }) => pem), roots]);
  }

  /** `endsAt` is the expiry of the client certificate (Unix time in milliseconds), or 0 without one. */
  async #identify(peer: CallPeer): Promise<{ uri: string; endsAt: number }> {
    const { authenticators, trustDomains } = this.#options;
    const authenticationResult =
      authenticators.length === 0
        ? { failure: 'no authentication method is configured' }
        : await authenticate(authenticators, peer);
    if ('failure' in authenticationResult) {
      if (authenticationResult.isUnavailable === true)
        throw new IssuanceRejection(status.UNAVAILABLE, 'CLIENT_UNAUTHENTICATED', authenticationResult.failure);
      this.#options.logger.debug('caller.unauthenticated', {
        peer: peer.address,
        reason: authenticationResult.failure,
      });
      throw new IssuanceRejection(status.UNAUTHENTICATED, 'CLIENT_UNAUTHENTICATED', 'authentication failed');
    }
    const identity = singleWorkloadOf(authenticationResult.identities);
    if (identity === undefined)
      throw new IssuanceRejection(
        status.PERMISSION_DENIED,
        'CLIENT_FORBIDDEN',
        'the client must have exactly one workload identity',
      );
    const uri = uriInMesh(identity, trustDomains());
    if (uri === undefined) {
      const text = `the client must be of trust domain ${trustDomains().join(' or ')}, got ${identity.trustDomain}`;
      throw new IssuanceRejection(status.PERMISSION_DENIED, 'CLIENT_FORBIDDEN', text);
    }
    return { uri, endsAt: expiryOf(peer) };
  }
}

/** During a rotation, clients trust two roots. */
function chainOf({ material: { path: certificates, root }, bundle }: ActiveAuthority): string[] {
  const intermediates = certificates.slice(0, -1).map(({ pem }) => pem);
  const otherRoots = bundle.roots.filter(({ sha256 }) => sha256 !== root.sha256);
  return [...intermediates, [root, ...otherRoots].map(({ pem }) => pem).join('')];
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
  /** Set if the requested identity is not the caller's. */
  readonly impersonated: unknown;
}

function decodeCertificateRequest(bytes: Uint8Array): DecodedRequest {
  if (bytes.length > maxRequestBytes)
    throw new IssuanceRejection(
      ...([status.INVALID_ARGUMENT, 'CERTIFICATE_REQUEST_INVALID'] as const),
      `the request must have at most ${maxRequestBytes} bytes, got ${bytes.length}`,
    );
  try {
    const { csr, validityDuration, metadata } = fromBinary(IstioCertificateRequestSchema, bytes);
    const node = metadata?.NodeID;
    return {
      ...{ csr, validityDuration, node: typeof node === 'string' ? node.slice(0, maxNodeLength) : '' },
      impersonated: metadata?.ImpersonatedIdentity || undefined,
    };
  } catch (error) {
    const text = `invalid certificate request: ${messageOf(error)}`;
    throw new IssuanceRejection(status.INVALID_ARGUMENT, 'CERTIFICATE_REQUEST_INVALID', text);
  }
}

function busyRejection(retryAfterMs: number): IssuanceRejection {
  const metadata = new Metadata();
  metadata.set('grpc-retry-pushback-ms', String(retryAfterMs));
  return new IssuanceRejection(
    status.RESOURCE_EXHAUSTED,
    'CERTIFICATE_REQUESTS_EXHAUSTED',
    `too many certificate requests, retry after ${retryAfterMs} ms`,
    metadata,
  );
}

function expiryOf({ certificate }: CallPeer): number {
  const expiryMs = Date.parse(certificate?.valid_to ?? '');
  return Number.isNaN(expiryMs) ? 0 : expiryMs;
}
