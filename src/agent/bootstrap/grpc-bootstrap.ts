/** The bootstrap file of proxyless gRPC programs (gRFC A27, A29, A36). */
import { join, resolve } from 'node:path';
import { provesIdentity } from '../../../machines/agent/settings.ts';
import type { LogWarning } from '../../runtime/log-events/log-events.ts';
import type { MountedFiles } from '../options/identity-options.ts';
import type { ProxyOptions } from '../options/options.ts';
import { xdsSocketPath } from '../xds/xds-streams.ts';
import { nodeFacts } from './agent-bootstrap.ts';
import { buildNode } from './node-metadata.ts';

/** The control plane refers to this certificate provider instance. */
const providerName = 'default';
/** As in Istio. */
const maxRefreshSeconds = 900;
/** Number of refreshes between a renewal and the expiry of the previous certificate. */
const refreshesBeforeExpiry = 4;

export function grpcBootstrapPath({ env, config }: Pick<ProxyOptions, 'env' | 'config'>): string {
  return resolve(env.GRPC_XDS_BOOTSTRAP || join(config.configPath, 'grpc-bootstrap.json'));
}

export function grpcBootstrap(
  options: ProxyOptions,
  { hasCredentialServer }: { readonly hasCredentialServer: boolean },
): { bootstrap: object; warnings: LogWarning[] } {
  const files = certificateFiles(options);
  const { node, warnings } = buildNode(nodeFacts(options, { hasCredentialServer, hasSecrets: files !== undefined }));
  const bootstrap = {
    xds_servers: [
      { server_uri: serverUri(options), channel_creds: [{ type: 'insecure' }], server_features: ['xds_v3'] },
    ],
    // gRPC for Node.js requires `locality`, even if it is unknown.
    node: { ...node, metadata: { ...node.metadata, GENERATOR: 'grpc' }, locality: node.locality ?? {} },
    ...(files && {
      certificate_providers: {
        [providerName]: {
          plugin_name: 'file_watcher',
          config: {
            certificate_file: files.certificate,
            private_key_file: files.key,
            ca_certificate_file: files.roots,
            refresh_interval: `${refreshSeconds(options)}s`,
          },
        },
      },
    }),
    server_listener_resource_name_template: 'xds.istio.io/grpc/lds/inbound/%s',
  };
  return { bootstrap, warnings };
}

function serverUri({ config }: ProxyOptions): string {
  return config.customConfigFile ? config.discoveryAddress : `unix://${resolve(xdsSocketPath(config.configPath))}`;
}

/** Absolute paths, because programs may have other working directories. */
function certificateFiles({ identity }: ProxyOptions): MountedFiles | undefined {
  const { outputDirectory, mounted, settings } = identity;
  const inOutput = (name: string): string => resolve(outputDirectory, name);
  if (outputDirectory !== '' && provesIdentity(settings)) {
    return { certificate: inOutput('cert-chain.pem'), key: inOutput('key.pem'), roots: inOutput('root-cert.pem') };
  }
  if (mounted === undefined) return undefined;
  const { certificate, key, roots } = mounted;
  return { certificate: resolve(certificate), key: resolve(key), roots: resolve(roots) };
}

/** A certificate is renewed when the fraction `grace.ratio` of its lifetime remains. */
function refreshSeconds({ identity: { lifetimeSeconds, settings } }: ProxyOptions): number {
  if (settings.source !== 'authority') return maxRefreshSeconds;
  const seconds = Math.floor(
    (lifetimeSeconds * (settings.grace.ratio - settings.grace.jitter)) / refreshesBeforeExpiry,
  );
  return Math.max(1, Math.min(maxRefreshSeconds, seconds));
}
