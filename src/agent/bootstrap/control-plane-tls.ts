import { existsSync } from 'node:fs';
import type { ProxyConfig } from '../../model/mesh/proxy-config.ts';
import { ChartpilotError } from '../../runtime/errors.ts';
import { isPlaintext } from '../identity/control-plane-credentials.ts';
import { controlPlaneName, controlPlaneRootFile } from '../identity/control-plane-roots.ts';

export interface ControlPlaneTls {
  readonly rootFile: string;
  readonly serverName: string;
}

/**
 * Each connection evaluates the settings again. `undefined` for plaintext.
 *
 * @throws ChartpilotError CONFIG_INVALID if TLS is required and the root file does not exist
 */
export function controlPlaneTls(
  config: Pick<ProxyConfig, 'controlPlaneAuthPolicy' | 'discoveryAddress' | 'proxyMetadata'>,
  env: NodeJS.ProcessEnv,
  fileExists: (path: string) => boolean = existsSync,
): ControlPlaneTls | undefined {
  if (isPlaintext(config, config.discoveryAddress)) return undefined;
  const rootFile = controlPlaneRootFile('xds', { env, proxyMetadata: config.proxyMetadata }, fileExists);
  if (!fileExists(rootFile)) {
    throw new ChartpilotError(
      'CONFIG_INVALID',
      `root certificate of the control plane ${rootFile} does not exist; controlPlaneAuthPolicy MUTUAL_TLS requires it`,
      {
        hint: 'Mount the file, set XDS_ROOT_CA to another one, or use plaintext with --controlPlaneAuthPolicy NONE.',
        fields: { path: rootFile },
      },
    );
  }
  return { rootFile, serverName: controlPlaneName(config.discoveryAddress, env) };
}
