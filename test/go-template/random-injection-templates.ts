/**
 * Random templates of the injector from a seeded grammar: fields of the data through functions of sprig. Some are
 * invalid.
 */

const texts = [
  '.ObjectMeta.Name',
  '.ObjectMeta.Labels.app',
  '(index .ObjectMeta.Labels `a.b/c`)',
  '.ObjectMeta.Labels.none',
  '.Values.global.hub',
  '.MeshConfig.TrustDomain',
  '.Spec.ServiceAccountName',
  '.Revision',
  '"a, b,c"',
  '(index .Spec.Containers 0).Image',
];
const numbers = ['.ProxyUID', '.Values.global.port', '3', '(len .Spec.Containers)', '.ProxyConfig.StatusPort', '-2'];
const lists = ['.Values.global.list', '(list "x" "y" "x")', '(splitList "," "b,a")', '(until 4)'];
const objects = [
  '.Values.global',
  '.ObjectMeta.Labels',
  '(dict "a" 1 "b" "c")',
  '.Values.global.nested',
  '.Spec.SecurityContext',
];
const missingPaths = [
  '.Spec.Nope',
  '.Values.none.none',
  'nope 1',
  '(index .Spec.Containers 9)',
  '.ProxyConfig.Tracing.Sampling',
];

const textFunctions = [
  ...[
    'upper',
    'title',
    'trim',
    'quote',
    'squote',
    'trunc 5',
    'trunc -3',
    'trimAll "w-"',
    'nindent 2',
    'replace "b" "x"',
  ],
  ...[
    'default "d"',
    'trimPrefix "we"',
    'trimSuffix "b"',
    'b64enc',
    'sha256sum',
    'kebabcase',
    'snakecase',
    'len',
    'repeat 2',
  ],
  ...[
    'printf "%-6s|"',
    'printf "%q"',
    'splitList ","',
    'hasPrefix "w"',
    'hasSuffix "b"',
    'substr 0 2',
    'untitle',
    'nospace',
  ],
  ...['atoi', 'regexReplaceAll "[ab]" "<$0>"', 'abbrev 5', 'toString', 'cat "x"', 'initials', 'adler32sum', 'semver'],
];
const numberFunctions = [
  'add 2',
  'mul 3',
  'int',
  'int64',
  'printf "%v"',
  'printf "%d"',
  'float64',
  'toString',
  'max 5',
  'mod 7',
  'div 2',
  'sub 1',
];
const listFunctions = [
  'join "-"',
  'first',
  'last',
  'len',
  'uniq',
  'sortAlpha',
  'reverse',
  'has "x"',
  'toJson',
  'rest',
  'initial',
  'compact',
];
const objectFunctions = ['toJson', 'toPrettyJson', 'len', 'keys | sortAlpha', 'empty', 'kindOf', 'typeOf'];
const conditions = [
  '.ProxyConfig.HoldApplicationUntilProxyStarts',
  '.Values.global.nested.x',
  '.MeshConfig.EnablePrometheusMerge.GetValue',
];

/** @param seed determines the templates */
export function randomInjectionTemplates(count: number, seed: number): string[] {
  let state = seed;
  const drawBelow = (end: number): number => {
    // Linear congruential generator of Numerical Recipes.
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32;
    return Math.floor((state / 2 ** 32) * end);
  };
  const one = <T>(items: readonly T[]): T => items[drawBelow(items.length)]!;
  const piped = (values: readonly string[], functions: readonly string[]): string =>
    [one(values), ...Array.from({ length: 1 + drawBelow(2) }, () => one(functions))].join(' | ');
  const expression = (): string => {
    switch (drawBelow(16)) {
      case 0:
        return one(missingPaths);
      case 1:
      case 2:
        return piped(numbers, numberFunctions);
      case 3:
      case 4:
        return piped(lists, listFunctions);
      case 5:
      case 6:
        return `${one(objects)} | ${one(objectFunctions)}`;
      case 7:
        return `ternary ${one(texts)} "no" (eq ${one(texts)} ${one(texts)})`;
      case 8:
        return `printf "%s-%v" ${one(texts)} ${one(numbers)}`;
      default:
        return piped(texts, textFunctions);
    }
  };
  const trim = (): string => one(['', '', '- ']);
  const openAction = (text: string): string => `{{${trim()} ${text} }}`;
  const statement = (): string => {
    switch (drawBelow(6)) {
      case 0:
        return `${openAction(`if ${one([...texts, ...conditions, ...lists])}`)}yes ${openAction(expression())}${openAction('else')}no${openAction('end')}\n`;
      case 1:
        return `${openAction('range $i, $c := .Spec.Containers')} {{ $i }}={{ $c.Name | ${one(textFunctions.slice(0, 10))} }} {{ len $.ObjectMeta.Labels }}${openAction('end')}\n`;
      case 2:
        return `${openAction(`range $k, $v := ${one(objects.slice(0, 3))}`)} {{ $k }}:{{ $v | toJson }}${openAction('end')}\n`;
      case 3:
        return `${openAction(`with ${one(texts)}`)}<{{ . | ${one(textFunctions)} }}>${openAction('end')}\n`;
      default:
        return `${openAction(expression())}\n`;
    }
  };
  return Array.from({ length: count }, () => Array.from({ length: 1 + drawBelow(2) }, statement).join(''));
}
