/**
 * What this agent shows the control plane, and by what it knows it: for each connection anew, since tokens and certificates are
 * replaced while it runs (spec/agent.md §1.3, §1.6, §7.3, §7.5, §8.1).
 */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { access, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isOn } from '../../model/fields/switches.ts';
import type { ProxyConfig } from '../../model/mesh/proxy-config.ts';
import { parseHostAndPort } from '../../model/mesh/proxy-config.ts';
import { ChartpilotError, fileErrorOf } from '../../runtime/errors.ts';
import { FileTurns } from '../../runtime/files/file-turns.ts';
import { readTogether } from '../../runtime/files/read-together.ts';
import type { KeyPair } from '../../runtime/grpc/key-pair.ts';
import { type ControlPlaneService, controlPlaneName, findControlPlaneRootFile } from './control-plane-roots.ts';
import type { ToldRoots } from './told-roots.ts';

export interface ConnectionCredentials {
  /** Absent: plaintext, over which nothing is shown either. */
  readonly tls?: {
    /** PEM certificates of the authorities that may have signed the control plane's. */
    readonly roots: string;
    readonly serverName: string;
    /** Shown in the handshake. */
    readonly certificate?: KeyPair;
  };
  /** What a call begins with: `authorization` where there is a token. */
  readonly headers: Readonly<Record<string, string>>;
  /** What this agent shows the control plane, said for people: which file, and how old it is. No secret is in it. */
  readonly shown: string;
}

export interface CredentialSources {
  readonly config: Pick<ProxyConfig, 'controlPlaneAuthPolicy' | 'discoveryAddress' | 'proxyMetadata'>;
  readonly env: NodeJS.ProcessEnv;
  /** The workload's certificate of now, where it has one: what proves who it is when there is no token. */
  readonly own?: () => KeyPair | undefined;
  /** Trusted beside the file's roots, where they follow them. */
  readonly told?: ToldRoots;
  /** Turns for the file systems that the credentials lie on, shared with others that read such files. */
  readonly turns?: FileTurns;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

/** `token`: the token or a provided certificate, else the workload's own; `certificate`: the workload's own before the token. */
export type Preference = 'token' | 'certificate';

/** Where a file is, without links, so that all files of a connection are of one version. */
type Locate = (path: string) => Promise<string>;

/** Limit of a file of certificates. */
const mostBytes = 1024 * 1024;
const mostTokenBytes = 64 * 1024;
const never = new AbortController().signal;

export class ControlPlaneCredentials {
  readonly #sources: CredentialSources;
  readonly #turns: FileTurns;
  readonly #now: () => number;

  constructor(sources: CredentialSources) {
    this.#sources = sources;
    this.#turns = sources.turns ?? new FileTurns();
    this.#now = sources.now ?? Date.now;
  }

  /**
   * For the next connection to `address` (`host:port`). A token or certificate that cannot be read is left out: what is
   * missing is the control plane's to refuse.
   *
   * @param signal the connection is given up: where a file system hangs, another one waits for the same answer
   * @throws ChartpilotError CONFIG_INVALID, FILE_UNREADABLE when there is nothing to know the control plane by
   */
  async read(
    service: ControlPlaneService,
    address: string,
    preference: Preference = 'token',
    signal: AbortSignal = never,
  ): Promise<ConnectionCredentials> {
    if (isPlaintext(this.#sources.config, address)) {
      return { headers: {}, shown: 'none (plaintext connection)' };
    }
    return this.#turns.run(() => readTogether((at) => this.#readFiles(service, address, { preference, at })), signal);
  }

  /** One file after the other: each holds a thread. */
  async #readFiles(
    service: ControlPlaneService,
    address: string,
    { preference, at }: { preference: Preference; at: Locate },
  ): Promise<ConnectionCredentials> {
    const { config, env } = this.#sources;
    const file = await findControlPlaneRootFile(service, { env, proxyMetadata: config.proxyMetadata }, isThere);
    const roots = await readRoots(file, at);
    const { told } = this.#sources;
    const tls = { roots: told?.beside(roots) ?? roots, serverName: controlPlaneName(address, env) };
    const provided = await this.#provided(at);
    if (provided !== undefined)
      return { tls: { ...tls, certificate: provided.pair }, headers: {}, shown: provided.shown };
    const own = this.#own();
    if (own !== undefined && preference === 'certificate') return withOwn(tls, own);
    const { token, shown } = await this.#token(at);
    if (token !== undefined) return { tls, headers: { authorization: `Bearer ${token}` }, shown };
    return own === undefined ? { tls, headers: {}, shown } : withOwn(tls, own);
  }

  /** The certificate of PROV_CERT, or of files that the proxy's metadata names, as long as it is good. */
  async #provided(at: Locate): Promise<{ pair: KeyPair; shown: string } | undefined> {
    const files = this.#providedFiles();
    if (files === undefined) return undefined;
    const pair = await readPair(files, at);
    return pair !== undefined && this.#isGood(pair) ? { pair, shown: `certificate ${files.chain}` } : undefined;
  }

  #providedFiles(): { chain: string; key: string } | undefined {
    const { env, config } = this.#sources;
    if (env.PROV_CERT) return { chain: join(env.PROV_CERT, 'cert-chain.pem'), key: join(env.PROV_CERT, 'key.pem') };
    if (!isOn(env.FILE_MOUNTED_CERTS)) return undefined;
    const { ISTIO_META_TLS_CLIENT_CERT_CHAIN: chain, ISTIO_META_TLS_CLIENT_KEY: key } = config.proxyMetadata;
    return chain && key ? { chain, key } : undefined;
  }

  #own(): KeyPair | undefined {
    const own = this.#sources.own?.();
    return own !== undefined && this.#isGood(own) ? own : undefined;
  }

  /** Whether it is what it should be: its key fits, and it has begun and not ended. */
  #isGood({ chain, key }: KeyPair): boolean {
    try {
      const leaf = new X509Certificate(chain);
      const now = this.#now();
      const isOfNow = leaf.validFromDate.getTime() <= now && now < leaf.validToDate.getTime();
      return isOfNow && leaf.checkPrivateKey(key);
    } catch {
      return false;
    }
  }

  async #token(at: Locate): Promise<{ token?: string; shown: string }> {
    const file = tokenFile(this.#sources.env);
    if (file === undefined) return { shown: 'none (JWT_POLICY names no token file)' };
    try {
      const { text, modifiedMs } = await readWhole(await at(file), mostTokenBytes);
      const token = text.trim();
      if (!isToken(token)) return { shown: `none (${file} contains no token)` };
      return { token, shown: `token ${file}, ${describeToken(token, modifiedMs, this.#now())}` };
    } catch (error) {
      return { shown: `none (${file}: ${fileErrorOf(error)})` };
    }
  }
}

function withOwn(tls: NonNullable<ConnectionCredentials['tls']>, own: KeyPair): ConnectionCredentials {
  return { tls: { ...tls, certificate: own }, headers: {}, shown: 'workload certificate' };
}

/** Port 15010 is the one that control planes serve without TLS (spec/agent.md §7.3). */
export function isPlaintext(config: Pick<ProxyConfig, 'controlPlaneAuthPolicy'>, address: string): boolean {
  return config.controlPlaneAuthPolicy === 'NONE' || parseHostAndPort(address)?.port === 15010;
}

/** Below the working directory, as everything that a pod mounts for its agent. */
export function tokenFile(env: NodeJS.ProcessEnv): string | undefined {
  const policy = env.JWT_POLICY || 'third-party-jwt';
  if (policy === 'third-party-jwt') return './var/run/secrets/tokens/istio-token';
  return policy === 'first-party-jwt' ? '/var/run/secrets/kubernetes.io/serviceaccount/token' : undefined;
}

/** What may stand in a header: anything else would make the whole call fail. */
function isToken(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text);
}

/** A token that nobody renews is refused for hours: how old it is and when it ends is what a person looks for then. */
function describeToken(token: string, modifiedMs: number, now: number): string {
  const age = `written ${Math.round((now - modifiedMs) / 1000)} s ago`;
  try {
    const claims: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
    const end = typeof claims === 'object' && claims !== null && 'exp' in claims ? Number(claims.exp) : Number.NaN;
    if (!Number.isFinite(end)) return age;
    const secondsLeft = Math.round(end - now / 1000);
    return `${age}, ${secondsLeft > 0 ? `expires in ${secondsLeft} s` : `expired ${-secondsLeft} s ago`}`;
  } catch {
    return age;
  }
}

async function readRoots(file: string, at: Locate): Promise<string> {
  try {
    const { text } = await readWhole(await at(file), mostBytes);
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

async function readPair(files: { chain: string; key: string }, at: Locate): Promise<KeyPair | undefined> {
  try {
    const chain = await readWhole(await at(files.chain), mostBytes);
    const key = await readWhole(await at(files.key), mostBytes);
    return { chain: chain.text, key: createPrivateKey(key.text) };
  } catch {
    return undefined;
  }
}

const isThere = (file: string): Promise<boolean> =>
  access(file).then(
    () => true,
    () => false,
  );

/** A pipe that nobody writes into would never end: only files are read. */
async function readWhole(file: string, most: number): Promise<{ text: string; modifiedMs: number }> {
  const { size, mtimeMs, isFile } = await stat(file).then((stats) => ({ ...stats, isFile: stats.isFile() }));
  if (!isFile) throw new Error('must be a regular file');
  if (size > most) throw new Error(`must have at most ${most} bytes, got ${size}`);
  return { text: await readFile(file, 'utf8'), modifiedMs: mtimeMs };
}
