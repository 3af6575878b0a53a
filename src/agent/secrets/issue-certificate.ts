/** A certificate of the authority for a key that was made for it (spec/agent.md §7.3): asked for, checked, kept. */
import { once } from 'node:events';
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { identityName } from '../../../machines/agent/secrets/held-secrets.ts';
import type { ObtainOrder } from '../../../machines/agent/secrets/secret.machine.ts';
import { CertificateError } from '../../identity/certificate-problem.ts';
import { spiffeUriOf } from '../../identity/spiffe-id.ts';
import { type ProxyConfig, parseHostAndPort } from '../../model/mesh/proxy-config.ts';
import { reasonIn } from '../../runtime/errors.ts';
import type { FileTurns } from '../../runtime/files/file-turns.ts';
import { type GrpcCode, GrpcError } from '../../runtime/grpc/call-status.ts';
import { defaultGrpcLimits, GrpcConnection, unary } from '../../runtime/grpc/grpc-client.ts';
import { type ConnectionCredentials, ControlPlaneCredentials } from '../identity/control-plane-credentials.ts';
import type { ToldRoots } from '../identity/told-roots.ts';
import type { IdentityOptions } from '../options/identity-options.ts';
import { clusterHeader } from '../xds/xds-headers.ts';
import type { CheckedCertificate, HelperAnswer, HelperOrder, HelperWork } from './certificate-work.ts';
import { type Found, NotObtained } from './obtain-secret.ts';
import type { SecretVault } from './secret-vault.ts';

const method = '/istio.v1.auth.IstioCertificateService/CreateCertificate';
/** A file system answers at once or not at all; whether the certificate in force has ended meanwhile is to be seen all the same. */
const filesLimitMs = 10_000;
const callLimits = { limitMs: 10_000, maxBytes: 1024 * 1024 };
/** Loading takes it 0.2 s, and as many seconds on a machine that does other things. */
const helperLimitMs = 15_000;

/** Below the sources, and below the bundles. */
const helperModule = new URL(`./certificate-helper${extname(import.meta.filename)}`, import.meta.url);

export interface IssueMeans {
  readonly vault: SecretVault;
  readonly told?: ToldRoots;
  /** Turns for the file systems that the agent's credentials lie on. */
  readonly credentialTurns?: FileTurns;
  readonly identity: Pick<IdentityOptions, 'authorityAddress' | 'lifetimeSeconds' | 'key' | 'trustDomain'>;
  readonly config: Pick<ProxyConfig, 'discoveryAddress' | 'proxyMetadata'>;
  readonly env: NodeJS.ProcessEnv;
  /** The node's id as Envoy has it: in a rotation the authority waits for this node's word. */
  readonly nodeId: string;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

export function issueCertificate(means: IssueMeans) {
  const { vault } = means;
  return async (order: ObtainOrder, signal: AbortSignal): Promise<Found> => {
    const credentials = await credentialsFor(means, order, signal);
    const helper = new CertificateHelper(workOf(means));
    try {
      const request = await helper.request(signal);
      const response = await call(means, credentials, request, signal);
      const { pair, roots, ...checked } = await helper.check({ response, nowMs: means.now() }, signal);
      signal.throwIfAborted();
      vault.keepSet('authorities', checked.authorities, roots);
      return { version: vault.keepCertificate(identityName, pair), ...checked };
    } finally {
      await helper.end();
    }
  };
}

/** What a certificate is asked for. */
export function workOf({ identity, env, nodeId }: Pick<IssueMeans, 'identity' | 'env' | 'nodeId'>): HelperWork {
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

/** The port of the authority has TLS, whatever is said of xDS; but for the one that has none. */
async function credentialsFor(
  { vault, told, credentialTurns, config, env, identity, now }: IssueMeans,
  { shown, version }: ObtainOrder,
  signal: AbortSignal,
): Promise<ConnectionCredentials> {
  const read = new ControlPlaneCredentials({
    config: { ...config, controlPlaneAuthPolicy: 'MUTUAL_TLS' },
    env,
    now,
    ...(told && { told }),
    ...(credentialTurns && { turns: credentialTurns }),
    ...(shown === 'certificate' && { own: () => vault.get(identityName, version)?.pair }),
  });
  const limit = AbortSignal.any([signal, AbortSignal.timeout(filesLimitMs)]);
  try {
    return await Promise.race([read.read('ca', identity.authorityAddress, shown, limit), givenUp(limit)]);
  } catch (error) {
    throw new NotObtained(reasonIn(error), { cause: error });
  }
}

function givenUp(limit: AbortSignal): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>();
  const what = `token and certificate files not read within ${filesLimitMs} ms`;
  limit.addEventListener('abort', () => reject(new Error(what)), { once: true });
  return promise;
}

/** One call, by a connection of its own: a connection that failed would fail again (istio#60326). */
async function call(
  { identity: { authorityAddress }, env }: IssueMeans,
  { tls, headers, shown }: ConnectionCredentials,
  request: Uint8Array,
  stopped: AbortSignal,
): Promise<Uint8Array> {
  const address = parseHostAndPort(authorityAddress);
  if (address === undefined) throw new NotObtained(`CA address must be host:port, got "${authorityAddress}"`);
  const cluster = clusterHeader(env);
  let connection: GrpcConnection | undefined;
  try {
    connection = await GrpcConnection.open({ address, ...(tls && { tls }) }, defaultGrpcLimits, stopped);
    const all = { ...headers, ...(cluster !== undefined && { clusterid: cluster }) };
    return await unary(connection, method, all, request, { ...callLimits, stopped });
  } catch (error) {
    if (!(error instanceof GrpcError)) throw error;
    const { code, retryAfterMs = 0 } = error;
    throw new NotObtained(`CA ${authorityAddress}: ${error.message} (credentials: ${shown})`, {
      unknown: code === 'UNAUTHENTICATED' || code === 'PERMISSION_DENIED' || isAnswer(code, connection),
      pushbackMs: retryAfterMs,
    });
  } finally {
    connection?.close();
  }
}

/** Whoever it asks whose a token is does not answer it: of a certificate it need ask nobody. */
function isAnswer(code: GrpcCode, connection: GrpcConnection | undefined): boolean {
  return code === 'UNAVAILABLE' && connection !== undefined && connection.whyGone === undefined;
}

function notIssued(answer: HelperAnswer, otherwise: string): NotObtained {
  if (!('problem' in answer)) return new NotObtained(otherwise);
  const { problem: message, code } = answer;
  return new NotObtained(message, { cause: new CertificateError({ code, message }) });
}

class CertificateHelper {
  readonly #worker: Worker;

  constructor(work: HelperWork) {
    this.#worker = new Worker(helperModule, { workerData: work });
    // Whoever waits for the thread's answer hears of its error.
    this.#worker.on('error', () => {});
  }

  async request(signal: AbortSignal): Promise<Uint8Array> {
    const answer = await this.#answer(signal);
    if ('request' in answer) return answer.request;
    throw notIssued(answer, 'no certificate request generated');
  }

  async check(order: HelperOrder, signal: AbortSignal): Promise<CheckedCertificate> {
    const coming = this.#answer(signal);
    this.#worker.postMessage(order);
    const answer = await coming;
    if ('pair' in answer) return answer;
    throw notIssued(answer, 'certificate not checked');
  }

  async end(): Promise<void> {
    await this.#worker.terminate();
  }

  async #answer(signal: AbortSignal): Promise<HelperAnswer> {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(helperLimitMs)]);
    const [answer] = (await once(this.#worker, 'message', { signal: limit })) as [HelperAnswer];
    return answer;
  }
}
