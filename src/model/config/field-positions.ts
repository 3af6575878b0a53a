import {
  parseYamlDocument,
  splitDocuments,
  type TextPart,
  type YamlDocument,
  type YamlPosition,
} from '../yaml/yaml-document.ts';
import { type Config, type ConfigKey, configKeyOf, configKeyText, type SourcePosition } from './config.ts';
import type { Problem } from './problem.ts';

export class FieldPositions {
  readonly #textOf: (file: string) => string;
  readonly #partsByFile = new Map<string, readonly TextPart[]>();
  #lastParsed: { readonly part: TextPart; readonly document: YamlDocument } | undefined;

  readonly #items: ReadonlyMap<string, string>;

  /**
   * @param textOf returns an empty text if the file cannot be read
   * @param configs objects of the problems, because items of a List may share a line
   */
  constructor(textOf: (file: string) => string, configs: readonly Config[] = []) {
    this.#textOf = textOf;
    this.#items = new Map(
      configs.flatMap((config) =>
        config.source?.item ? [[placeKey(config.source, configKeyOf(config)), config.source.item]] : [],
      ),
    );
  }

  positionOf(problem: Pick<Problem, 'file' | 'line' | 'key' | 'field'>): YamlPosition {
    const { file, line, key, field = '' } = problem;
    const item = key && this.#items.get(placeKey(problem, key));
    return this.fieldPosition({ file, line, ...(item !== undefined && { item }) }, field);
  }

  fieldPosition({ file, line, item = '' }: SourcePosition, field: string): YamlPosition {
    const documentPart = this.#partAt(file, line);
    if (documentPart === undefined) return { line, column: 1 };
    if (this.#lastParsed?.part !== documentPart)
      this.#lastParsed = { part: documentPart, document: parseYamlDocument(documentPart) };
    return this.#lastParsed.document.positionOf([item, field].filter(Boolean).join('.'));
  }

  #partAt(file: string, lineNumber: number): TextPart | undefined {
    const documentParts = this.#partsOf(file);
    let [lowIndex, highIndex] = [0, documentParts.length];
    while (lowIndex < highIndex) {
      const middle = (lowIndex + highIndex) >> 1;
      if (documentParts[middle]!.line <= lineNumber) lowIndex = middle + 1;
      else highIndex = middle;
    }
    return documentParts[lowIndex - 1];
  }

  #partsOf(file: string): readonly TextPart[] {
    const fileParts = this.#partsByFile.get(file) ?? splitDocuments(this.#textOf(file));
    this.#partsByFile.set(file, fileParts);
    return fileParts;
  }
}

function placeKey({ file, line }: SourcePosition, key: ConfigKey): string {
  return `${line} ${file}\0${configKeyText(key)}`;
}
