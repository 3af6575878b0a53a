/** The environment variables are those of Consul's own client (https://developer.hashicorp.com/consul/commands#environment-variables). */

import { ChartpilotError } from '../../runtime/errors.ts';
import { readConsistentlySync } from '../../runtime/files/read-together.ts';
import type { Environment } from '../environment.ts';
import { listOf } from '../environment.ts';
import type { ClusterAccess } from '../kubernetes/access/cluster-access.ts';
import { headerText, readCredentialFile } from '../kubernetes/access/credential-file.ts';

export interface ConsulFlags {
  readonly consulserverURL?: string;
  readonly consulServerURL?: string;
  readonly consulTokenFile?: string;
  readonly consulDatacenters?: string;
}

export interface ConsulSettings {
  readonly server: URL;
  /** An empty name selects the agent's datacenter. */
  readonly datacenters: readonly string[];
  readonly tokenFile: string;
  /** Secret, from the environment. The token file takes precedence. */
  readonly token: string;
  readonly caFile: string;
  readonly certificateFile: string;
  readonly keyFile: string;
  /** Expected name in the server certificate. Defaults to the host of the address. */
  readonly serverName: string;
  readonly verifiesCertificate: boolean;
}

const defaultAddress = '127.0.0.1:8500';
const maxDatacenters = 100;

/** @throws ChartpilotError FLAG_INVALID */
export function consulSettingsOf(flags: ConsulFlags, env: Environment): ConsulSettings {
  const flag = flags.consulServerURL || flags.consulserverURL || '';
  const [setting, address] =
    flag === '' ? ['CONSUL_HTTP_ADDR', env.text('CONSUL_HTTP_ADDR', defaultAddress)] : ['--consulServerURL', flag];
  const datacenters = [...new Set(listOf(flags.consulDatacenters ?? ''))];
  const certificateFile = env.text('CONSUL_CLIENT_CERT', '');
  const keyFile = env.text('CONSUL_CLIENT_KEY', '');
  if ((certificateFile === '') !== (keyFile === '')) {
    throw new ChartpilotError('FLAG_INVALID', 'CONSUL_CLIENT_CERT and CONSUL_CLIENT_KEY: set both, or neither');
  }
  if (env.hasValue('CONSUL_CAPATH')) {
    throw new ChartpilotError('FLAG_INVALID', 'CONSUL_CAPATH is not supported', {
      hint: 'Set CONSUL_CACERT to one PEM file with all CA certificates.',
    });
  }
  if (datacenters.length > maxDatacenters) {
    throw new ChartpilotError(
      'FLAG_INVALID',
      `--consulDatacenters: must have at most ${maxDatacenters} names, got ${datacenters.length}`,
      {
        fields: {
          path: '--consulDatacenters',
          expected: `at most ${maxDatacenters} names`,
          got: String(datacenters.length),
        },
      },
    );
  }
  return {
    server: serverOf(setting, address, env.boolean('CONSUL_HTTP_SSL', false)),
    datacenters: datacenters.length === 0 ? [''] : datacenters,
    tokenFile: flags.consulTokenFile || env.text('CONSUL_HTTP_TOKEN_FILE', ''),
    token: env.text('CONSUL_HTTP_TOKEN', ''),
    caFile: env.text('CONSUL_CACERT', ''),
    certificateFile,
    keyFile,
    serverName: env.text('CONSUL_TLS_SERVER_NAME', ''),
    verifiesCertificate: env.boolean('CONSUL_HTTP_SSL_VERIFY', true),
  };
}

function serverOf(setting: string, address: string, isTls: boolean): URL {
  const text = address.includes('://') ? address : `${isTls ? 'https' : 'http'}://${address}`;
  const server = URL.parse(isTls ? text.replace(/^http:/, 'https:') : text);
  const isHttp = server !== null && ['http:', 'https:'].includes(server.protocol) && server.hostname !== '';
  if (isHttp && server.username === '' && server.password === '') return server;
  throw new ChartpilotError('FLAG_INVALID', `${setting}: must be an http:// or https:// URL, or HOST:PORT`, {
    fields: { path: setting, expected: 'an http:// or https:// URL without user and password, or HOST:PORT' },
    hint: 'Example: http://127.0.0.1:8500. Sockets (unix://) are not supported; put tokens into a file.',
  });
}

export function credentialFiles({ tokenFile, caFile, certificateFile, keyFile }: ConsulSettings): readonly string[] {
  return [tokenFile, caFile, certificateFile, keyFile].filter((file) => file !== '');
}

/** Reads TLS files for each connection. Reads the token again after {@link ConsulAccess.invalidateCredentials}. */
export interface ConsulAccess extends ClusterAccess {
  readonly hasToken: boolean;
}

export function consulAccess(settings: ConsulSettings): ConsulAccess {
  const { server, tokenFile, token, caFile, certificateFile, keyFile, serverName } = settings;
  let cachedToken: string | undefined;
  return {
    server,
    hasToken: tokenFile !== '' || token !== '',
    tls: async () =>
      readConsistentlySync((resolvePath) => ({
        ...(caFile !== '' && { ca: readCredentialFile(resolvePath(caFile)) }),
        ...(certificateFile !== '' && { cert: readCredentialFile(resolvePath(certificateFile)) }),
        ...(keyFile !== '' && { key: readCredentialFile(resolvePath(keyFile)) }),
        ...(serverName !== '' && { servername: serverName }),
        ...(!settings.verifiesCertificate && { rejectUnauthorized: false }),
      })),
    headers: async (): Promise<Readonly<Record<string, string>>> => {
      if (tokenFile !== '') cachedToken ??= headerText(readCredentialFile(tokenFile).trim(), tokenFile);
      else if (token !== '') cachedToken ??= headerText(token, 'CONSUL_HTTP_TOKEN');
      return cachedToken === undefined ? {} : { 'x-consul-token': cachedToken };
    },
    invalidateCredentials: () => {
      cachedToken = undefined;
    },
  };
}
