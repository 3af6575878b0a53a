import { Command, Option } from 'commander';
import * as E from 'fp-ts/lib/Either.js';
import { configLimitsOf } from '../../discovery/config/files/config-limits.ts';
import {
  type ByteLimit,
  type GivenText,
  readNamedText,
  readStreamText,
} from '../../discovery/config/validation/given-texts.ts';
import { type Validation, validateFiles } from '../../discovery/config/validation/validate-files.ts';
import { Environment } from '../../discovery/environment.ts';
import { clusterDomainOf } from '../../discovery/options/discovery-flags.ts';
import { type Problem, problemText } from '../../model/config/problem.ts';
import { defaultFeatures } from '../../model/mesh/features.ts';
import { readMeshConfig } from '../../model/mesh/mesh-config.decode.ts';
import { defaultMeshConfig, type MeshConfig } from '../../model/mesh/mesh-config.ts';
import { type MeshNetworks, readMeshNetworks } from '../../model/mesh/mesh-networks.ts';
import { messageOf } from '../../runtime/errors.ts';
import { entryText } from '../../runtime/output/log.ts';
import { setOutputFailureCode, standardError, standardOutput } from '../../runtime/output/standard-streams.ts';
import { visibleLine } from '../../runtime/visible-text.ts';
import { addHelpSections } from './help-sections.ts';

interface ValidateFlags {
  readonly meshConfig?: string;
  readonly networksConfig?: string;
  readonly domain?: string;
  readonly format: 'text' | 'json';
  readonly strict?: boolean;
}

const standardInput = '-';
/** Exit code 1 means invalid objects. */
const outputErrorCode = 3;

export interface CommandStreams {
  readonly out: (text: string) => void;
  readonly error: (text: string) => void;
}

export function validateCommand(streams: CommandStreams = processStreams): Command {
  const command = new Command('validate')
    .summary('Validate configuration files')
    .description(
      'Validate configuration files as the control plane does and print each problem: FILE:LINE:COLUMN, object, field, and expected value. ' +
        'Warnings have a code: fields without effect, dangling or conflicting references (docs/config-analysis.md), and objects ' +
        'that affect other namespaces (SECURITY.md). Notes list references that these files are not sufficient to check.',
    )
    .argument(
      '<path...>',
      'Files, or directories of *.yaml, *.yml and *.json, searched recursively; - is standard input',
    )
    .option('--meshConfig <file>', 'Mesh configuration to validate, too; its exportingNamespaces are trusted')
    .option(
      '--networksConfig <file>',
      'Mesh networks to validate, too; without it, only labelled Services are network gateways',
    )
    .option('--domain <suffix>', 'DNS domain suffix (default cluster.local)')
    .option('--strict', 'Treat warnings as errors')
    .addOption(new Option('--format <format>', 'Output format').choices(['text', 'json']).default('text'));
  return addHelpSections(command, {
    examples: ['pilot-discovery validate mesh/', 'kubectl get vs -o yaml | pilot-discovery validate -'],
    exitCodes: [
      ['0', 'all objects are valid'],
      ['1', 'an object is invalid (with --strict: or has a warning), or a flag is invalid'],
      ['2', 'a file cannot be read'],
      ['3', 'the result cannot be written'],
    ],
  }).action(async (paths: string[], flags: ValidateFlags) => {
    setOutputFailureCode(outputErrorCode);
    process.exitCode = await validate(paths, flags, streams);
  });
}

async function validate(
  paths: readonly string[],
  flags: ValidateFlags,
  { out, error }: CommandStreams,
): Promise<number> {
  const domain = clusterDomainOf(flags.domain);
  const environment = new Environment(process.env, (warning) => error(`${entryText(warning)}\n`));
  const limits = configLimitsOf(environment);
  const input = paths.includes(standardInput)
    ? await readInput({ bytes: limits.maxBytes, setting: 'PILOT_CONFIG_MAX_BYTES' })
    : { texts: [], unreadable: [] };
  const fileLimit: ByteLimit = { bytes: limits.maxFileBytes, setting: 'PILOT_CONFIG_MAX_FILE_BYTES' };
  const mesh = flags.meshConfig === undefined ? noMeshConfig : await readMesh(flags.meshConfig, fileLimit);
  const networks =
    flags.networksConfig === undefined ? noNetworks : await readNetworks(flags.networksConfig, fileLimit);
  const validation = await validateFiles(
    paths.filter((path) => path !== standardInput),
    input.texts,
    limits,
    {
      mesh: mesh.config,
      scopesGateways: environment.boolean('PILOT_SCOPE_GATEWAY_TO_NAMESPACE', defaultFeatures.gatewaysOfOwnNamespace),
      domain,
      hasMeshConfig: mesh.isRead,
      ...(mesh.text && { meshFile: mesh.text }),
      ...(networks.config && { networks: networks.config }),
    },
  );
  const problems = [...mesh.problems, ...networks.problems, ...validation.problems];
  const unreadablePaths = [...input.unreadable, ...mesh.unreadable, ...networks.unreadable, ...validation.unreadable];
  if (flags.format === 'json')
    out(
      `${JSON.stringify({ problems, notes: validation.notes, unreadable: unreadablePaths, files: validation.files, objects: validation.objects }, null, 2)}\n`,
    );
  else {
    for (const problem of problems) out(`${problemText(problem)}\n`);
    for (const noteText of validation.notes) error(`note: ${visibleLine(noteText)}\n`);
    for (const reason of unreadablePaths) error(`pilot-discovery: ${reason}\n`);
    error(`${summary(validation, problems)}\n`);
  }
  if (unreadablePaths.length > 0) return 2;
  return problems.some(({ severity }) => severity === 'error' || flags.strict === true) ? 1 : 0;
}

async function readInput(limit: ByteLimit): Promise<{
  readonly texts: { file: string; text: string }[];
  readonly unreadable: string[];
}> {
  try {
    return { texts: [{ file: '<stdin>', text: await readStreamText(process.stdin, limit) }], unreadable: [] };
  } catch (error) {
    return { texts: [], unreadable: [`<stdin>: ${messageOf(error)}`] };
  }
}

interface MeshFile {
  readonly config: MeshConfig;
  /** False if no mesh configuration is set, or its file is invalid. */
  readonly isRead: boolean;
  readonly text?: GivenText;
  readonly problems: readonly Problem[];
  readonly unreadable: readonly string[];
}

const noMeshConfig: MeshFile = { config: defaultMeshConfig, isRead: false, problems: [], unreadable: [] };

async function readMesh(file: string, limit: ByteLimit): Promise<MeshFile> {
  let content: string;
  try {
    content = await readNamedText(file, limit);
  } catch (error) {
    return { ...noMeshConfig, unreadable: [`--meshConfig ${file}: ${messageOf(error)}`] };
  }
  const readResult = readMeshConfig(file, content);
  if (E.isLeft(readResult)) return { ...noMeshConfig, problems: readResult.left };
  const text = { file, text: content };
  return { config: readResult.right.mesh, isRead: true, text, problems: readResult.right.warnings, unreadable: [] };
}

interface NetworksFile {
  readonly config?: MeshNetworks;
  readonly problems: readonly Problem[];
  readonly unreadable: readonly string[];
}

const noNetworks: NetworksFile = { problems: [], unreadable: [] };

async function readNetworks(file: string, limit: ByteLimit): Promise<NetworksFile> {
  let content: string;
  try {
    content = await readNamedText(file, limit);
  } catch (error) {
    return { ...noNetworks, unreadable: [`--networksConfig ${file}: ${messageOf(error)}`] };
  }
  const readResult = readMeshNetworks(file, content);
  if (E.isLeft(readResult)) return { ...noNetworks, problems: readResult.left };
  return { config: readResult.right.networks, problems: readResult.right.warnings, unreadable: [] };
}

function summary({ objects, files }: Validation, problems: readonly Problem[]): string {
  const errors = problems.filter(({ severity }) => severity === 'error').length;
  const countText = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;
  const problemCounts = [countText(errors, 'error'), countText(problems.length - errors, 'warning')].join(', ');
  return `${countText(objects, 'valid object')} in ${countText(files, 'file')}: ${problemCounts}`;
}

export const processStreams: CommandStreams = {
  out: (text) => standardOutput.print(text),
  error: (text) => standardError.write(text),
};
