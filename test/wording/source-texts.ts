/** Extracts texts that a user can see from files other than Markdown, with their offsets, for textlint. */
import type { TxtDocumentNode, TxtParagraphNode } from '@textlint/ast-node-types';
import { parseAst } from 'vitest/node';

export interface SourceText {
  readonly start: number;
  readonly end: number;
}

/** Two adjacent words. Identifiers, paths and keys have none. */
const prosePattern = /[A-Za-z]{2}[,;:.!?]?\s+[("']?[A-Za-z]/;

/** A key like `'running.waiting for a start'`: the path of a chart's state. */
const isStatePath = (node: object): boolean =>
  'key' in node && /\w\.\w/.test(String((node.key as { value?: unknown } | null)?.value));

/** String literals, templates and JSX texts that are prose, without comments and state paths. */
export function textsOfTypeScript(text: string, lang: 'ts' | 'tsx' = 'ts'): readonly SourceText[] {
  const sourceTexts: SourceText[] = [];
  const add = (start: number, end: number) =>
    prosePattern.test(text.slice(start, end)) && sourceTexts.push({ start, end });
  const visit = (node: unknown): void => {
    if (Array.isArray(node)) for (const child of node) visit(child);
    if (node === null || typeof node !== 'object' || !('type' in node)) return;
    const { type, start, end } = node as unknown as SourceText & { type: string };
    if (type === 'TSLiteralType' || (type === 'JSXAttribute' && text.startsWith('class=', start))) return;
    if (type === 'JSXText') add(start, end);
    else if (type === 'Literal' && /['"]/.test(text[start]!)) add(start + 1, end - 1);
    else if (type === 'TemplateElement') add(start + 1, end - (text[end - 1] === '{' ? 2 : 1));
    else if (type === 'Property' && isStatePath(node)) visit((node as { value?: unknown }).value);
    else for (const child of Object.values(node)) if (typeof child === 'object') visit(child);
  };
  visit(parseAst(text, { lang }).body);
  return sourceTexts;
}

/** Comments of a YAML file, one per line. */
export function commentsOfYaml(text: string): readonly SourceText[] {
  return [...text.matchAll(/(?<=^|\s)#.*$/gm)].map(({ index, 0: line }) => ({
    start: index,
    end: index + line.length,
  }));
}

/** Texts of a Helm template, without its actions. */
export function textsOfTemplate(text: string): readonly SourceText[] {
  return [...text.matchAll(/(?:^|\}\})((?:(?!\{\{)[\s\S])+)/g)].map(({ index, 0: matchedText, 1: proseText }) => {
    const start = index + matchedText.length - proseText!.length;
    return { start, end: start + proseText!.length };
  });
}

const textsOf: Readonly<Record<string, (text: string) => readonly SourceText[]>> = {
  '.ts': textsOfTypeScript,
  '.js': textsOfTypeScript,
  '.cjs': textsOfTypeScript,
  '.tsx': (text) => textsOfTypeScript(text, 'tsx'),
  '.yaml': commentsOfYaml,
  '.txt': textsOfTemplate,
};

/** A document with the texts as paragraphs. Text in backticks is code. */
function documentOf(text: string, texts: readonly SourceText[]): TxtDocumentNode {
  const lineStarts = [0, ...[...text.matchAll(/\n/g)].map(({ index }) => index + 1)];
  const positionOf = (offset: number) => {
    const line = lineStarts.findLastIndex((start) => start <= offset);
    return { line: line + 1, column: offset - lineStarts[line]! };
  };
  const placeOf = ({ start, end }: SourceText) => ({
    raw: text.slice(start, end),
    range: [start, end] as const,
    loc: { start: positionOf(start), end: positionOf(end) },
  });
  const paragraphOf = (sourceText: SourceText): TxtParagraphNode => {
    const position = placeOf(sourceText);
    const value = position.raw.replaceAll(/\\?`[^`\n]*`/g, (code) => '·'.repeat(code.length));
    return { type: 'Paragraph', ...position, children: [{ type: 'Str', value, ...position }] };
  };
  return { type: 'Document', ...placeOf({ start: 0, end: text.length }), children: texts.map(paragraphOf) };
}

export const sourcePlugin = {
  Processor: class {
    availableExtensions(): string[] {
      return Object.keys(textsOf);
    }
    processor(extension: string) {
      return {
        preProcess: (text: string) => documentOf(text, textsOf[extension]!(text)),
        postProcess: <Message>(messages: Message[], filePath = '') => ({ messages, filePath }),
      };
    }
  },
};
