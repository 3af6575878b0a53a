/** The results are the same as in the control plane (src/discovery/references). */
import { type Config, type ConfigKey, configKeyOf } from '../../../model/config/config.ts';
import { type ConfigSet, configSetOf } from '../../../model/config/config-set.ts';
import type { FieldPositions } from '../../../model/config/field-positions.ts';
import type { Problem, RelatedLocation } from '../../../model/config/problem.ts';
import { defaultFeatures } from '../../../model/mesh/features.ts';
import type { MeshNetworks } from '../../../model/mesh/mesh-networks.ts';
import { buildPushContext } from '../../../model/push-context/build-push-context.ts';
import { buildServiceRegistry } from '../../../model/services/service-registry.ts';
import { parseYamlDocument } from '../../../model/yaml/yaml-document.ts';
import { type ConfigWarning, type ObjectLocation, unlocatedMeshConfig } from '../../references/config-warning.ts';
import { findConfigWarnings } from '../../references/find-config-warnings.ts';
import { ObjectsOfFiles, type ReferencedKind } from '../../references/known-objects.ts';
import { unappliedPatches } from '../../references/policies/unapplied-patches.ts';
import { objectText } from './about-object.ts';
import type { GivenText } from './given-texts.ts';
import type { TranslatedFiles } from './translated-files.ts';

export interface ReferenceSettings {
  readonly pods: readonly Config[];
  readonly hasMeshConfig: boolean;
  readonly meshFile?: GivenText;
  /** PILOT_SCOPE_GATEWAY_TO_NAMESPACE. */
  readonly scopesGateways: boolean;
  readonly networks?: MeshNetworks;
  readonly rejectedKeys?: readonly ConfigKey[];
}

export interface ReferenceProblems {
  readonly problems: readonly Problem[];
  /** Messages about references that could not be checked. */
  readonly notes: readonly string[];
}

export function referenceProblems(
  { configs, writtenConfigs, mesh, domain, gatewayApi, generatedConfigs }: TranslatedFiles,
  { pods, hasMeshConfig, meshFile, scopesGateways, networks, rejectedKeys }: ReferenceSettings,
  positions: FieldPositions,
): ReferenceProblems {
  const set = generatedConfigs.size === 0 ? writtenConfigs : configSetOf([...configs, ...generatedConfigs.values()]);
  const { trustDomain, defaultServiceExportTo, discoverySelectors, exportingNamespaces, rootNamespace } = mesh;
  const registry = buildServiceRegistry(set, {
    ...{ domain, trustDomain, defaultServiceExportTo, discoverySelectors, exportingNamespaces, rootNamespace },
    ...(networks && { networks }),
  });
  const contextOptions = {
    version: '',
    mesh,
    domain,
    kubernetes: true,
    features: { ...defaultFeatures, gatewaysOfOwnNamespace: scopesGateways },
  };
  const context = buildPushContext({ ...contextOptions, configs: set, ...registry });
  const withPods = <Set extends ConfigSet>(configs: Set) => ({
    ...configs,
    Pod: [...configs.Pod, ...pods] as Set['Pod'],
  });
  const fileObjects = new ObjectsOfFiles(withPods(writtenConfigs), hasMeshConfig, rejectedKeys);
  const configsWithPods = withPods(set);
  const configWarnings = findConfigWarnings(context, configsWithPods, fileObjects, meshFile && meshConfigOf(meshFile));
  const warnings = [
    ...configWarnings,
    ...unappliedPatches({ context, configs: configsWithPods, knownObjects: fileObjects }),
  ].filter((warning) => warning !== undefined);
  const gatewayApiProblems = [...gatewayApi.problems.values()].filter(
    ({ code, absent }) =>
      code !== 'LIMIT_EXCEEDED' &&
      (absent === undefined || fileObjects.isComplete(absent.kind as ReferencedKind, absent.namespace)),
  );
  return {
    problems: [
      ...warnings.map((warning) => problemOf(warning, positions)),
      ...gatewayApiProblems.map((problem) => locatedProblem(problem, positions)),
    ],
    notes: fileObjects.skippedChecks,
  };
}

function meshConfigOf({ file, text }: GivenText): Config {
  const { value } = parseYamlDocument({ text, line: 1 });
  return { ...unlocatedMeshConfig, spec: value ?? {}, source: { file, line: 1 } };
}

function locatedProblem({ absent: _, ...problem }: Problem, positions: FieldPositions): Problem {
  const { key } = problem;
  return { ...problem, ...positions.positionOf(problem), ...(key && { object: objectText(key) }) };
}

function problemOf({ code, config, field, message, other }: ConfigWarning, positions: FieldPositions): Problem {
  const { object, ...location } = placeOf({ config, field }, positions);
  return {
    ...{ severity: 'warning', ...location, object, key: configKeyOf(config), field, message, code },
    ...(other && { other: placeOf(other, positions) }),
  };
}

function placeOf({ config, field }: ObjectLocation, positions: FieldPositions): RelatedLocation {
  const { source } = config;
  return {
    object: objectText(config),
    ...(source === undefined
      ? { file: '', line: 1 }
      : { file: source.file, ...positions.fieldPosition(source, field ?? '') }),
    ...(field !== undefined && { field }),
  };
}
