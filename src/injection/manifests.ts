import * as E from 'fp-ts/lib/Either.js';
import { isMap, isSeq, type Node, parseDocument } from 'yaml';
import { podTemplatePaths } from '../model/kinds/kubernetes/pod-template-paths.ts';
import { describeFieldErrors } from '../model/mesh/proxy-config.ts';
import { documentsOf, parseYamlDocument, type TextPart } from '../model/yaml/yaml-document.ts';
import { stringify } from '../model/yaml/yaml-writing.ts';
import { isObject } from '../runtime/json-object.ts';
import { inject, type SidecarInjector } from './injector.ts';
import { type Json, type Pod, readPod } from './pod/pod.ts';

export interface InjectedManifests {
  /** Documents without a pod are unchanged. */
  readonly text: string;
  readonly skipped: readonly ManifestMessage[];
  /** Documents that cannot be injected are unchanged. */
  readonly errors: readonly ManifestMessage[];
}

export interface ManifestMessage {
  readonly line: number;
  readonly object: string;
  readonly message: string;
}

const podPaths: Readonly<Record<string, readonly string[]>> = { Pod: [], ...podTemplatePaths };

interface Replacement {
  readonly path: readonly (string | number)[];
  readonly value: Json;
}

/** @param namespace for objects without a namespace */
export function injectManifests(text: string, injector: SidecarInjector, namespace: string): InjectedManifests {
  const messages = { skipped: [] as ManifestMessage[], errors: [] as ManifestMessage[] };
  let injectedYaml = '';
  for (const documentPart of documentsOf(text))
    injectedYaml += injectedDocument(documentPart, injector, namespace, messages);
  return { text: injectedYaml, ...messages };
}

interface Messages {
  readonly skipped: ManifestMessage[];
  readonly errors: ManifestMessage[];
}

function injectedDocument(
  documentPart: TextPart,
  injector: SidecarInjector,
  namespace: string,
  messages: Messages,
): string {
  const { value, errors } = parseYamlDocument(documentPart);
  const [firstError] = errors;
  if (firstError !== undefined) {
    const [message = ''] = firstError.message.split('\n');
    messages.errors.push({ line: firstError.line, object: 'document', message });
    return documentPart.text;
  }
  const replacements = objectsIn(value, []).flatMap(({ object, path }) => {
    const replacement = injectedObject(object, path, { injector, namespace, messages, line: documentPart.line });
    return replacement === undefined ? [] : [replacement];
  });
  return replacements.length === 0 ? documentPart.text : withReplacements(documentPart.text, replacements);
}

function objectsIn(
  value: unknown,
  path: readonly (string | number)[],
): { object: Json; path: readonly (string | number)[] }[] {
  if (!isObject(value)) return [];
  if (value.kind !== 'List' || !Array.isArray(value.items)) return [{ object: value, path }];
  return value.items.flatMap((item, index) => objectsIn(item, [...path, 'items', index]));
}

interface DocumentContext {
  readonly injector: SidecarInjector;
  readonly namespace: string;
  readonly messages: Messages;
  readonly line: number;
}

function injectedObject(
  object: Json,
  path: readonly (string | number)[],
  { injector, namespace, messages, line }: DocumentContext,
): Replacement | undefined {
  const kind = String(object.kind);
  const podPath = Object.hasOwn(podPaths, kind) ? podPaths[kind]! : undefined;
  if (podPath === undefined) return undefined;
  const metadata = isObject(object.metadata) ? object.metadata : {};
  const objectNamespace =
    typeof metadata.namespace === 'string' && metadata.namespace !== '' ? metadata.namespace : namespace;
  const position = { line, object: `${kind} ${objectNamespace}/${String(metadata.name ?? '')}` };
  const read = readPod(
    podPath.reduce<unknown>((value, key) => (isObject(value) ? value[key] : undefined), object),
    podPath.join('.'),
  );
  if (E.isLeft(read)) {
    messages.errors.push({ ...position, message: describeFieldErrors(read.left) });
    return undefined;
  }
  const namedPod = kind === 'Pod' ? read.right : withOwner(read.right, kind, object, String(metadata.name ?? ''));
  const injection = inject(injector, namedPod, objectNamespace);
  if (injection.outcome === 'skipped') {
    messages.skipped.push({ ...position, message: injection.decision.rule });
    return undefined;
  }
  if (E.isLeft(injection.pod)) {
    messages.errors.push({ ...position, message: describeFieldErrors(injection.pod.left) });
    return undefined;
  }
  const { metadata: patchedMetadata, ...otherFields } = injection.pod.right;
  const value =
    kind === 'Pod'
      ? injection.pod.right
      : { ...otherFields, metadata: withoutOwner(patchedMetadata, read.right.metadata) };
  return { path: [...path, ...podPath], value };
}

/** A pod template has no owner. */
function withOwner(pod: Pod, kind: string, object: Json, name: string): Pod {
  const owner = { apiVersion: String(object.apiVersion), kind, name, controller: true };
  return { ...pod, metadata: { ...pod.metadata, generateName: `${name}-`, ownerReferences: [owner] } };
}

function withoutOwner(patchedMetadata: Pod['metadata'], originalMetadata: Pod['metadata']): Json {
  const { generateName: _name, ownerReferences: _owners, ...metadata } = patchedMetadata;
  const { generateName, ownerReferences } = originalMetadata;
  return { ...metadata, ...(generateName && { generateName }), ...(ownerReferences && { ownerReferences }) };
}

/** Replaces from the last node to the first, so that offsets stay valid. */
function withReplacements(text: string, replacements: readonly Replacement[]): string {
  const document = parseDocument(text);
  let replacedText = text;
  for (const { path, value } of replacements.toReversed()) {
    const node = (path.length === 0 ? document.contents : document.getIn(path, true)) as Node | null;
    if (!node?.range) continue;
    const [start, end] = node.range;
    replacedText = replacedText.slice(0, start) + formatNode(value, text, start, node) + replacedText.slice(end);
  }
  return replacedText;
}

function formatNode(value: Json, text: string, start: number, node: Node): string {
  if ((isMap(node) || isSeq(node)) && node.flow === true) return JSON.stringify(value, null, 2);
  const column = start - (text.lastIndexOf('\n', start - 1) + 1);
  const block = stringify(value, { lineWidth: 0 });
  return block.replaceAll(/\n(?=.)/g, `\n${' '.repeat(column)}`);
}
