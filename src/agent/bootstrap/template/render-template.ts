/** Renders a template of Go's text/template: blocks, variables, pipelines and the functions that bootstraps need. Pure. */
import { isObject } from '../../../runtime/json-object.ts';
import { type Expression, type Part, parseTemplate, TemplateMistake } from './template-syntax.ts';

/** A bootstrap has some kilobytes. */
const mostCharacters = 4 * 1024 * 1024;

/**
 * @param values what `.name` in the template stands for
 * @param unknown is told of each name that they do not have
 * @throws TemplateMistake with its line
 */
export function renderTemplate(
  template: string,
  values: Readonly<Record<string, unknown>>,
  unknown: (name: string) => void = () => {},
): string {
  const out = { text: '' };
  const scope: Scope = { dot: values, variables: new Map([['$', { value: values }]]), values, unknown };
  write(parseTemplate(template), scope, out);
  return out.text;
}

interface Scope {
  /** Of the template as a whole. */
  readonly values: object;
  readonly unknown: (name: string) => void;
  readonly dot: unknown;
  /** Held apart from their names: a block sets what an outer one has declared. */
  readonly variables: ReadonlyMap<string, { value: unknown }>;
}

function write(parts: readonly Part[], outer: Scope, out: { text: string }): void {
  let scope = outer;
  for (const part of parts) {
    switch (part.is) {
      case 'text':
        out.text += part.text;
        break;
      case 'print':
        out.text += printed(valueOf(part.value, scope, part.line));
        break;
      case 'set':
        scope = afterSetting(part, scope);
        break;
      case 'range':
        writeEach(part, scope, out);
        break;
      default: {
        const value = valueOf(part.value, scope, part.line);
        const inner = part.is === 'with' && isTrue(value) ? { ...scope, dot: value } : scope;
        write(isTrue(value) ? part.then : part.otherwise, inner, out);
      }
    }
    if (out.text.length > mostCharacters)
      throw new TemplateMistake(part.line, `more than ${mostCharacters} characters come of it`);
  }
}

function afterSetting({ name, declares, value, line }: Part & { is: 'set' }, scope: Scope): Scope {
  const result = valueOf(value, scope, line);
  if (declares) return { ...scope, variables: new Map([...scope.variables, [name, { value: result }]]) };
  const held = scope.variables.get(name);
  if (held === undefined) throw new TemplateMistake(line, `${name} is not declared`);
  held.value = result;
  return scope;
}

/** Maps in the order of their keys, as Go does. */
function writeEach(
  { value, names, then, otherwise, line }: Part & { is: 'range' },
  scope: Scope,
  out: { text: string },
): void {
  const over = valueOf(value, scope, line) ?? [];
  const entries: [unknown, unknown][] = Array.isArray(over)
    ? [...over.entries()]
    : Object.entries(isObject(over) ? over : {}).sort(([a], [b]) => (a < b ? -1 : 1));
  if (entries.length === 0) write(otherwise, scope, out);
  for (const [key, element] of entries) {
    const declared = names.length === 2 ? [key, element] : [element];
    const variables = new Map([
      ...scope.variables,
      ...names.map((name, index): [string, { value: unknown }] => [name, { value: declared[index] }]),
    ]);
    write(then, { ...scope, dot: element, variables }, out);
  }
}

function valueOf(expression: Expression, scope: Scope, line: number): unknown {
  switch (expression.is) {
    case 'value':
      return expression.value;
    case 'dot':
      return scope.dot;
    case 'variable': {
      const held = scope.variables.get(expression.name);
      if (held === undefined) throw new TemplateMistake(line, `${expression.name} is not declared`);
      return held.value;
    }
    case 'field': {
      const of = valueOf(expression.of, scope, line);
      const [name = ''] = expression.names;
      if (of === scope.values && !Object.hasOwn(scope.values, name)) scope.unknown(name);
      return expression.names.reduce<unknown>(fieldOf, of);
    }
    case 'call': {
      const call = functions.get(expression.name);
      if (call === undefined) throw new TemplateMistake(line, `there is no function ${expression.name}`);
      return call(expression.args.map((arg) => valueOf(arg, scope, line)));
    }
  }
}

/** Undefined where there is none, as of a map in Go. */
function fieldOf(value: unknown, name: string): unknown {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

function isTrue(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0;
  return isObject(value) ? Object.keys(value).length > 0 : Boolean(value);
}

function printed(value: unknown): string {
  if (value === undefined || value === null) return '';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

const toJson = ([value]: readonly unknown[]): string => JSON.stringify(value ?? null);

const functions = new Map<string, (args: readonly unknown[]) => unknown>([
  ['and', (args) => args.find((arg) => !isTrue(arg)) ?? args.at(-1)],
  ['or', (args) => args.find(isTrue) ?? args.at(-1)],
  ['not', ([value]) => !isTrue(value)],
  ['eq', ([value, ...others]) => others.includes(value)],
  ['ne', ([a, b]) => a !== b],
  ['lt', ([a, b]) => Number(a) < Number(b)],
  ['le', ([a, b]) => Number(a) <= Number(b)],
  ['gt', ([a, b]) => Number(a) > Number(b)],
  ['ge', ([a, b]) => Number(a) >= Number(b)],
  [
    'len',
    ([value]) => (typeof value === 'string' || Array.isArray(value) ? value.length : Object.keys(value ?? {}).length),
  ],
  [
    'index',
    ([value, ...keys]) =>
      keys.reduce<unknown>(
        (within, key) => (Array.isArray(within) ? within[Number(key)] : fieldOf(within, String(key))),
        value,
      ),
  ],
  [
    'slice',
    ([value, from = 0, to]) => {
      const bounds = [Number(from), to === undefined ? undefined : Number(to)] as const;
      return Array.isArray(value) ? value.slice(...bounds) : printed(value).slice(...bounds);
    },
  ],
  [
    'js',
    (args) =>
      args
        .map(printed)
        .join('')
        .replace(/[\\"'<>&=\p{Cc}]/gu, escapedInScript),
  ],
  [
    'html',
    (args) =>
      args
        .map(printed)
        .join('')
        .replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`),
  ],
  ['urlquery', (args) => encodeURIComponent(args.map(printed).join(''))],
  ['println', (args) => `${args.map(printed).join(' ')}\n`],
  ['print', (args) => args.map(printed).join('')],
  ['printf', ([format, ...args]) => formatted(String(format ?? ''), args)],
  ['toJSON', toJson],
  ['toJson', toJson],
  ['json', toJson],
  ['quote', ([value]) => JSON.stringify(printed(value))],
  ['join', ([list, separator]) => (Array.isArray(list) ? list.map(printed).join(printed(separator)) : printed(list))],
]);

/** As texts of JSON have it, too. */
function escapedInScript(sign: string): string {
  if (sign === '\\' || sign === '"') return `\\${sign}`;
  return `\\u${sign.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`;
}

/** `%s`, `%d`, `%v`, `%q`, `%%`. */
function formatted(format: string, args: readonly unknown[]): string {
  let next = 0;
  return format.replace(/%([sdvq%])/g, (_, verb: string) => {
    if (verb === '%') return '%';
    const text = printed(args[next++]);
    return verb === 'q' ? JSON.stringify(text) : text;
  });
}
