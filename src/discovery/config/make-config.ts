import type { Logger } from '../../runtime/output/log.ts';
import { configControllerWithEffects } from './config-controller.effects.ts';
import type { ConfigLimits } from './files/config-limits.ts';
import { SettingsFiles } from './files/settings-files.ts';
import { meshConfigWithEffects, type SettingsOfCluster } from './mesh-config.effects.ts';
import { MeshConfigs } from './snapshots/mesh-configs.ts';
import type { SourceAdapters } from './sources/config-source.ts';
import { configSources, type RequestedSources } from './sources/config-sources.ts';
import { XdsSources, type XdsSourcesOptions } from './xds/xds-sources.ts';

export interface ConfigParts extends Pick<XdsSourcesOptions, 'mesh' | 'ownIdentity' | 'recorder'> {
  readonly options: RequestedSources &
    Pick<XdsSourcesOptions, 'namespace' | 'domain' | 'revision' | 'clusterId'> & {
      readonly configLimits: ConfigLimits;
      readonly xdsSources: XdsSourcesOptions['limits'];
    };
  /** Files and xDS are supported in addition. */
  readonly adapters: SourceAdapters;
  readonly cluster: SettingsOfCluster | undefined;
  readonly log: Logger;
}

export function makeConfig({
  options,
  adapters: otherAdapters,
  cluster,
  mesh,
  ownIdentity,
  recorder,
  log,
}: ConfigParts) {
  const { namespace, domain, revision, clusterId, configLimits: limits } = options;
  const xdsSources = new XdsSources({
    ...{ namespace, domain, revision, clusterId, limits: options.xdsSources },
    ...{ mesh, ownIdentity, recorder, log: log.scope('config-source') },
  });
  const adapters: SourceAdapters = { xds: xdsSources.open, ...otherAdapters };
  const settings = new SettingsFiles(
    ({ file, line, field, message: reason }) =>
      log.scope('mesh-config').warn('settings.warning', { place: `${file}:${line}`, field, reason }),
    options.configLimits,
  );
  const configs = new MeshConfigs({ mesh: () => settings.mesh, domain, limits, adapters });
  const listSources = () => configSources(options, settings.mesh, adapters);
  return {
    settings,
    configs,
    xdsSources,
    checkSources: (): void => void listSources(),
    actors: (onAdopted: () => void) => ({
      meshConfig: meshConfigWithEffects({ settings, cluster, reportAdopted: onAdopted, log: log.scope('mesh-config') }),
      configController: configControllerWithEffects({ configs, listSources, log }),
    }),
  };
}
