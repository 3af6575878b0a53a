/** Credentials from a program that the kubeconfig names (client.authentication.k8s.io, "exec"). */
import { execFile } from 'node:child_process';
import { dirname, isAbsolute, resolve } from 'node:path';
import { isRecord } from '../store/trim.ts';
import { headerText, noCredentials } from './credential-file.ts';

export interface ExecPlugin {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string; readonly value: string }[];
  readonly apiVersion: string;
  /** What it is told of the cluster; absent: it does not ask. */
  readonly cluster?: Readonly<Record<string, unknown>>;
}

export interface ExecCredential {
  readonly token?: string;
  readonly cert?: string;
  readonly key?: string;
  /** Milliseconds since 1970; absent: until the server refuses it. */
  readonly expiresAt?: number;
}

/** Plugins ask their cloud; one that asks a person waits for ever. */
const limitMs = 30_000;
const maxBytes = 1024 * 1024;
/** A credential that ends while it travels is refused. */
const earlyMs = 10_000;

/** Runs the plugin when there is no credential, it has ended, or the server refused it; once for all who wait. */
export class ExecCredentials {
  readonly #plugin: ExecPlugin;
  readonly #folder: string;
  readonly #now: () => number;
  #last: ExecCredential | undefined;
  #running: Promise<ExecCredential> | undefined;

  /** @param kubeconfig the file that names it: a command with a slash is looked for beside it */
  constructor(plugin: ExecPlugin, kubeconfig: string, now: () => number = Date.now) {
    this.#plugin = plugin;
    this.#folder = dirname(kubeconfig);
    this.#now = now;
  }

  /** @throws ApiError `credentials` */
  async credential(): Promise<ExecCredential> {
    const { expiresAt = Number.POSITIVE_INFINITY } = this.#last ?? {};
    if (this.#last !== undefined && this.#now() < expiresAt - earlyMs) return this.#last;
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
    return await this.#running;
  }

  refused(): void {
    this.#last = undefined;
  }

  async #run(): Promise<ExecCredential> {
    const { command, args, env, apiVersion, cluster } = this.#plugin;
    const asked = {
      kind: 'ExecCredential',
      apiVersion,
      spec: { interactive: false, ...(cluster !== undefined && { cluster }) },
    };
    const path = command.includes('/') && !isAbsolute(command) ? resolve(this.#folder, command) : command;
    const answer = await output(path, args, {
      ...process.env,
      ...Object.fromEntries(env.map(({ name, value }) => [name, value])),
      KUBERNETES_EXEC_INFO: JSON.stringify(asked),
    });
    this.#last = credentialIn(answer, command, apiVersion);
    return this.#last;
  }
}

/** What it says on its standard error is for people; what it answers is secret. */
function output(path: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { env, timeout: limitMs, killSignal: 'SIGKILL', maxBuffer: maxBytes, encoding: 'utf8' } as const;
    const child = execFile(path, args, options, (error, answer, said) => {
      if (error === null) return resolve(answer);
      const why =
        error.killed === true
          ? `did not exit within ${limitMs} ms`
          : `failed (exit code or signal ${error.code ?? error.signal})`;
      const lastLine = said.trim().split('\n').at(-1)?.slice(0, 300) ?? '';
      reject(noCredentials(`exec plugin ${path} ${why}${lastLine === '' ? '' : `: ${lastLine}`}`));
    });
    child.stdin?.on('error', () => {});
    child.stdin?.end();
  });
}

function credentialIn(answer: string, command: string, apiVersion: string): ExecCredential {
  const what = `output of exec plugin ${command}`;
  let said: unknown;
  try {
    said = JSON.parse(answer);
  } catch {
    throw noCredentials(`${what} is not valid JSON`);
  }
  if (!isRecord(said) || said.kind !== 'ExecCredential' || !isRecord(said.status)) {
    throw noCredentials(`${what} must be an ExecCredential with a status`);
  }
  if (said.apiVersion !== apiVersion) throw noCredentials(`${what} must have apiVersion ${apiVersion}`);
  const { token, clientCertificateData: cert, clientKeyData: key, expirationTimestamp } = said.status;
  const expiresAt = typeof expirationTimestamp === 'string' ? Date.parse(expirationTimestamp) : Number.NaN;
  const credential = {
    ...(typeof token === 'string' && token !== '' && { token: headerText(token, command) }),
    ...(typeof cert === 'string' && typeof key === 'string' && { cert, key }),
    ...(Number.isFinite(expiresAt) && { expiresAt }),
  };
  if (credential.token === undefined && credential.cert === undefined)
    throw noCredentials(`${what} must have a token, or a client certificate with its key`);
  return credential;
}
