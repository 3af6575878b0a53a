import { Command, InvalidArgumentError, Option } from 'commander';
import * as E from 'fp-ts/lib/Either.js';
import { configLimitsOf } from '../../discovery/config/files/config-limits.ts';
import { type ByteLimit, readNamedText, readStreamText } from '../../discovery/config/validation/given-texts.ts';
import { Environment } from '../../discovery/environment.ts';
import { GoTemplateThread, installedGoTemplates } from '../../discovery/webhooks/go-templates/go-template-thread.ts';
import type { SidecarInjector } from '../../injection/injector.ts';
import { injectManifests, type ManifestMessage } from '../../injection/manifests.ts';
import { decodeInjectionConfig, decodeWrittenValues } from '../../injection/settings.decode.ts';
import { defaultInjectionConfig } from '../../injection/settings.ts';
import { withGoTemplates } from '../../injection/template/go-template.ts';
import { problemText } from '../../model/config/problem.ts';
import type { Decoded } from '../../model/fields/decode.ts';
import { isNamespace } from '../../model/fields/names.ts';
import { mustBe } from '../../model/fields/violation.ts';
import { readMeshConfig } from '../../model/mesh/mesh-config.decode.ts';
import { defaultMeshConfig, type MeshConfig } from '../../model/mesh/mesh-config.ts';
import { describeFieldErrors } from '../../model/mesh/proxy-config.ts';
import { proxyConfigFor } from '../../model/push-context/workload-proxy-config.ts';
import { messageOf } from '../../runtime/errors.ts';
import { entryText } from '../../runtime/output/log.ts';
import { setOutputFailureCode } from '../../runtime/output/standard-streams.ts';
import { visibleLine } from '../../runtime/visible-text.ts';
import { addHelpSections } from './help-sections.ts';
import { type CommandStreams, processStreams } from './validate.ts';

interface InjectFlags {
  readonly filename: readonly string[];
  readonly valuesFile: string;
  readonly injectConfigFile?: string;
  readonly meshConfigFile?: string;
  readonly revision: string;
  readonly namespace: string;
}

const standardInput = '-';
/** `invalid`: a manifest cannot be injected. */
const exitCodes = { invalid: 1, unreadable: 2, unwritten: 3 } as const;

export function injectCommand({ out, error }: CommandStreams = processStreams): Command {
  const command = new Command('inject')
    .summary('Add the sidecar to manifests')
    .description(
      'Add the sidecar to the pods of manifests, as the webhook does in a cluster, and print them. Documents without pods are printed ' +
        'byte for byte. If a manifest cannot be injected, nothing is printed, so that no pod is applied without its sidecar.',
    )
    .requiredOption('-f, --filename <file>', 'Manifests in YAML or JSON; - is standard input; repeatable', appendValue)
    .requiredOption('--valuesFile <file>', 'Values of the injector: key values of ConfigMap istio-sidecar-injector')
    .option('--injectConfigFile <file>', 'Settings of the injector: key config of ConfigMap istio-sidecar-injector')
    .option('--meshConfigFile <file>', 'Mesh configuration: key mesh of ConfigMap istio')
    .option('--revision <name>', 'Revision of the control plane (default: the default one)', '')
    .addOption(
      new Option('-n, --namespace <namespace>', 'Namespace of objects that name none')
        .default('default')
        .argParser(namespaceOf),
    );
  return addHelpSections(command, {
    examples: [
      'pilot-discovery inject -f web.yaml --valuesFile values.yaml | kubectl apply -f -',
      "kubectl -n istio-system get configmap istio-sidecar-injector -o 'jsonpath={.data.values}' > values.yaml",
    ],
    exitCodes: [
      ['0', 'manifests printed'],
      ['1', 'a manifest cannot be injected, or a setting or flag is invalid'],
      ['2', 'a file cannot be read'],
      ['3', 'the result cannot be written'],
    ],
  }).action(async (flags: InjectFlags) => {
    setOutputFailureCode(exitCodes.unwritten);
    process.exitCode = await injectFiles(flags, { out, error });
  });
}

function namespaceOf(value: string): string {
  if (value === '' || isNamespace(value)) return value;
  throw new InvalidArgumentError(mustBe('a namespace', value).message);
}

function appendValue(value: string, previousValues: readonly string[] = []): readonly string[] {
  return [...previousValues, value];
}

async function injectFiles(flags: InjectFlags, { out, error }: CommandStreams): Promise<number> {
  const environment = new Environment(process.env, (warning) => error(`${entryText(warning)}\n`));
  const limits = configLimitsOf(environment);
  const fileLimit: ByteLimit = { bytes: limits.maxFileBytes, setting: 'PILOT_CONFIG_MAX_FILE_BYTES' };
  const report = (location: string, message: string): void =>
    error(`pilot-discovery: ${location}: ${visibleLine(message)}\n`);
  const texts: { readonly file: string; readonly text: string }[] = [];
  for (const file of flags.filename) {
    const text = await textOf(file, fileLimit);
    if (E.isLeft(text)) {
      report(file, text.left);
      return exitCodes.unreadable;
    }
    texts.push({ file, text: text.right });
  }
  const injector = await injectorOf(flags, fileLimit, report);
  if (injector === undefined) return exitCodes.invalid;
  let hasFailed = false;
  const injectedTexts = await withGoTemplates(injector, (readyInjector) =>
    texts.map(({ file, text }) => ({ file, manifests: injectManifests(text, readyInjector, flags.namespace) })),
  );
  const injectedStreams = injectedTexts.map(({ file, manifests: { text: injectedText, errors, skipped } }) => {
    const locationOf = ({ line, object }: ManifestMessage): string => `${file}:${line}: ${object}`;
    for (const message of errors) report(locationOf(message), message.message);
    for (const message of skipped)
      error(`note: ${visibleLine(`${locationOf(message)}: not injected: ${message.message}`)}\n`);
    hasFailed ||= errors.length > 0;
    return injectedText;
  });
  if (hasFailed) return exitCodes.invalid;
  out(joinStreams(injectedStreams));
  return 0;
}

function joinStreams(streams: readonly string[]): string {
  return streams.reduce(
    (joinedText, streamText) => `${joinedText}${joinedText.endsWith('\n') ? '' : '\n'}---\n${streamText}`,
  );
}

async function textOf(file: string, limit: ByteLimit): Promise<E.Either<string, string>> {
  try {
    return E.right(
      file === standardInput ? await readStreamText(process.stdin, limit) : await readNamedText(file, limit),
    );
  } catch (error) {
    return E.left(messageOf(error));
  }
}

/** @returns `undefined` after reporting an invalid setting */
async function injectorOf(
  flags: InjectFlags,
  limit: ByteLimit,
  report: (location: string, message: string) => void,
): Promise<SidecarInjector | undefined> {
  let isValid = true;
  const readOption = async <T>(
    flag: string,
    file: string | undefined,
    decode: (text: string) => E.Either<string, T>,
  ): Promise<T | undefined> => {
    if (file === undefined) return undefined;
    const text = await textOf(file, limit);
    if (E.isLeft(text)) report(`${flag} ${file}`, text.left);
    const decodeResult = E.isRight(text) ? decode(text.right) : undefined;
    if (decodeResult !== undefined && E.isLeft(decodeResult)) report(`${flag} ${file}`, decodeResult.left);
    if (decodeResult !== undefined && E.isRight(decodeResult)) return decodeResult.right;
    isValid = false;
    return undefined;
  };
  const values = await readOption('--valuesFile', flags.valuesFile, (text) =>
    describeErrors(decodeWrittenValues(text)),
  );
  const config = await readOption('--injectConfigFile', flags.injectConfigFile, (text) =>
    describeErrors(decodeInjectionConfig(text)),
  );
  const mesh = (await readOption('--meshConfigFile', flags.meshConfigFile, decodedMesh)) ?? defaultMeshConfig;
  for (const warning of config?.warnings ?? []) report('--injectConfigFile', describeFieldErrors([warning]));
  if (!isValid || values === undefined) return undefined;
  const wasm = installedGoTemplates();
  return {
    settings: { config: config?.settings ?? defaultInjectionConfig, ...values, revision: flags.revision },
    ...(wasm !== undefined && { goTemplates: new GoTemplateThread(wasm) }),
    mesh,
    proxyConfigFor: (workload) => proxyConfigFor([], mesh, workload).proxyConfig,
  };
}

function decodedMesh(text: string): E.Either<string, MeshConfig> {
  const readResult = readMeshConfig('mesh', text);
  return E.isRight(readResult) ? E.right(readResult.right.mesh) : E.left(readResult.left.map(problemText).join('; '));
}

function describeErrors<T>(decodeResult: Decoded<T>): E.Either<string, T> {
  return E.isRight(decodeResult) ? decodeResult : E.left(describeFieldErrors(decodeResult.left));
}
