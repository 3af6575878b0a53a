/** Credentials are read for each connection, because tokens and certificates are replaced at run time. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { access, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isSwitchOn } from '../../model/fields/switches.ts';
import type { ProxyConfig } from '../../model/mesh/proxy-config.ts';
import { parseHostAndPort } from '../../model/mesh/proxy-config.ts';
import { ChartpilotError, fileErrorOf } from '../../runtime/errors.ts';
import { FileTurns } from '../../runtime/files/file-turns.ts';
import { readConsistently } from '../../runtime/files/read-together.ts';
import type { KeyPair } from '../../runtime/grpc/key-pair.ts';
import { type ControlPlaneService, controlPlaneName, findControlPlaneRootFile } from './control-plane-roots.ts';
import type { DistributedRoots } from './distributed-roots.ts';

export interface ConnectionCredentials {
  /** Absent for plaintext, over which no credentials are sent. */
  readonly tls?: {
    readonly roots: string;
    readonly serverName: string;
    readonly certificate?: KeyPair;
  };
  readonly headers: Readonly<Record<string, string>>;
  /** A description for the log, without secrets. */
  readonly description: string;
}

export interface CredentialSources {
  readonly config: Pick<ProxyConfig, 'controlPlaneAuthPolicy' | 'discoveryAddress' | 'proxyMetadata'>;
  readonly env: NodeJS.ProcessEnv;
  /** Used if there is no token. */
  readonly workloadCertificate?: () => KeyPair | undefined;
  /** These roots are trusted in addition to the file if they succeed its roots. */
  readonly distributedRoots?: DistributedRoots;
  /** Other readers of the same mounts share this queue. */
  readonly turns?: FileTurns;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

/** `token` prefers a provided certificate or the token to the workload certificate; `certificate` prefers the workload certificate to the token. */
export type Preference = 'token' | 'certificate';

/** Resolves links, so that all files of a connection have the same version. */
type PathResolver = (path: string) => Promise<string>;

const maxFileBytes = 1024 * 1024;
const maxTokenBytes = 64 * 1024;
const neverAborted = new AbortController().signal;

export class ControlPlaneCredentials {
  readonly #sources: CredentialSources;
  readonly #fileTurns: FileTurns;
  readonly #now: () => number;

  constructor(sources: CredentialSources) {
    this.#sources = sources;
    this.#fileTurns = sources.turns ?? new FileTurns();
    this.#now = sources.now ?? Date.now;
  }

  /**
   * Omits an unreadable token or certificate.
   *
   * @param signal stops waiting; reads of a mount that hangs are shared
   * @throws ChartpilotError CONFIG_INVALID, FILE_UNREADABLE without a root to verify the control plane
   */
  async read(
    service: ControlPlaneService,
    address: string,
    preference: Preference = 'token',
    signal: AbortSignal = neverAborted,
  ): Promise<ConnectionCredentials> {
    if (isPlaintext(this.#sources.config, address)) {
      return { headers: {}, description: 'none (plaintext connection)' };
    }
    return this.#fileTurns.run(
      () => readConsistently((resolvePath) => this.#readFiles(service, address, { preference, at: resolvePath })),
      signal,
    );
  }

  /** Sequential, because each read occupies a thread. */
  async #readFiles(
    service: ControlPlaneService,
    address: string,
    { preference, at }: { preference: Preference; at: PathResolver },
  ): Promise<ConnectionCredentials> {
    const { config, env } = this.#sources;
    const file = await findControlPlaneRootFile(service, { env, proxyMetadata: config.proxyMetadata }, fileExists);
    const roots = await readRoots(file, at);
    const { distributedRoots } = this.#sources;
    const tls = { roots: distributedRoots?.addTo(roots) ?? roots, serverName: controlPlaneName(address, env) };
    const providedCertificate = await this.#readProvided(at);
    if (providedCertificate !== undefined)
      return {
        tls: { ...tls, certificate: providedCertificate.pair },
        headers: {},
        description: providedCertificate.description,
      };
    const workload = this.#workloadCertificate();
    if (workload !== undefined && preference === 'certificate') return withWorkloadCertificate(tls, workload);
    const { token, description } = await this.#token(at);
    if (token !== undefined) return { tls, headers: { authorization: `Bearer ${token}` }, description };
    return workload === undefined ? { tls, headers: {}, description } : withWorkloadCertificate(tls, workload);
  }

  /** The valid certificate of PROV_CERT, or of files in the proxy metadata. */
  async #readProvided(resolvePath: PathResolver): Promise<{ pair: KeyPair; description: string } | undefined> {
    const files = this.#providedFiles();
    if (files === undefined) return undefined;
    const pair = await readPair(files, resolvePath);
    return pair !== undefined && this.#isUsablePair(pair)
      ? { pair, description: `certificate ${files.chain}` }
      : undefined;
  }

  #providedFiles(): { chain: string; key: string } | undefined {
    const { env, config } = this.#sources;
    if (env.PROV_CERT) return { chain: join(env.PROV_CERT, 'cert-chain.pem'), key: join(env.PROV_CERT, 'key.pem') };
    if (!isSwitchOn(env.FILE_MOUNTED_CERTS)) return undefined;
    const { ISTIO_META_TLS_CLIENT_CERT_CHAIN: chain, ISTIO_META_TLS_CLIENT_KEY: key } = config.proxyMetadata;
    return chain && key ? { chain, key } : undefined;
  }

  #workloadCertificate(): KeyPair | undefined {
    const pair = this.#sources.workloadCertificate?.();
    return pair !== undefined && this.#isUsablePair(pair) ? pair : undefined;
  }

  #isUsablePair({ chain, key }: KeyPair): boolean {
    try {
      const leaf = new X509Certificate(chain);
      const nowMs = this.#now();
      const isCurrentlyValid = leaf.validFromDate.getTime() <= nowMs && nowMs < leaf.validToDate.getTime();
      return isCurrentlyValid && leaf.checkPrivateKey(key);
    } catch {
      return false;
    }
  }

  async #token(resolvePath: PathResolver): Promise<{ token?: string; description: string }> {
    const file = tokenFile(this.#sources.env);
    if (file === undefined) return { description: 'none (JWT_POLICY names no token file)' };
    try {
      const { text, modifiedMs } = await readFullFile(await resolvePath(file), maxTokenBytes);
      const token = text.trim();
      if (!isToken(token)) return { description: `none (${file} contains no token)` };
      return { token, description: `token ${file}, ${describeToken(token, modifiedMs, this.#now())}` };
    } catch (error) {
      return { description: `none (${file}: ${fileErrorOf(error)})` };
    }
  }
}

function withWorkloadCertificate(
  tls: NonNullable<ConnectionCredentials['tls']>,
  workload: KeyPair,
): ConnectionCredentials {
  return { tls: { ...tls, certificate: workload }, headers: {}, description: 'workload certificate' };
}

/** Control planes serve port 15010 without TLS. */
export function isPlaintext(config: Pick<ProxyConfig, 'controlPlaneAuthPolicy'>, address: string): boolean {
  return config.controlPlaneAuthPolicy === 'NONE' || parseHostAndPort(address)?.port === 15010;
}

/** Relative to the working directory, like all mounts of the agent. */
export function tokenFile(env: NodeJS.ProcessEnv): string | undefined {
  const policy = env.JWT_POLICY || 'third-party-jwt';
  if (policy === 'third-party-jwt') return './var/run/secrets/tokens/istio-token';
  return policy === 'first-party-jwt' ? '/var/run/secrets/kubernetes.io/serviceaccount/token' : undefined;
}

/** A call with an invalid header value would fail. */
function isToken(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text);
}

/** Age and expiry reveal a token that is no longer renewed. */
function describeToken(token: string, modifiedMs: number, nowMs: number): string {
  const age = `written ${Math.round((nowMs - modifiedMs) / 1000)} s ago`;
  try {
    const claims: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
    const expirySeconds =
      typeof claims === 'object' && claims !== null && 'exp' in claims ? Number(claims.exp) : Number.NaN;
    if (!Number.isFinite(expirySeconds)) return age;
    const remainingSeconds = Math.round(expirySeconds - nowMs / 1000);
    return `${age}, ${remainingSeconds > 0 ? `expires in ${remainingSeconds} s` : `expired ${-remainingSeconds} s ago`}`;
  } catch {
    return age;
  }
}

async function readRoots(file: string, resolvePath: PathResolver): Promise<string> {
  try {
    const { text } = await readFullFile(await resolvePath(file), maxFileBytes);
    if (text.includes('-----BEGIN CERTIFICATE-----')) return text;
    throw new Error('no PEM certificate found');
  } catch (error) {
    throw new ChartpilotError(
      'FILE_UNREADABLE',
      `root certificate of the control plane ${file}: ${fileErrorOf(error)}`,
      {
        hint: 'Mount the file, set XDS_ROOT_CA to another one, or use plaintext with --controlPlaneAuthPolicy NONE.',
        fields: { path: file },
        cause: error,
      },
    );
  }
}

async function readPair(
  files: { chain: string; key: string },
  resolvePath: PathResolver,
): Promise<KeyPair | undefined> {
  try {
    const chain = await readFullFile(await resolvePath(files.chain), maxFileBytes);
    const key = await readFullFile(await resolvePath(files.key), maxFileBytes);
    return { chain: chain.text, key: createPrivateKey(key.text) };
  } catch {
    return undefined;
  }
}

const fileExists = (file: string): Promise<boolean> =>
  access(file).then(
    () => true,
    () => false,
  );

/** Only regular files: reading a pipe without a writer never ends. */
async function readFullFile(file: string, maxBytes: number): Promise<{ text: string; modifiedMs: number }> {
  const { size, mtimeMs, isFile } = await stat(file).then((stats) => ({ ...stats, isFile: stats.isFile() }));
  if (!isFile) throw new Error('must be a regular file');
  if (size > maxBytes) throw new Error(`must have at most ${maxBytes} bytes, got ${size}`);
  return { text: await readFile(file, 'utf8'), modifiedMs: mtimeMs };
}
