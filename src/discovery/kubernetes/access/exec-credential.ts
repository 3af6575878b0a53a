/** Runs the credential plugin of a kubeconfig (client.authentication.k8s.io, "exec"). */
import { execFile } from 'node:child_process';
import { dirname, isAbsolute, resolve } from 'node:path';
import { isRecord } from '../store/trim.ts';
import { credentialsError, headerText } from './credential-file.ts';

export interface ExecPlugin {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string; readonly value: string }[];
  readonly apiVersion: string;
  readonly cluster?: Readonly<Record<string, unknown>>;
}

export interface ExecCredential {
  readonly token?: string;
  readonly cert?: string;
  readonly key?: string;
  /** Unix time in milliseconds. If absent, the credential is valid until the server rejects it. */
  readonly expiresAt?: number;
}

/** Long enough to query a cloud API, but ends a plugin that waits for user input. */
const maxRunMs = 30_000;
const maxBytes = 1024 * 1024;
/** A credential is renewed this early, because one that expires in transit is rejected. */
const renewEarlyMs = 10_000;

/** Runs the plugin if there is no credential, or it has expired or was rejected. Concurrent callers share one run. */
export class ExecCredentials {
  readonly #plugin: ExecPlugin;
  readonly #folder: string;
  readonly #now: () => number;
  #cachedCredential: ExecCredential | undefined;
  #runningCommand: Promise<ExecCredential> | undefined;

  /** @param kubeconfig path of the file. A relative command with a slash is resolved against its directory. */
  constructor(plugin: ExecPlugin, kubeconfig: string, now: () => number = Date.now) {
    this.#plugin = plugin;
    this.#folder = dirname(kubeconfig);
    this.#now = now;
  }

  /** @throws ApiError `credentials` */
  async credential(): Promise<ExecCredential> {
    const { expiresAt = Number.POSITIVE_INFINITY } = this.#cachedCredential ?? {};
    if (this.#cachedCredential !== undefined && this.#now() < expiresAt - renewEarlyMs) return this.#cachedCredential;
    this.#runningCommand ??= this.#run().finally(() => {
      this.#runningCommand = undefined;
    });
    return await this.#runningCommand;
  }

  invalidate(): void {
    this.#cachedCredential = undefined;
  }

  async #run(): Promise<ExecCredential> {
    const { command, args, env, apiVersion, cluster } = this.#plugin;
    const execInfo = {
      kind: 'ExecCredential',
      apiVersion,
      spec: { interactive: false, ...(cluster !== undefined && { cluster }) },
    };
    const path = command.includes('/') && !isAbsolute(command) ? resolve(this.#folder, command) : command;
    const stdout = await output(path, args, {
      ...process.env,
      ...Object.fromEntries(env.map(({ name, value }) => [name, value])),
      KUBERNETES_EXEC_INFO: JSON.stringify(execInfo),
    });
    this.#cachedCredential = credentialIn(stdout, command, apiVersion);
    return this.#cachedCredential;
  }
}

/** Errors contain the plugin's standard error, but never its standard output, which is secret. */
function output(path: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { env, timeout: maxRunMs, killSignal: 'SIGKILL', maxBuffer: maxBytes, encoding: 'utf8' } as const;
    const child = execFile(path, args, options, (error, stdout, stderr) => {
      if (error === null) return resolve(stdout);
      const failureText =
        error.killed === true
          ? `did not exit within ${maxRunMs} ms`
          : `failed (exit code or signal ${error.code ?? error.signal})`;
      const lastLine = stderr.trim().split('\n').at(-1)?.slice(0, 300) ?? '';
      reject(credentialsError(`exec plugin ${path} ${failureText}${lastLine === '' ? '' : `: ${lastLine}`}`));
    });
    child.stdin?.on('error', () => {});
    child.stdin?.end();
  });
}

function credentialIn(stdout: string, command: string, apiVersion: string): ExecCredential {
  const subject = `output of exec plugin ${command}`;
  let parsedOutput: unknown;
  try {
    parsedOutput = JSON.parse(stdout);
  } catch {
    throw credentialsError(`${subject} is not valid JSON`);
  }
  if (!isRecord(parsedOutput) || parsedOutput.kind !== 'ExecCredential' || !isRecord(parsedOutput.status)) {
    throw credentialsError(`${subject} must be an ExecCredential with a status`);
  }
  if (parsedOutput.apiVersion !== apiVersion) throw credentialsError(`${subject} must have apiVersion ${apiVersion}`);
  const { token, clientCertificateData: cert, clientKeyData: key, expirationTimestamp } = parsedOutput.status;
  const expiresAt = typeof expirationTimestamp === 'string' ? Date.parse(expirationTimestamp) : Number.NaN;
  const credential = {
    ...(typeof token === 'string' && token !== '' && { token: headerText(token, command) }),
    ...(typeof cert === 'string' && typeof key === 'string' && { cert, key }),
    ...(Number.isFinite(expiresAt) && { expiresAt }),
  };
  if (credential.token === undefined && credential.cert === undefined)
    throw credentialsError(`${subject} must have a token, or a client certificate with its key`);
  return credential;
}
