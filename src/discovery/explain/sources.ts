import { readFileSync } from 'node:fs';
import { relative } from 'node:path';
import type { Metadata } from '../../gen/envoy/config/core/v3/base_pb.ts';
import { type Config, type ConfigKey, fieldText, type Origin } from '../../model/config/config.ts';
import { FieldPositions } from '../../model/config/field-positions.ts';

export interface ConfigOrigin {
  /** Kind and name, such as `VirtualService shop/cart`. */
  readonly object: string;
  /** Field such as `spec.http[2]`. `undefined` for the whole object. */
  readonly field?: string;
  /** Location such as `mesh/routes.yaml:12:7`. `undefined` if the object was generated or its file is not available. */
  readonly place?: string;
}

export type ConfigOf = (key: ConfigKey) => Config | undefined;

export class ConfigOrigins {
  readonly #configOf: ConfigOf;
  readonly #texts = new Map<string, string>();
  readonly #positions = new FieldPositions((file) => this.#textOf(file));

  constructor(configOf: ConfigOf) {
    this.#configOf = configOf;
  }

  originOf({ key, path }: Origin): ConfigOrigin {
    const field = path && fieldText(path);
    const config = this.#configOf(key);
    const source = config?.source;
    // An object of a source over xDS has no line.
    const position = source && source.line > 0 ? this.#positions.fieldPosition(source, field ?? '') : undefined;
    return {
      object: config?.standsFor
        ? `${config.standsFor.objectName}, which is rejected: ${config.standsFor.effect}`
        : `${key.kind} ${key.namespace}/${key.name}`,
      ...(field && { field }),
      ...(source && {
        place: position ? `${displayPath(source.file)}:${position.line}:${position.column}` : source.file,
      }),
    };
  }

  #textOf(file: string): string {
    let text = this.#texts.get(file);
    if (text === undefined) {
      try {
        text = readFileSync(file, 'utf8');
      } catch {
        text = '';
      }
      this.#texts.set(file, text);
    }
    return text;
  }
}

function displayPath(file: string): string {
  const relativePath = relative(process.cwd(), file);
  return relativePath.startsWith('..') ? file : relativePath;
}

const configPath = /^\/apis\/[^/]+\/[^/]+\/namespaces\/([^/]+)\/([^/]+)\/([^/]+)$/;

/** The metadata of a running proxy's resource names the object (`istio.config`). */
export function originsOfMetadata(metadata: Metadata | undefined): readonly Origin[] {
  const path = metadata?.filterMetadata.istio?.config;
  const [, namespace, kind, name] = (typeof path === 'string' && configPath.exec(path)) || [];
  if (namespace === undefined || kind === undefined || name === undefined) return [];
  const pascal = kind.replaceAll(/(^|-)([a-z])/g, (_, __, letter: string) => letter.toUpperCase());
  return [{ key: { kind: pascal, namespace, name } }];
}
