/** Unsupported fields of a kubeconfig that would affect the access are rejected, never ignored. No message contains a value. */
import { dirname, resolve } from 'node:path';
import { parseYamlDocument } from '../../../model/yaml/yaml-document.ts';
import { readConsistentlySync } from '../../../runtime/files/read-together.ts';
import { isRecord } from '../store/trim.ts';
import type { ClusterAccess, TlsMaterial } from './cluster-access.ts';
import { credentialsError, headerText, readCredentialFile, TokenFile } from './credential-file.ts';
import { ExecCredentials, type ExecPlugin } from './exec-credential.ts';

export interface KubeconfigOptions {
  readonly path: string;
  readonly context?: string;
  /**
   * Whether the kubeconfig may refer to local files and programs, and disable TLS verification: true for a file of the operator, false for the Secret
   * of a remote cluster.
   */
  readonly isTrusted: boolean;
}

type ResolveLinks = (path: string) => string;

type JsonObject = Readonly<Record<string, unknown>>;

const unsupportedFields = {
  cluster: ['proxy-url'],
  user: ['auth-provider', 'as', 'as-uid', 'as-groups', 'as-user-extra', 'username', 'password'],
} as const;

const trustedOnlyFields = {
  cluster: ['certificate-authority', 'insecure-skip-tls-verify'],
  user: ['exec', 'tokenFile', 'client-certificate', 'client-key'],
} as const;

const execVersions = ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1'];

/** @throws ApiError `credentials` */
export function kubeconfigFile(path: string, context?: string): ClusterAccess {
  const text = readCredentialFile(path);
  return kubeconfigAccess(text, { path, isTrusted: true, ...(context !== undefined && { context }) });
}

/** @throws ApiError `credentials` */
export function kubeconfigAccess(text: string, options: KubeconfigOptions): ClusterAccess {
  return new KubeconfigReader(text, options).access();
}

class KubeconfigReader {
  readonly #options: KubeconfigOptions;
  readonly #config: JsonObject;

  constructor(text: string, options: KubeconfigOptions) {
    this.#options = options;
    const { value, errors } = parseYamlDocument({ text, line: 1 });
    // The parser's message would contain the text.
    if (errors.length > 0) throw this.#error(`must be YAML: syntax error in line ${errors[0]!.line}`);
    if (!isRecord(value)) throw this.#error('must be a kubeconfig (a YAML map)');
    this.#config = value;
  }

  access(): ClusterAccess {
    const name = this.#options.context ?? this.#config['current-context'];
    if (typeof name !== 'string' || name === '') throw this.#error('current-context is not set');
    const context = this.#entryNamed('contexts', 'context', name);
    const cluster = this.#entryNamed('clusters', 'cluster', this.#text(context, 'cluster', 'context') ?? '');
    const user = this.#entryNamed('users', 'user', this.#text(context, 'user', 'context') ?? '');
    this.#rejectUnsupported('cluster', cluster);
    this.#rejectUnsupported('user', user);
    const server = this.#server(cluster);
    const exec = this.#exec(user, cluster);
    const tokenSource = this.#tokenSource(user);
    return {
      server,
      tls: async () => ({
        ...readConsistentlySync((resolveLinks) => ({
          ...this.#serverTls(cluster, resolveLinks),
          ...this.#clientTls(user, resolveLinks),
        })),
        ...keyPair(await exec?.credential()),
      }),
      headers: async () => {
        const token = tokenSource?.token() ?? (await exec?.credential())?.token;
        return token === undefined ? {} : { authorization: `Bearer ${token}` };
      },
      invalidateCredentials: () => {
        tokenSource?.invalidate();
        exec?.invalidate();
      },
    };
  }

  #entryNamed(list: string, field: string, name: string): JsonObject {
    const entries = this.#config[list];
    const entry = Array.isArray(entries)
      ? entries.find((candidate) => isRecord(candidate) && candidate.name === name)
      : undefined;
    const entryFields = isRecord(entry) ? entry[field] : undefined;
    if (!isRecord(entryFields))
      throw this.#error(`${list} has no ${field} named ${JSON.stringify(name.slice(0, 100))}`);
    return entryFields;
  }

  #rejectUnsupported(section: 'cluster' | 'user', fields: JsonObject): void {
    const hasField = (key: string): boolean => ![undefined, null, false, ''].includes(fields[key] as never);
    const unsupportedField = unsupportedFields[section].find(hasField);
    if (unsupportedField !== undefined) throw this.#error(`${section}: ${unsupportedField} is not supported`);
    const trustedOnlyField = this.#options.isTrusted ? undefined : trustedOnlyFields[section].find(hasField);
    if (trustedOnlyField !== undefined)
      throw this.#error(`${section}: ${trustedOnlyField} is allowed only in the file of --kubeconfig, not in a Secret`);
  }

  #server(cluster: JsonObject): URL {
    const text = this.#text(cluster, 'server', 'cluster');
    const server = URL.parse(text ?? '');
    // Plaintext would reveal tokens.
    if (server?.protocol !== 'https:') throw this.#error('cluster: server must be an https:// URL');
    return server;
  }

  #serverTls(cluster: JsonObject, resolveLinks: ResolveLinks): TlsMaterial {
    const servername = this.#text(cluster, 'tls-server-name', 'cluster');
    const serverName = servername !== undefined && { servername };
    const ca = this.#pem(cluster, 'certificate-authority', { part: 'cluster', at: resolveLinks });
    if (cluster['insecure-skip-tls-verify'] === true) {
      if (ca !== undefined)
        throw this.#error('cluster: set only one of insecure-skip-tls-verify and certificate-authority');
      return { ...serverName, rejectUnauthorized: false };
    }
    return { ...serverName, ...(ca !== undefined && { ca }) };
  }

  #clientTls(user: JsonObject, resolveLinks: ResolveLinks): TlsMaterial {
    const cert = this.#pem(user, 'client-certificate', { part: 'user', at: resolveLinks });
    const key = this.#pem(user, 'client-key', { part: 'user', at: resolveLinks });
    if ((cert === undefined) !== (key === undefined))
      throw this.#error('user: set both client-certificate and client-key, or neither');
    return cert === undefined || key === undefined ? {} : { cert, key };
  }

  /** Inline data takes precedence over a file, which is read for each connection. */
  #pem(
    fields: JsonObject,
    name: string,
    { part, at: resolveLinks }: { part: string; at: ResolveLinks },
  ): string | undefined {
    const inline = this.#text(fields, `${name}-data`, part);
    if (inline !== undefined) return Buffer.from(inline, 'base64').toString('utf8');
    const file = this.#text(fields, name, part);
    return file === undefined ? undefined : readCredentialFile(resolveLinks(this.#resolvePath(file)));
  }

  /** A token file takes precedence, because it is updated. */
  #tokenSource(user: JsonObject): { token(): string; invalidate(): void } | undefined {
    const file = this.#text(user, 'tokenFile', 'user');
    if (file !== undefined) return new TokenFile(this.#resolvePath(file));
    const text = this.#text(user, 'token', 'user');
    if (text === undefined) return undefined;
    const token = headerText(text, this.#options.path);
    return { token: () => token, invalidate: () => {} };
  }

  #exec(user: JsonObject, cluster: JsonObject): ExecCredentials | undefined {
    const { exec } = user;
    if (exec === undefined || exec === null) return undefined;
    if (!isRecord(exec)) throw this.#error('user: exec must be an object');
    const command = this.#text(exec, 'command', 'exec');
    if (command === undefined) throw this.#error('exec: command is required');
    const apiVersion = this.#text(exec, 'apiVersion', 'exec') ?? '';
    if (!execVersions.includes(apiVersion))
      throw this.#error(
        `exec: apiVersion must be one of ${execVersions.join(', ')}, got ${JSON.stringify(apiVersion.slice(0, 100))}`,
      );
    if (exec.interactiveMode === 'Always')
      throw this.#error('exec: interactiveMode must not be Always, the control plane has no terminal');
    const plugin: ExecPlugin = {
      ...{ command, apiVersion },
      args: this.#list(exec.args, 'args').map((value) => this.#entryText(value, 'args')),
      env: this.#list(exec.env, 'env').map((value) => {
        if (!isRecord(value)) throw this.#error('exec: each entry of env must be an object');
        return { name: this.#entryText(value.name, 'env'), value: this.#entryText(value.value, 'env') };
      }),
      ...(exec.provideClusterInfo === true && { cluster: this.#clusterInfo(cluster) }),
    };
    return new ExecCredentials(plugin, this.#options.path);
  }

  #clusterInfo(cluster: JsonObject): JsonObject {
    const extensions = this.#list(cluster.extensions, 'extensions');
    const config = extensions.find(
      (extension) => isRecord(extension) && extension.name === 'client.authentication.k8s.io/exec',
    );
    const { ca } = this.#serverTls(cluster, (path) => path);
    return {
      server: cluster.server,
      ...(ca !== undefined && { 'certificate-authority-data': Buffer.from(ca).toString('base64') }),
      ...(cluster['tls-server-name'] !== undefined && { 'tls-server-name': cluster['tls-server-name'] }),
      ...(cluster['insecure-skip-tls-verify'] === true && { 'insecure-skip-tls-verify': true }),
      ...(isRecord(config) && { config: config.extension }),
    };
  }

  #list(value: unknown, name: string): readonly unknown[] {
    if (value === undefined || value === null) return [];
    if (!Array.isArray(value)) throw this.#error(`${name} must be a list`);
    return value;
  }

  #entryText(value: unknown, name: string): string {
    if (typeof value !== 'string') throw this.#error(`exec: each entry of ${name} must be a string`);
    return value;
  }

  /** Treats an empty text as absent, as in Go. */
  #text(fields: JsonObject, name: string, section: string): string | undefined {
    const value = fields[name] ?? '';
    if (typeof value !== 'string') throw this.#error(`${section}: ${name} must be a string`);
    return value === '' ? undefined : value;
  }

  #resolvePath(file: string): string {
    return resolve(dirname(this.#options.path), file);
  }

  #error(problem: string): Error {
    return credentialsError(`${this.#options.path}: ${problem}`);
  }
}

function keyPair(credential: { readonly cert?: string; readonly key?: string } | undefined): TlsMaterial {
  return credential?.cert === undefined || credential.key === undefined
    ? {}
    : { cert: credential.cert, key: credential.key };
}
