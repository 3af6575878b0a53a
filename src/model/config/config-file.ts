/** Parses a file of configuration objects from YAML text into objects and problems. */
import { hash } from 'node:crypto';
import * as E from 'fp-ts/lib/Either.js';
import { isObject } from '../../runtime/json-object.ts';
import { runToEnd, type Steps } from '../../runtime/turns.ts';
import type { FieldError } from '../fields/decode.ts';
import { effectWarnings } from '../fields/effect.ts';
import { isNamespace, isObjectName } from '../fields/names.ts';
import type { FieldViolation } from '../fields/violation.ts';
import { type KindName, kinds, originalKindName } from '../kinds/index.ts';
import type { MetadataTexts } from '../kinds/kind.ts';
import { metadataWarnings } from '../kinds/metadata-warnings.ts';
import {
  documentsOf,
  parseYamlDocument,
  type TextPart,
  type YamlDocument,
  type YamlPosition,
} from '../yaml/yaml-document.ts';
import { maxNesting } from '../yaml/yaml-fast.ts';
import { type Config, type ConfigKey, configKeyOf, configKeyText, type SourcePosition } from './config.ts';
import {
  correctedMetadata,
  type Envelope,
  type InvalidEnvelope,
  kindNameOf,
  readEnvelope,
  type SkippedObject,
} from './envelope.ts';
import { isForeignDocument } from './foreign-document.ts';
import { objectsWithin } from './list-of-objects.ts';
import { isNestedDeeperThan, truncateAtLevel } from './nesting.ts';
import { type Problem, violationIn } from './problem.ts';
import { buildPlaceholder, identityOf } from './refused.ts';
import { storeWrittenSpec } from './written-spec.ts';

export interface ConfigFile {
  readonly configs: readonly Config[];
  readonly problems: readonly Problem[];
  /** Placeholders (refused.ts) for rejected objects without an earlier valid version. */
  readonly standIns: readonly Config[];
  readonly documents: ReadonlyMap<string, DocumentResult>;
}

/** Line numbers are relative to the document's first line. */
interface DocumentResult {
  readonly line: number;
  readonly configs: readonly Config[];
  readonly problems: readonly Problem[];
  readonly standIns: readonly Config[];
}

export interface ConfigReadOptions {
  /** Creation time of objects without one, in milliseconds since the epoch. Must not change for the same object. */
  readonly creationTimestamp: number;
  readonly errorsOnly?: boolean;
  readonly previous?: ConfigFile;
}

/** Invalid objects are omitted and reported as problems. */
export function readConfigFile(file: string, text: string, options: ConfigReadOptions): ConfigFile {
  return runToEnd(readConfigFileInSteps(file, text, options));
}

/** One object per step; parsing a document is a single step. */
export function* readConfigFileInSteps(file: string, text: string, options: ConfigReadOptions): Steps<ConfigFile> {
  const documents = new Map<string, DocumentResult>();
  const configs: Config[] = [];
  const problems: Problem[] = [];
  const placeholders: Config[] = [];
  for (const documentPart of documentsOf(text)) {
    const cachedResult = documents.get(documentPart.text) ?? options.previous?.documents.get(documentPart.text);
    const result =
      cachedResult === undefined
        ? yield* readDocumentInSteps(file, documentPart, options)
        : shiftLines(cachedResult, documentPart.line);
    documents.set(documentPart.text, result);
    for (const config of result.configs) configs.push(config);
    for (const problem of result.problems) problems.push(problem);
    for (const placeholder of result.standIns) placeholders.push(placeholder);
    yield;
  }
  return { configs, problems, standIns: placeholders, documents };
}

/**
 * Reads a parsed object, for example from a cluster. Its problems have no file and line.
 * @param location prefix of problem messages, such as `k8s://`
 */
export function readConfigObject(
  location: string,
  value: unknown,
  options: Pick<ConfigReadOptions, 'creationTimestamp' | 'errorsOnly'> & { readonly source?: SourcePosition },
): ReadObject {
  const withPosition = (config: Config): Config =>
    options.source === undefined ? omitSource(config) : Object.freeze({ ...config, source: options.source });
  const document: YamlDocument = { value, errors: [], positionOf: () => ({ line: 0, column: 0 }) };
  const reader = new DocumentReader(location, document, options);
  if (isNestedDeeperThan(value, maxNesting)) reader.reportExcessiveDepth(truncateAtLevel(value, maxNesting));
  else reader.readObject(value, '');
  const [config] = reader.configs;
  const placeholders = reader.standIns.map((placeholder) => withPosition({ ...placeholder, ...versionOf(value) }));
  return { config: config && withPosition(config), problems: reader.problems, standIns: placeholders };
}

function omitSource({ source: _, ...config }: Config): Config {
  return Object.freeze(config);
}

function versionOf(value: unknown): Pick<Config, 'generation' | 'uid'> {
  const { generation, uid } = metadataOf(value);
  return {
    ...(typeof generation === 'number' && { generation }),
    ...(typeof uid === 'string' && uid !== '' && { uid }),
  };
}

export interface ReadObject {
  readonly config: Config | undefined;
  readonly problems: readonly Problem[];
  readonly standIns: readonly Config[];
}

/** Specs keep their identity. The objects also keep it if the line is unchanged. */
function shiftLines(result: DocumentResult, lineNumber: number): DocumentResult {
  const lineOffset = lineNumber - result.line;
  if (lineOffset === 0) return result;
  const shiftConfig = (config: Config): Config =>
    Object.freeze({
      ...config,
      ...(config.source && { source: { ...config.source, line: config.source.line + lineOffset } }),
    });
  return {
    line: lineNumber,
    configs: result.configs.map(shiftConfig),
    standIns: result.standIns.map(shiftConfig),
    problems: result.problems.map((problem) => ({ ...problem, line: problem.line + lineOffset })),
  };
}

function* readDocumentInSteps(file: string, documentPart: TextPart, options: ConfigReadOptions): Steps<DocumentResult> {
  const document = parseYamlDocument(documentPart);
  yield;
  const reader = new DocumentReader(file, document, options);
  if (document.isTooLong && isForeignDocument(documentPart.text)) return { ...noObjects, line: documentPart.line };
  if (document.errors.length > 0) reader.reportSyntaxErrors();
  else if (document.value !== null && document.value !== undefined) yield* reader.readObjectsInSteps(document.value);
  reader.warnAboutReplacedBytes(documentPart);
  const problems = reader.problems.toSorted((a, b) => a.line - b.line || (a.column ?? 0) - (b.column ?? 0));
  return { line: documentPart.line, configs: reader.configs, problems, standIns: reader.standIns };
}

const noObjects = { configs: [], problems: [], standIns: [] };

/** Accepts `unknown`, because the kinds table pairs each decoder with rules for its own spec type. */
type SpecWarnings = (spec: unknown, metadata: MetadataTexts) => readonly FieldError[];

class DocumentReader {
  readonly configs: Config[] = [];
  readonly problems: Problem[] = [];
  readonly standIns: Config[] = [];
  private readonly file: string;
  private readonly document: YamlDocument;
  private readonly options: ConfigReadOptions;

  constructor(file: string, document: YamlDocument, options: ConfigReadOptions) {
    this.file = file;
    this.document = document;
    this.options = options;
  }

  reportSyntaxErrors(): void {
    const key = keyOfInvalidObject(this.document.value);
    // A missing namespace may be in the part that could not be parsed.
    const isKeyCertain = key !== undefined && identityOf(key.kind, metadataOf(this.document.value), true) !== undefined;
    for (const { line, column, message } of this.document.errors) {
      const yamlViolation = { code: 'YAML_INVALID', message: `YAML: ${message}` } as const;
      this.report('error', { line, column }, yamlViolation, key === undefined ? {} : { key, isSure: isKeyCertain });
    }
    for (const { value, path } of objectsWithin(this.document.value)) this.addPlaceholder(value, path, 0, true);
  }

  /** Warns of U+FFFD. It replaces invalid UTF-8, and the resulting text may still be valid. */
  warnAboutReplacedBytes({ text, line }: TextPart): void {
    const invalidIndex = text.indexOf('\uFFFD');
    if (invalidIndex < 0) return;
    const precedingLines = text.slice(0, invalidIndex).split('\n');
    const position = { line: line + precedingLines.length - 1, column: precedingLines.at(-1)!.length + 1 };
    const message = 'contains U+FFFD, the replacement for bytes that are not UTF-8: save the file as UTF-8';
    this.report('warning', position, { code: 'YAML_INVALID', message }, {});
  }

  /** Rejects deep nesting, which would overflow the stack of recursive readers. */
  reportExcessiveDepth(value: unknown): void {
    const envelope = readEnvelope(value);
    if (envelope._tag === 'skipped') this.reportSkipped(envelope, '');
    else {
      const message = `nested deeper than ${maxNesting} levels`;
      this.reportAtPosition('error', '', '', { code: 'YAML_INVALID', message }, envelope.key);
      this.addPlaceholder(value, '', 0);
    }
  }

  *readObjectsInSteps(document: unknown): Steps<void> {
    for (const { value, path } of objectsWithin(document)) {
      this.readObject(value, path);
      yield;
    }
  }

  readObject(value: unknown, path: string): void {
    const envelope = readEnvelope(value);
    const problemCount = this.problems.length;
    if (envelope._tag === 'skipped') this.reportSkipped(envelope, path);
    else if (envelope._tag === 'bad') {
      this.reportErrors(envelope.errors, path, '', envelope.key);
      this.reportInvalidSpec(envelope, path);
      this.addPlaceholder(value, path, problemCount);
    } else if (!this.readSpec(envelope, path)) this.addPlaceholder(value, path, problemCount);
  }

  private reportInvalidSpec({ body, key }: InvalidEnvelope, path: string): void {
    if (body === undefined) return;
    const decodedSpec = kinds[body.kind].decode(body.spec, key?.namespace ?? 'default');
    if (E.isLeft(decodedSpec)) this.reportErrors(decodedSpec.left, path, bodyOf(body.kind), key);
  }

  private addPlaceholder(value: unknown, path: string, problemCount: number, isBroken = false): void {
    const location = { file: this.file, line: this.document.positionOf(path).line };
    const config = buildPlaceholder(value, location, { isBroken, createdAt: this.options.creationTimestamp });
    if (config === undefined) return;
    this.standIns.push(config);
    const placeholderKey = configKeyText(config);
    for (let index = problemCount; index < this.problems.length; index++) {
      const problem = this.problems[index]!;
      if (problem.severity === 'error') this.problems[index] = { ...problem, standIn: placeholderKey };
    }
  }

  private readSpec(envelope: Envelope, path: string): boolean {
    const { key } = envelope;
    const kind = kinds[envelope.kind];
    const decodedSpec = kind.decode(envelope.spec, key.namespace);
    const body = bodyOf(envelope.kind);
    if (E.isLeft(decodedSpec)) {
      this.reportErrors(decodedSpec.left, path, body, key);
      return false;
    }
    const errors = (kind.metadataErrors as SpecWarnings | undefined)?.(decodedSpec.right, envelope) ?? [];
    for (const error of errors) this.reportAtPosition('error', path, joinPath('metadata', error.path), error, key);
    if (errors.length > 0) return false;
    if (this.options.errorsOnly !== true) this.reportWarnings(envelope, decodedSpec.right, path);
    if (kind.group.endsWith('.istio.io')) storeWrittenSpec(decodedSpec.right, envelope.spec);
    const config: Config = {
      kind: key.kind,
      apiVersion: envelope.apiVersion,
      name: key.name,
      namespace: key.namespace,
      labels: envelope.labels,
      annotations: envelope.annotations,
      resourceVersion: contentHash([
        ...[envelope.labels, envelope.annotations, envelope.spec, envelope.status],
        ...(envelope.isEnding === true ? ['ending'] : []),
      ]),
      creationTimestamp: envelope.creationTimestamp ?? this.options.creationTimestamp,
      ...(envelope.generation === undefined ? {} : { generation: envelope.generation }),
      ...(envelope.uid === undefined ? {} : { uid: envelope.uid }),
      ...(envelope.isEnding === true && { isEnding: true }),
      spec: decodedSpec.right,
      ...(envelope.status === undefined ? {} : { status: envelope.status }),
      source: { file: this.file, line: this.document.positionOf(path).line, ...(path !== '' && { item: path }) },
    };
    this.configs.push(Object.freeze(config));
    return true;
  }

  private reportWarnings(envelope: Envelope, spec: unknown, path: string): void {
    const { key } = envelope;
    const kind = kinds[envelope.kind];
    const warnings = (kind.warnings as (spec: unknown) => ReturnType<typeof kind.warnings>)(spec);
    for (const warning of [...warnings, ...effectWarnings(kind.decoder, envelope.spec)]) {
      this.reportAtPosition('warning', path, joinPath(bodyOf(envelope.kind), warning.path), warning, key);
    }
    for (const warning of metadataWarnings(envelope.kind, envelope)) {
      this.reportAtPosition('warning', path, joinPath('metadata', warning.path), warning, key);
    }
  }

  private reportErrors(errors: readonly FieldError[], path: string, body: string, key?: ConfigKey): void {
    for (const error of errors) {
      this.reportAtPosition(error.isIgnored ? 'warning' : 'error', path, joinPath(body, error.path), error, key);
    }
  }

  private reportSkipped({ problem }: SkippedObject, path: string): void {
    if (problem !== undefined) {
      this.reportAtPosition(problem.severity, path, 'kind', problem.violation);
    }
  }

  private reportAtPosition(
    severity: Problem['severity'],
    path: string,
    field: string,
    violation: FieldViolation,
    key?: ConfigKey,
  ): void {
    const position = this.document.positionOf(joinPath(path, field));
    this.report(severity, position, violation, { ...(field === '' ? {} : { field }), ...(key && { key }) });
  }

  private report(
    severity: Problem['severity'],
    { line, column }: YamlPosition,
    violation: FieldViolation,
    details: { readonly field?: string; readonly key?: ConfigKey; readonly isSure?: boolean },
  ): void {
    const { key, isSure = true, ...otherFields } = details;
    const object = key === undefined ? {} : { object: objectText(key) };
    const identity = key !== undefined && isSure && isKeyOfObject(key) ? { key } : {};
    this.problems.push({
      severity,
      file: this.file,
      line,
      column,
      ...object,
      ...otherFields,
      ...identity,
      ...violationIn(violation),
    });
  }
}

function objectText(key: ConfigKey): string {
  return `${originalKindName(key.kind)} ${key.namespace}/${key.name}`;
}

function bodyOf(kind: KindName): string {
  return kinds[kind].body === 'spec' ? 'spec' : '';
}

function joinPath(path: string, field: string): string {
  if (path === '' || field === '') return path + field;
  return field.startsWith('[') ? path + field : `${path}.${field}`;
}

function keyOfInvalidObject(value: unknown): ConfigKey | undefined {
  if (!isObject(value) || !isObject(value.metadata) || typeof value.kind !== 'string') return undefined;
  const { name, namespace } = correctedMetadata(value.metadata);
  if (typeof name !== 'string') return undefined;
  const kind = kindNameOf(value.apiVersion, value.kind);
  return { kind, namespace: typeof namespace === 'string' ? namespace : 'default', name };
}

function metadataOf(value: unknown): Readonly<Record<string, unknown>> {
  return isObject(value) && isObject(value.metadata) ? correctedMetadata(value.metadata) : {};
}

function isKeyOfObject({ kind, namespace, name }: ConfigKey): boolean {
  const isCluster = Object.hasOwn(kinds, kind) && kinds[kind as KindName].scope === 'Cluster';
  return isObjectName(name) && (isCluster ? namespace === '' : isNamespace(namespace));
}

function contentHash(content: unknown): string {
  return hash('sha1', JSON.stringify(content), 'hex').slice(0, 16);
}

export function withoutRepetitions(configs: readonly Config[]): {
  readonly configs: readonly Config[];
  readonly problems: readonly Problem[];
} {
  const firstByKey = new Map<string, Config>();
  const problems: Problem[] = [];
  for (const config of configs) {
    const key = configKeyText(config);
    const firstConfig = firstByKey.get(key);
    if (firstConfig === undefined) firstByKey.set(key, config);
    else for (const problem of repetition(config, firstConfig)) if (problem) problems.push(problem);
  }
  return { configs: [...firstByKey.values()], problems };
}

/**
 * Returns no problem if both objects are equal. A different object is an error if the kept object is invalid, because then neither applies; otherwise
 * a warning.
 */
export function repetition(config: Config, keptConfig: Config): readonly [Problem?] {
  const isValid = keptConfig.standsFor === undefined;
  if (isValid && keptConfig.resourceVersion === config.resourceVersion) return [];
  const key = configKeyOf(config);
  const { source } = keptConfig;
  const otherLocation = source === undefined ? 'the cluster' : `${source.file}:${source.line}`;
  const reason = isValid
    ? `it differs from the object of this name in ${otherLocation}, and the first one applies`
    : `the object of this name in ${otherLocation} takes precedence, although it is invalid`;
  return [
    {
      severity: isValid ? 'warning' : 'error',
      file: config.source?.file ?? '',
      line: config.source?.line ?? 1,
      object: objectText(key),
      key,
      code: 'OBJECT_DUPLICATE',
      message: `does not apply: ${reason}; remove or rename one of them`,
    },
  ];
}
