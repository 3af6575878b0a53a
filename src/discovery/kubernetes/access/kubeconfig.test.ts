import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { stringify } from '../../../model/yaml/yaml-writing.ts';
import { ApiError } from '../api-failure.ts';
import { TokenFile } from './credential-file.ts';
import { inClusterAccess, podNamespace } from './in-cluster.ts';
import { kubeconfigAccess, kubeconfigFile } from './kubeconfig.ts';

const signal = new AbortController().signal;
const base64 = (text: string): string => Buffer.from(text).toString('base64');

function createFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'chartpilot-kubeconfig-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

interface Parts {
  readonly cluster?: object;
  readonly user?: object;
  readonly extraFields?: object;
}

function kubeconfig({ cluster = {}, user = { token: 'secret-token' }, extraFields = {} }: Parts = {}): string {
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'here',
    contexts: [{ name: 'here', context: { cluster: 'c', user: 'u' } }],
    clusters: [{ name: 'c', cluster: { server: 'https://10.0.0.1:6443', ...cluster } }],
    users: [{ name: 'u', user }],
    ...extraFields,
  });
}

const trusted = (text: string, path = '/etc/kubeconfig') => kubeconfigAccess(text, { path, isTrusted: true });

/** Message of the error that the call throws. */
function messageOfError(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    expect(error).toBeInstanceOf(ApiError);
    expect((error as ApiError).failure.kind).toBe('credentials');
    return (error as ApiError).message;
  }
  throw new Error('it was taken');
}

describe('a kubeconfig', () => {
  it('can contain server, CA and credentials inline', async () => {
    const access = trusted(
      kubeconfig({
        cluster: { 'certificate-authority-data': base64('CA'), 'tls-server-name': 'kubernetes' },
        user: { token: 'secret-token', 'client-certificate-data': base64('C'), 'client-key-data': base64('K') },
      }),
    );
    expect(access.server.href).toBe('https://10.0.0.1:6443/');
    expect(await access.tls(signal)).toEqual({ ca: 'CA', servername: 'kubernetes', cert: 'C', key: 'K' });
    expect(await access.headers(signal)).toEqual({ authorization: 'Bearer secret-token' });
  });

  it('can refer to files relative to its directory, which are read again for each connection', async () => {
    const folder = createFolder();
    for (const name of ['ca', 'cert', 'key', 'token']) writeFileSync(join(folder, name), `${name}-1\n`);
    const user = { 'client-certificate': 'cert', 'client-key': 'key', tokenFile: 'token', token: 'old' };
    writeFileSync(join(folder, 'config'), kubeconfig({ cluster: { 'certificate-authority': 'ca' }, user }));
    const access = kubeconfigFile(join(folder, 'config'));
    expect(await access.tls(signal)).toEqual({ ca: 'ca-1\n', cert: 'cert-1\n', key: 'key-1\n' });
    expect(await access.headers(signal)).toEqual({ authorization: 'Bearer token-1' });
    writeFileSync(join(folder, 'ca'), 'ca-2');
    writeFileSync(join(folder, 'token'), 'token-2');
    expect(await access.tls(signal)).toMatchObject({ ca: 'ca-2' });
    // The server rejected the token, so the file is read again although no minute has passed.
    access.invalidateCredentials();
    expect(await access.headers(signal)).toEqual({ authorization: 'Bearer token-2' });
  });

  it('can contain several contexts, one of which is selected', () => {
    const otherContext = {
      contexts: [{ name: 'there', context: { cluster: 'c', user: 'u' } }],
      'current-context': 'gone',
    };
    expect(
      kubeconfigAccess(kubeconfig({ extraFields: otherContext }), { path: 'x', isTrusted: true, context: 'there' })
        .server.port,
    ).toBe('6443');
    expect(messageOfError(() => trusted(kubeconfig({ extraFields: otherContext })))).toContain(
      'contexts has no context named "gone"',
    );
  });

  it.each<[string, Parts, string]>([
    ['a plaintext server', { cluster: { server: 'http://10.0.0.1' } }, 'https'],
    ['no server', { cluster: { server: '' } }, 'https'],
    ['a proxy', { cluster: { 'proxy-url': 'http://x' } }, 'proxy-url'],
    ['an auth provider', { user: { 'auth-provider': { name: 'gcp' } } }, 'auth-provider'],
    ['impersonation', { user: { as: 'admin' } }, 'as is'],
    ['half of a key pair', { user: { 'client-certificate-data': base64('C') } }, 'client-certificate and client-key'],
    ['a token that is not a string', { user: { token: 12345 } }, 'token must be a string'],
    ['a token with a line break', { user: { token: 'secret\r\nhost: evil' } }, 'control or non-ASCII characters'],
    [
      'disabled TLS verification beside a CA',
      { cluster: { 'insecure-skip-tls-verify': true, 'certificate-authority-data': base64('CA') } },
      'insecure-skip-tls-verify and certificate-authority',
    ],
    ['no context', { extraFields: { 'current-context': '' } }, 'current-context'],
    ['no users', { extraFields: { users: null } }, 'no user'],
    [
      'an interactive plugin',
      { user: { exec: { apiVersion: 'client.authentication.k8s.io/v1', command: 'x', interactiveMode: 'Always' } } },
      'interactiveMode',
    ],
    ['a plugin with an unknown version', { user: { exec: { apiVersion: 'v7', command: 'x' } } }, 'apiVersion'],
  ])('is rejected with %s', async (_, kubeconfigParts, message) => {
    expect(await failureOfUse(() => trusted(kubeconfig(kubeconfigParts)))).toContain(message);
  });

  it.each(['[', '"secret-token', 'just text', '', '- a', 'users: {"secret-token": [}'])(
    'is rejected without repeating its text if its content is %j',
    (text) => {
      expect(messageOfError(() => trusted(text))).not.toContain('secret');
    },
  );

  it('cannot refer to local files or programs, or disable TLS verification, if its author is untrusted', () => {
    const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: '/bin/sh' };
    for (const kubeconfigParts of [
      { user: { exec } },
      { user: { tokenFile: '/etc/shadow' } },
      { user: { 'client-certificate': 'a', 'client-key': 'b' } },
      { cluster: { 'certificate-authority': '/etc/passwd' } },
      { cluster: { 'insecure-skip-tls-verify': true } },
    ]) {
      const read = () =>
        kubeconfigAccess(kubeconfig(kubeconfigParts), { path: 'Secret istio-system/east', isTrusted: false });
      expect(messageOfError(read)).toContain('only in the file of --kubeconfig');
    }
    expect(kubeconfigAccess(kubeconfig(), { path: 'x', isTrusted: false }).server.hostname).toBe('10.0.0.1');
  });
});

/** Returns the error of creating access or, if that succeeds, of a connection. */
async function failureOfUse(createAccess: () => ReturnType<typeof trusted>): Promise<string> {
  try {
    const access = createAccess();
    await access.tls(signal);
    await access.headers(signal);
  } catch (error) {
    expect(error).toBeInstanceOf(ApiError);
    return (error as ApiError).message;
  }
  throw new Error('it was taken');
}

describe('a credential plugin', () => {
  function accessWithPlugin(script: string, extraExec: object = {}) {
    const folder = createFolder();
    writeFileSync(join(folder, 'plugin'), `#!/bin/sh\n${script}\n`);
    chmodSync(join(folder, 'plugin'), 0o755);
    const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: './plugin', ...extraExec };
    return { folder, access: trusted(kubeconfig({ user: { exec } }), join(folder, 'config')) };
  }
  const execOutput = (status: string): string =>
    `echo '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":${status}}'`;

  it('runs once for concurrent callers, and again after its credential is rejected or expires', async () => {
    const folder = createFolder();
    const count = join(folder, 'count');
    const script = `n=$(cat $COUNT 2>/dev/null || echo 0); n=$((n+1)); echo $n > $COUNT; printf '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"t%s"%s}}' $n "$EXPIRY"`;
    const run = (expiry: string) =>
      accessWithPlugin(script, {
        env: [
          { name: 'COUNT', value: count },
          { name: 'EXPIRY', value: expiry },
        ],
      }).access;
    const lasting = run('');
    const first = { authorization: 'Bearer t1' };
    expect(await Promise.all([lasting.headers(signal), lasting.headers(signal)])).toEqual([first, first]);
    expect(await lasting.headers(signal)).toEqual(first);
    lasting.invalidateCredentials();
    expect(await lasting.headers(signal)).toEqual({ authorization: 'Bearer t2' });
    const expiredAccess = run(',"expirationTimestamp":"2020-01-01T00:00:00Z"');
    await expiredAccess.headers(signal);
    expect(await expiredAccess.headers(signal)).toEqual({ authorization: 'Bearer t4' });
  });

  it('receives cluster information if it requests this, and can return a certificate', async () => {
    const folder = createFolder();
    const { access } = accessWithPlugin(
      `echo "$KUBERNETES_EXEC_INFO" > ${join(folder, 'info')}; ${execOutput('{"clientCertificateData":"C","clientKeyData":"K"}')}`,
      {
        provideClusterInfo: true,
      },
    );
    expect(await access.tls(signal)).toEqual({ cert: 'C', key: 'K' });
    expect(await access.headers(signal)).toEqual({});
    expect(JSON.parse(readFileSync(join(folder, 'info'), 'utf8'))).toEqual({
      kind: 'ExecCredential',
      apiVersion: 'client.authentication.k8s.io/v1',
      spec: { interactive: false, cluster: { server: 'https://10.0.0.1:6443' } },
    });
  });

  it.each([
    ['exits with an error', 'echo no login >&2; exit 3', 'no login'],
    ['prints invalid JSON', 'echo secret-token', 'not valid JSON'],
    ['prints another kind of object', "echo '{}'", 'must be an ExecCredential'],
    [
      'prints another version',
      `echo '{"kind":"ExecCredential","apiVersion":"v7","status":{"token":"secret-token"}}'`,
      'must have apiVersion client.authentication.k8s.io/',
    ],
    ['prints no credential', execOutput('{}'), 'must have a token'],
    ['prints endless output', 'yes secret-token', 'failed'],
  ])('fails with a reason that contains no secret if it %s', async (_, script, message) => {
    const { access } = accessWithPlugin(script);
    const failure = await access.headers(signal).catch((error: unknown) => error as ApiError);
    expect((failure as ApiError).failure).toMatchObject({
      kind: 'credentials',
      message: expect.stringContaining(message),
    });
    expect((failure as ApiError).message).not.toContain('secret-token');
  });

  it('fails if its program does not exist', async () => {
    const access = trusted(
      kubeconfig({ user: { exec: { apiVersion: 'client.authentication.k8s.io/v1', command: './none' } } }),
    );
    await expect(access.headers(signal)).rejects.toThrow('ENOENT');
  });
});

describe('a token file', () => {
  it('is read again after one minute, and its last token is kept if this fails', () => {
    const path = join(createFolder(), 'token');
    let now = 0;
    const file = new TokenFile(path, () => now);
    expect(messageOfError(() => file.token())).toContain(path);
    writeFileSync(path, 'one\n');
    expect(file.token()).toBe('one');
    writeFileSync(path, 'two\n');
    now = 59_000;
    expect(file.token()).toBe('one');
    now = 61_000;
    expect(file.token()).toBe('two');
    writeFileSync(path, '');
    now = 130_000;
    expect(file.token()).toBe('two');
  });
});

describe('access in a pod', () => {
  it('uses the service account and the environment variables', async () => {
    const folder = createFolder();
    for (const [name, text] of [
      ['token', 'sa-token'],
      ['ca.crt', 'CA'],
      ['namespace', 'istio-system\n'],
    ] as const) {
      writeFileSync(join(folder, name), text);
    }
    const access = inClusterAccess({ KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' }, folder);
    expect(access.server.href).toBe('https://[fd00::1]/');
    expect(await access.tls(signal)).toEqual({ ca: 'CA' });
    expect(await access.headers(signal)).toEqual({ authorization: 'Bearer sa-token' });
    expect(podNamespace(folder)).toBe('istio-system');
    expect(podNamespace(join(folder, 'none'))).toBeUndefined();
  });

  it('requires the environment variables that the kubelet sets', () => {
    expect(messageOfError(() => inClusterAccess({}))).toContain('KUBERNETES_SERVICE_HOST');
  });
});

it.each([
  ['none', 'no such file or directory'],
  ['.', 'must be a regular file, is a directory'],
])('a kubeconfig at path %s fails with "%s" and the path, but without the name of the system call', (name, reason) => {
  const path = join(createFolder(), name);
  expect(() => kubeconfigFile(path)).toThrow(`${path}: ${reason} [API_CREDENTIALS_INVALID]`);
});
