import type { Config, ConfigKey } from '../../../model/config/config.ts';
import { readConfigFile, withoutRepetitions } from '../../../model/config/config-file.ts';
import { FieldPositions } from '../../../model/config/field-positions.ts';
import type { Problem } from '../../../model/config/problem.ts';
import { effectText } from '../../../model/config/refused.ts';
import type { ReachSettings } from '../../../model/isolation/cross-namespace-reach.ts';
import { defaultMeshConfig, type MeshConfig } from '../../../model/mesh/mesh-config.ts';
import type { MeshNetworks } from '../../../model/mesh/mesh-networks.ts';
import { defaultConfigLimits } from '../files/config-limits.ts';
import { backendTlsProblems } from './backend-tls-problems.ts';
import { budgetProblems } from './budget-problems.ts';
import { clientCredentialProblems, credentialProblems } from './credential-problems.ts';
import { crossNamespaceProblems } from './cross-namespace-problems.ts';
import { gatewayProblems } from './gateway-problems.ts';
import { type GivenText, readGivenTexts } from './given-texts.ts';
import { podsOfTemplates } from './pod-templates.ts';
import { referenceProblems } from './reference-problems.ts';
import { translateFiles } from './translated-files.ts';

export interface Validation {
  /** Sorted by file and line. */
  readonly problems: readonly Problem[];
  readonly files: number;
  readonly objects: number;
  readonly unreadable: readonly string[];
  /** Messages about checks that were skipped because the files contain only a part of the mesh. */
  readonly notes: readonly string[];
}

export interface ValidationSettings extends ReachSettings {
  readonly mesh: MeshConfig;
  /** If true, extension providers are known. */
  readonly hasMeshConfig?: boolean;
  readonly meshFile?: GivenText;
  readonly networks?: MeshNetworks;
}

/**
 * @param paths files of any name, and directories of `*.yaml`, `*.yml` and `*.json` at any depth, which must contain each object only once
 * @param texts further input, such as standard input
 */
export async function validateFiles(
  paths: readonly string[],
  texts: readonly GivenText[] = [],
  limits = defaultConfigLimits,
  settings: ValidationSettings = { mesh: defaultMeshConfig, scopesGateways: false, domain: 'cluster.local' },
): Promise<Validation> {
  const readTexts = await readGivenTexts(paths, limits);
  const { unreadable } = readTexts;
  const allTexts: readonly GivenText[] = [...texts, ...readTexts.texts];
  const problems: Problem[] = [];
  const configs: Config[] = [];
  const placeholders: Config[] = [];
  for (const { file, text } of allTexts) {
    const fileReading = readConfigFile(file, text, { creationTimestamp: 0 });
    // The arguments are not spread, because the number of problems can exceed the limit of arguments.
    for (const problem of fileReading.problems) problems.push(problem);
    for (const config of fileReading.configs) configs.push(config);
    for (const placeholder of fileReading.standIns) placeholders.push(placeholder);
  }
  const { configs: distinctConfigs, problems: repetitions } = withoutRepetitions(configs);
  const { mesh, hasMeshConfig = false, meshFile, scopesGateways, networks, domain } = settings;
  const inputTexts = [...(meshFile ? [meshFile] : []), ...allTexts];
  const textOf = new Map(inputTexts.map(({ file, text }) => [file, text]));
  const translatedConfigs = translateFiles(distinctConfigs, mesh, domain);
  const positions = new FieldPositions((file) => textOf.get(file) ?? '', translatedConfigs.configs);
  const references = referenceProblems(
    translatedConfigs,
    {
      pods: allTexts.flatMap(({ text }) => podsOfTemplates(text)),
      hasMeshConfig,
      scopesGateways,
      ...(meshFile && { meshFile }),
      rejectedKeys: rejectedKeys(problems),
      ...(networks && { networks }),
    },
    positions,
  );
  const indexByFile = new Map(inputTexts.map(({ file }, index) => [file, index]));
  return {
    problems: omitRepeated([
      ...[
        ...problems,
        ...repetitions,
        ...credentialProblems(distinctConfigs),
        ...clientCredentialProblems(translatedConfigs),
        ...backendTlsProblems(distinctConfigs),
      ],
      ...crossNamespaceProblems(distinctConfigs, settings),
      ...gatewayProblems(translatedConfigs),
      ...budgetProblems(translatedConfigs, limits),
      ...placeholders.map(closedProblem),
      ...references.problems,
    ])
      .map((problem) => withPosition(problem, positions))
      .sort(
        (a, b) =>
          indexByFile.get(a.file)! - indexByFile.get(b.file)! || a.line - b.line || (a.column ?? 0) - (b.column ?? 0),
      ),
    files: allTexts.length,
    objects: distinctConfigs.length,
    unreadable,
    notes: [...readTexts.notes, ...references.notes],
  };
}

function rejectedKeys(problems: readonly Problem[]): readonly ConfigKey[] {
  return problems.flatMap(({ severity, key }) => (severity === 'error' && key !== undefined ? [key] : []));
}

/** Adds the field's position, if only the object's line is known. */
function withPosition(problem: Problem, positions: FieldPositions): Problem {
  const { column, field = '' } = problem;
  return column !== undefined || field === '' ? problem : { ...problem, ...positions.positionOf(problem) };
}

/** Omits problems whose cause another problem explains better. */
function omitRepeated(problems: readonly Problem[]): Problem[] {
  const problemByText = new Map<string, Problem>();
  const placesOf = (problemCode: string): ReadonlySet<string> =>
    new Set(problems.flatMap(({ code, object, field }) => (code === problemCode ? [`${object} ${field}`] : [])));
  const unappliedPlaces = placesOf('RULE_NOT_APPLIED');
  const unprogrammedPlaces = placesOf('NOT_PROGRAMMED');
  for (const problem of problems) {
    const { code, object: of, field: fieldPath = '' } = problem;
    // This check uses only the host name, but RULE_NOT_APPLIED knows the service.
    if (code === 'rules-foreign-host' && unappliedPlaces.has(`${of} ${fieldPath}`)) continue;
    // NOT_PROGRAMMED already reports the field or list element (`filters[0]`), and the response that clients get.
    const element = /^(.*\])\.[^.[\]]+$/.exec(fieldPath)?.[1] ?? fieldPath;
    if (
      code === 'FIELD_WITHOUT_EFFECT' &&
      [fieldPath, element].some((field) => unprogrammedPlaces.has(`${of} ${field}`))
    )
      continue;
    const { file, line, object, field, message } = problem;
    const key = JSON.stringify([file, object === undefined ? line : object, field, message]);
    const existingProblem = problemByText.get(key);
    if (existingProblem === undefined || existingProblem.code === undefined || existingProblem.code === code)
      problemByText.set(key, { ...existingProblem, ...problem });
  }
  return [...problemByText.values()];
}

function closedProblem(config: Config): Problem {
  const { source, standsFor } = config;
  return {
    ...{
      severity: 'warning',
      file: source!.file,
      line: source!.line,
      object: standsFor!.objectName,
      code: 'OBJECT_REJECTED',
    },
    message: `the object is rejected and has no valid earlier version, so ${effectText(config, defaultMeshConfig.rootNamespace)}`,
  };
}
