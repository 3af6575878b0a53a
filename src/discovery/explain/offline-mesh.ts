import type { Config } from '../../model/config/config.ts';
import { configKeyText } from '../../model/config/config.ts';
import { problemText } from '../../model/config/problem.ts';
import { placeholderText } from '../../model/config/refused.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { ChartpilotError } from '../../runtime/errors.ts';
import { SettingsFiles } from '../config/files/settings-files.ts';
import { MeshConfigs } from '../config/snapshots/mesh-configs.ts';
import { fullProblemText } from '../config/sources/config-problem.ts';
import type { DiscoveryOptions } from '../options/discovery-options.ts';
import { MeshState } from '../push/contexts/mesh-state.ts';

export interface OfflineMesh {
  readonly context: PushContext;
  readonly configOf: (key: Pick<Config, 'kind' | 'namespace' | 'name'>) => Config | undefined;
  readonly warnings: readonly string[];
}

export type MeshFiles = Pick<
  DiscoveryOptions,
  | 'configDir'
  | 'meshConfigFile'
  | 'networksConfigFile'
  | 'domain'
  | 'clusterId'
  | 'registries'
  | 'registryOptions'
  | 'features'
>;

/** @throws ChartpilotError FILE_UNREADABLE if the directory is missing, CONFIG_INVALID for invalid settings */
export async function readOfflineMesh(files: MeshFiles): Promise<OfflineMesh> {
  const warnings: string[] = [];
  const settings = new SettingsFiles((problem) => void warnings.push(problemText(problem)));
  activateSettings(settings, 'mesh', files.meshConfigFile);
  activateSettings(settings, 'networks', files.networksConfigFile);
  const directory = new MeshConfigs({ mesh: () => settings.mesh, domain: files.domain });
  const directoryReading = await directory.read([files.configDir]);
  if (directoryReading.outcome === 'missing') {
    throw new ChartpilotError(
      'FILE_UNREADABLE',
      `${files.configDir}: ${directoryReading.problems[0]?.message ?? 'cannot be read'}`,
    );
  }
  warnings.push(...directoryReading.problems.map(fullProblemText));
  const { domain, clusterId, registries, registryOptions, features } = files;
  const state = new MeshState({
    settings,
    meshConfigs: directory,
    domain,
    clusterId,
    registries,
    registryOptions,
    features,
  });
  state.computeServices();
  const context = state.publishContext({ forced: true, changedKeys: [] });
  const { byKey, placeholders } = directory.snapshot;
  warnings.push(...placeholders.map((config) => placeholderText(config, context.mesh.rootNamespace)));
  return { context, warnings, configOf: (key) => byKey.get(configKeyText(key as Config)) };
}

function activateSettings(settings: SettingsFiles, reason: 'mesh' | 'networks', file: string): void {
  const settingsReading = settings.read(reason, file);
  if (settingsReading.outcome === 'valid') settings.activate(reason, settingsReading.version);
  else if (settingsReading.outcome === 'invalid') {
    throw new ChartpilotError('CONFIG_INVALID', settingsReading.problems.map(fullProblemText).join('\n'));
  }
}
