/** Comments, declared names and test titles of a script, and the texts of a sequence diagram, each with its offset. */
import { parseSync } from 'vite';

/** A comment, name or title; `text` has spaces in place of code and comment marks, so that offsets stay. */
export interface CodeText {
  readonly text: string;
  readonly start: number;
}

export interface CodeTexts {
  readonly comments: readonly CodeText[];
  readonly identifiers: readonly CodeText[];
  readonly titles: readonly CodeText[];
}

/** The fields of a syntax tree node (ESTree) that this file reads. */
interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly name?: string;
  readonly shorthand?: boolean;
  readonly properties?: readonly Node[];
  readonly elements?: readonly (Node | null)[];
  readonly arguments?: readonly Node[];
  readonly left?: Node;
  readonly argument?: Node;
  readonly parameter?: Node;
  readonly value?: unknown;
  readonly callee?: Node;
  readonly tag?: Node;
  readonly object?: Node;
}

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && typeof (value as Node).type === 'string';

const blank = (text: string): string => ' '.repeat(text.length);

/** Removes comment marks, code in backticks, `{@link …}`, the names after `@param`, and actors of a message (`a/effect → a`). */
const proseOf = (comment: string): string =>
  comment
    .replaceAll(/^\/[/*]+|\*\/$|(?<=\n\s*)\*/g, blank)
    .replaceAll(/`[^`]*`|\{@\w+[^}]*\}|@\w+(?: \w+(?= -))?|\bhttps?:\S+/g, blank)
    .replaceAll(/[\w-]+\/[\w-]+(?= →)|(?<=→ )[\w-]+\/[\w-]+/g, blank);

/** Comments of consecutive lines are one text, because a phrase may continue on the next line. */
function commentsOf(text: string, comments: readonly { type: string; start: number; end: number }[]): CodeText[] {
  const mergedComments: { start: number; end: number; isLine: boolean }[] = [];
  for (const { type, start, end } of comments) {
    const last = mergedComments.at(-1);
    const isLine = type === 'Line';
    if (isLine && last?.isLine && /^\s*$/.test(text.slice(last.end, start))) last.end = end;
    else mergedComments.push({ start, end, isLine });
  }
  return mergedComments
    .map(({ start, end }) => ({
      start,
      text: proseOf(text.slice(start, end).replaceAll(/(?<=(?:^|\n)\s*)(?:\/\/|#)/g, blank)),
    }))
    .filter((comment) => !/^\s*(biome-ignore|@ts-)/.test(comment.text));
}

/** The function that a call such as `test.each(rows)('title', …)` starts from. */
function calledName(callee: unknown): string | undefined {
  if (!isNode(callee)) return undefined;
  if (callee.type === 'Identifier') return callee.name;
  if (callee.type === 'MemberExpression') return calledName(callee.object);
  if (callee.type === 'CallExpression' || callee.type === 'TaggedTemplateExpression') {
    return calledName(callee.callee ?? callee.tag);
  }
  return undefined;
}

/** Returns identifiers that a pattern or a declared name introduces. A shorthand `{ name }` has the name of a field. */
function boundBy(node: unknown): readonly Node[] {
  if (!isNode(node)) return [];
  switch (node.type) {
    case 'Identifier':
      return [node];
    case 'ObjectPattern':
      return (node.properties ?? []).flatMap((property) =>
        property.shorthand === true ? [] : boundBy(property.value ?? property.argument),
      );
    case 'ArrayPattern':
      return (node.elements ?? []).flatMap(boundBy);
    case 'AssignmentPattern':
      return boundBy(node.left);
    case 'RestElement':
      return boundBy(node.argument);
    case 'TSParameterProperty':
      return boundBy(node.parameter);
    default:
      return [];
  }
}

/** The fields of a node that contain the names it declares. */
const declaredIn: Readonly<Record<string, readonly string[]>> = {
  VariableDeclarator: ['id'],
  FunctionDeclaration: ['id', 'params'],
  FunctionExpression: ['id', 'params'],
  ArrowFunctionExpression: ['params'],
  TSMethodSignature: ['key', 'params'],
  TSFunctionType: ['params'],
  TSDeclareFunction: ['id', 'params'],
  ClassDeclaration: ['id'],
  MethodDefinition: ['key'],
  PropertyDefinition: ['key'],
  TSPropertySignature: ['key'],
  TSInterfaceDeclaration: ['id'],
  TSTypeAliasDeclaration: ['id'],
  TSEnumDeclaration: ['id'],
  CatchClause: ['param'],
};

const shellComment = /(?<=^|\s)#.*$/gm;
const shellMessage = /(?<=\becho ")[^"]*/g;
/** Names that `for`, `local` and `read` declare, and those of assignments and functions. */
const shellName = /(?<=\bfor |\b(?:local|read -r)(?: \w+)* )\w+|(?<=^|[;\s])\w+(?==|\(\) )/gm;

/** Comments, messages and names of a shell script. */
function shellTextsOf(text: string): CodeTexts {
  const comments = [...text.matchAll(shellComment)].map(({ 0: line, index }) => ({
    type: 'Line',
    start: index,
    end: index + line.length,
  }));
  const messages = [...text.matchAll(shellMessage)].map(({ 0: message, index }) => ({
    text: message.replaceAll(/\\`[^`]*`|\$\w+|\$\{[^}]*\}/g, blank),
    start: index,
  }));
  const code = text.replaceAll(shellComment, blank).replaceAll(shellMessage, blank);
  return {
    comments: [...commentsOf(text, comments), ...messages],
    identifiers: [...code.matchAll(shellName)].map(({ 0: name, index }) => ({ text: name, start: index })),
    titles: [],
  };
}

/** Description, labels and messages of a Mermaid sequence diagram. Dots separate them, so that no phrase continues from one to the next. */
const diagramTextOf = (text: string): string =>
  text.replaceAll(/^(?:%%| *(?:participant .*|Note over [^:]*:|[\w-]+ *-+>>[+-]?[\w-]+:|[A-Za-z]+(?= |$)))/gm, (mark) =>
    (mark === '%%' ? ' ' : '·').repeat(mark.length),
  );

export function codeTextsOf(file: string, text: string): CodeTexts {
  if (file.endsWith('.mmd'))
    return { comments: [{ text: diagramTextOf(text), start: 0 }], identifiers: [], titles: [] };
  if (/\.sh$|^bin\/[^.]+$/.test(file)) return shellTextsOf(text);
  const { program, comments, errors } = parseSync(file, text);
  if (errors.length > 0) throw new Error(`${file}: ${errors[0]?.message}`);
  const identifiers: CodeText[] = [];
  const titles: CodeText[] = [];
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) for (const child of value) visit(child);
    if (!isNode(value)) return;
    for (const field of declaredIn[value.type] ?? []) {
      const declared: unknown = value[field as keyof Node];
      for (const bound of Array.isArray(declared) ? declared : [declared]) {
        if (isNode(bound) && bound.type === 'PrivateIdentifier') {
          identifiers.push({ text: bound.name ?? '', start: bound.start });
        }
        for (const { name, start } of boundBy(bound)) identifiers.push({ text: name ?? '', start });
      }
    }
    if (value.type === 'CallExpression' && /^(test|it|describe)$/.test(calledName(value.callee) ?? '')) {
      const title = value.arguments?.[0];
      if (title !== undefined && /^(Literal|TemplateLiteral)$/.test(title.type)) {
        const raw = text.slice(title.start + 1, title.end - 1);
        titles.push({ text: raw.replaceAll(/\$\{[^}]*\}|\\?`[^`]+`/g, blank), start: title.start + 1 });
      }
    }
    for (const [field, child] of Object.entries(value)) if (field !== 'parent') visit(child);
  };
  visit(program.body);
  return { comments: commentsOf(text, comments), identifiers, titles: /\.test\.tsx?$/.test(file) ? titles : [] };
}

/** @returns the words of a name in lower case: `maxQueriesOfDNS` has `max`, `queries`, `of` and `dns` */
export const wordsOfName = (name: string): readonly string[] =>
  (name.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+/g) ?? []).map((word) => word.toLowerCase());
