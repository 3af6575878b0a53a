import { once } from 'node:events';
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { identityName } from '../../../machines/agent/secrets/held-secrets.ts';
import type { ObtainOrder } from '../../../machines/agent/secrets/secret.machine.ts';
import { CertificateError } from '../../identity/certificate-problem.ts';
import { spiffeUriOf } from '../../identity/spiffe-id.ts';
import { type ProxyConfig, parseHostAndPort } from '../../model/mesh/proxy-config.ts';
import { errorReasonOf } from '../../runtime/errors.ts';
import type { FileTurns } from '../../runtime/files/file-turns.ts';
import { type GrpcCode, GrpcError } from '../../runtime/grpc/call-status.ts';
import { defaultGrpcLimits, GrpcConnection, unary } from '../../runtime/grpc/grpc-client.ts';
import { type ConnectionCredentials, ControlPlaneCredentials } from '../identity/control-plane-credentials.ts';
import type { DistributedRoots } from '../identity/distributed-roots.ts';
import type { IdentityOptions } from '../options/identity-options.ts';
import { clusterHeader } from '../xds/xds-headers.ts';
import type { CheckedCertificate, HelperOrder, HelperResult, HelperWork } from './certificate-work.ts';
import { ObtainError, type VerifiedSecret } from './obtain-secret.ts';
import type { SecretVault } from './secret-vault.ts';

const method = '/istio.v1.auth.IstioCertificateService/CreateCertificate';
/** A file system that hangs must not delay the check for an expired certificate. */
const filesLimitMs = 10_000;
const callLimits = { limitMs: 10_000, maxBytes: 1024 * 1024 };
/** The thread loads in 0.2 s, or several seconds on a busy host. */
const helperLimitMs = 15_000;

/** The helper is next to this file, in the sources and in the bundles. */
const helperModule = new URL(`./certificate-helper${extname(import.meta.filename)}`, import.meta.url);

export interface IssueEnvironment {
  readonly vault: SecretVault;
  readonly distributedRoots?: DistributedRoots;
  readonly credentialTurns?: FileTurns;
  readonly identity: Pick<IdentityOptions, 'authorityAddress' | 'lifetimeSeconds' | 'key' | 'trustDomain'>;
  readonly config: Pick<ProxyConfig, 'discoveryAddress' | 'proxyMetadata'>;
  readonly env: NodeJS.ProcessEnv;
  /** During a rotation, the authority waits for a report of this node. */
  readonly nodeId: string;
  readonly now: () => number;
}

export function issueCertificate(environment: IssueEnvironment) {
  const { vault } = environment;
  return async (order: ObtainOrder, signal: AbortSignal): Promise<VerifiedSecret> => {
    const credentials = await credentialsFor(environment, order, signal);
    const helper = new CertificateHelper(requestOf(environment));
    try {
      const request = await helper.request(signal);
      const response = await requestCertificate(environment, credentials, request, signal);
      const { pair, roots, ...checkResult } = await helper.check({ response, nowMs: environment.now() }, signal);
      signal.throwIfAborted();
      vault.keepSet('authorities', checkResult.authorities, roots);
      return { version: vault.keepCertificate(identityName, pair), ...checkResult };
    } finally {
      await helper.end();
    }
  };
}

export function requestOf({
  identity,
  env,
  nodeId,
}: Pick<IssueEnvironment, 'identity' | 'env' | 'nodeId'>): HelperWork {
  const { trustDomain, key, lifetimeSeconds } = identity;
  const [namespace, serviceAccount] = [env.POD_NAMESPACE || 'default', env.SERVICE_ACCOUNT || 'default'];
  const signer = env.ISTIO_META_CERT_SIGNER;
  return {
    uri: spiffeUriOf({ trustDomain, namespace, serviceAccount }),
    key,
    lifetimeSeconds,
    metadata: { NodeID: nodeId, ...(signer && { CertSigner: signer }) },
  };
}

/** The authority's port uses TLS regardless of the xDS configuration, unless it is a plaintext port. */
async function credentialsFor(
  { vault, distributedRoots, credentialTurns, config, env, identity, now }: IssueEnvironment,
  { credential, version }: ObtainOrder,
  signal: AbortSignal,
): Promise<ConnectionCredentials> {
  const credentials = new ControlPlaneCredentials({
    config: { ...config, controlPlaneAuthPolicy: 'MUTUAL_TLS' },
    env,
    now,
    ...(distributedRoots && { distributedRoots }),
    ...(credentialTurns && { turns: credentialTurns }),
    ...(credential === 'certificate' && { workloadCertificate: () => vault.get(identityName, version)?.pair }),
  });
  const limitSignal = AbortSignal.any([signal, AbortSignal.timeout(filesLimitMs)]);
  try {
    return await Promise.race([
      credentials.read('ca', identity.authorityAddress, credential, limitSignal),
      timeoutOf(limitSignal),
    ]);
  } catch (error) {
    throw new ObtainError(errorReasonOf(error), { cause: error });
  }
}

function timeoutOf(limit: AbortSignal): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>();
  const problemText = `token and certificate files not read within ${filesLimitMs} ms`;
  limit.addEventListener('abort', () => reject(new Error(problemText)), { once: true });
  return promise;
}

/** Uses a new connection, because a failed one would fail again (istio#60326). */
async function requestCertificate(
  { identity: { authorityAddress }, env }: IssueEnvironment,
  { tls, headers, description }: ConnectionCredentials,
  request: Uint8Array,
  stopSignal: AbortSignal,
): Promise<Uint8Array> {
  const address = parseHostAndPort(authorityAddress);
  if (address === undefined) throw new ObtainError(`CA address must be host:port, got "${authorityAddress}"`);
  const cluster = clusterHeader(env);
  let connection: GrpcConnection | undefined;
  try {
    connection = await GrpcConnection.open({ address, ...(tls && { tls }) }, defaultGrpcLimits, stopSignal);
    const allHeaders = { ...headers, ...(cluster !== undefined && { clusterid: cluster }) };
    return await unary(connection, method, allHeaders, request, { ...callLimits, stopped: stopSignal });
  } catch (error) {
    if (!(error instanceof GrpcError)) throw error;
    const { code, retryAfterMs = 0 } = error;
    throw new ObtainError(`CA ${authorityAddress}: ${error.message} (credentials: ${description})`, {
      unknown: code === 'UNAUTHENTICATED' || code === 'PERMISSION_DENIED' || isReviewerUnavailable(code, connection),
      pushbackMs: retryAfterMs,
    });
  } finally {
    connection?.close();
  }
}

/** An authority whose token reviewer does not respond rejects tokens; a certificate needs no review. */
function isReviewerUnavailable(code: GrpcCode, connection: GrpcConnection | undefined): boolean {
  return code === 'UNAVAILABLE' && connection !== undefined && connection.closeError === undefined;
}

function notIssuedError(result: HelperResult, fallbackReason: string): ObtainError {
  if (!('problem' in result)) return new ObtainError(fallbackReason);
  const { problem: message, code } = result;
  return new ObtainError(message, { cause: new CertificateError({ code, message }) });
}

class CertificateHelper {
  readonly #worker: Worker;

  constructor(work: HelperWork) {
    this.#worker = new Worker(helperModule, { workerData: work });
    this.#worker.on('error', () => {});
  }

  async request(signal: AbortSignal): Promise<Uint8Array> {
    const result = await this.#result(signal);
    if ('request' in result) return result.request;
    throw notIssuedError(result, 'no certificate request generated');
  }

  async check(order: HelperOrder, signal: AbortSignal): Promise<CheckedCertificate> {
    const pending = this.#result(signal);
    this.#worker.postMessage(order);
    const result = await pending;
    if ('pair' in result) return result;
    throw notIssuedError(result, 'certificate not checked');
  }

  async end(): Promise<void> {
    await this.#worker.terminate();
  }

  async #result(signal: AbortSignal): Promise<HelperResult> {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(helperLimitMs)]);
    const [result] = (await once(this.#worker, 'message', { signal: limit })) as [HelperResult];
    return result;
  }
}
